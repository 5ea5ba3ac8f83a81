//! Reading a folder of programs.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::problem::{Fault, Problem};
use crate::{Entry, Origin};

/// The largest file of a program, in bytes.
pub(crate) const LARGEST: u64 = 1 << 20;

/// Reads the `.wat` files that lie directly in a folder, in the order of their names. Hidden files are passed over.
pub(crate) fn read(folder: &Path) -> Vec<Result<Entry, Problem>> {
    let listed =
        fs::read_dir(folder).and_then(|entries| entries.map(|e| e.map(|e| e.path())).collect::<io::Result<Vec<_>>>());
    let mut paths = match listed {
        Ok(paths) => paths,
        Err(error) => return vec![Err(Problem::new(folder.display().to_string(), None, unreadable(&error)))],
    };
    paths.retain(|path| is_program(path));
    paths.sort();
    paths.into_iter().map(program).collect()
}

fn is_program(path: &Path) -> bool {
    let hidden = path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
    !hidden && path.extension().is_some_and(|extension| extension == "wat")
}

fn program(path: PathBuf) -> Result<Entry, Problem> {
    match text(&path) {
        Ok(text) => Entry::parse(&text, Origin::File(path)),
        Err(fault) => Err(Problem::new(path.display().to_string(), None, fault)),
    }
}

fn text(path: &Path) -> Result<String, Fault> {
    // What is no plain file is never opened: a pipe would block, a link may lead anywhere.
    let kind = fs::symlink_metadata(path).map_err(|e| unreadable(&e))?.file_type();
    if kind.is_symlink() {
        return Err(Fault::Link);
    }
    if !kind.is_file() {
        return Err(Fault::NotAFile);
    }
    let mut bytes = Vec::new();
    let file = fs::File::open(path).map_err(|e| unreadable(&e))?;
    file.take(LARGEST + 1).read_to_end(&mut bytes).map_err(|e| unreadable(&e))?;
    if bytes.len() as u64 > LARGEST {
        return Err(Fault::TooLarge);
    }
    String::from_utf8(bytes).map_err(|e| Fault::NotUtf8(e.utf8_error().valid_up_to()))
}

fn unreadable(error: &io::Error) -> Fault {
    let words = match error.kind() {
        io::ErrorKind::NotFound => "nothing is there".to_owned(),
        io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        io::ErrorKind::NotADirectory => "not a folder".to_owned(),
        _ => error.to_string(),
    };
    Fault::Unreadable(words)
}
