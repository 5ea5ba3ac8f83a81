//! `zip`, `unzip`: create and extract archives.

use std::fs;
use std::io::{self, Cursor, Read as _, Write as _};

use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipArchive, ZipWriter};

use super::below;
use crate::options::Takes::{Nothing, Value};
use crate::options::{self, Known};
use crate::pattern;
use crate::say::{About as _, Failure, ended, names, out, say, whole};

const ZIP: &[Known] = &[
    ('r', "", Nothing),
    ('q', "quiet", Nothing),
    ('j', "junk-paths", Nothing),
    ('9', "", Nothing),
    ('0', "", Nothing),
    ('x', "exclude", Value),
];

/// Runs `zip` and returns its exit status.
pub(crate) fn zip(args: &[String]) -> i32 {
    ended("zip", 2, zipped(args).map(|()| 0))
}

fn zipped(args: &[String]) -> Result<(), Failure> {
    let line = options::parse(args, ZIP, true)?;
    let [target, operands @ ..] = line.operands.as_slice() else {
        return Err("usage: zip [-rqj] FILE.zip FILE...".into());
    };
    let target = if target == "-" || target.contains('.') {
        target.clone()
    } else {
        format!("{target}.zip")
    };
    let exclude = line.value("x").map(|glob| pattern::names(glob, false)).transpose()?;
    let mut files = Vec::new();
    for operand in operands {
        gather(operand, line.has("r"), &mut files).about(operand)?;
    }
    files.retain(|file| !exclude.as_ref().is_some_and(|pattern| pattern.is_match(file.as_bytes())));
    if files.is_empty() {
        return Err("nothing to do".into());
    }
    let method =
        if line.has("0") { CompressionMethod::Stored } else { CompressionMethod::Deflated };
    let options = SimpleFileOptions::default().compression_method(method);
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    // The entries of an existing archive are kept, unless a file replaces them.
    let names: Vec<String> = files.iter().map(|file| named(file, line.has("j"))).collect();
    if let Ok(bytes) = fs::read(&target) {
        let mut old = ZipArchive::new(Cursor::new(bytes)).about(&target)?;
        for n in 0..old.len() {
            let entry = old.by_index_raw(n)?;
            if !names.iter().any(|name| name == entry.name()) {
                writer.raw_copy_file(entry)?;
            }
        }
    }
    for (file, name) in files.iter().zip(&names) {
        if file.ends_with('/') {
            if !line.has("j") {
                writer.add_directory(name.as_str(), options)?;
            }
        } else {
            let bytes = fs::read(file).about(file)?;
            writer.start_file(name.as_str(), options)?;
            writer.write_all(&bytes)?;
        }
        if !line.has("q") {
            crate::say::line(format_args!("  adding: {name}"));
        }
    }
    let bytes = writer.finish()?.into_inner();
    let done = if target == "-" { out().write_all(&bytes) } else { fs::write(&target, bytes) };
    done.about(&target)
}

fn named(file: &str, bare: bool) -> String {
    if bare {
        file.trim_end_matches('/').rsplit('/').next().unwrap_or(file).to_owned()
    } else {
        file.trim_start_matches("./").trim_start_matches('/').to_owned()
    }
}

fn gather(path: &str, recursive: bool, files: &mut Vec<String>) -> io::Result<()> {
    if !fs::metadata(path)?.is_dir() {
        files.push(path.to_owned());
        return Ok(());
    }
    let path = path.trim_end_matches('/');
    files.push(format!("{path}/"));
    if recursive {
        names(path)?
            .iter()
            .try_for_each(|name| gather(&format!("{path}/{name}"), recursive, files))?;
    }
    Ok(())
}

const UNZIP: &[Known] = &[
    ('l', "", Nothing),
    ('p', "", Nothing),
    ('o', "", Nothing),
    ('n', "", Nothing),
    ('q', "", Nothing),
    ('j', "", Nothing),
    ('t', "", Nothing),
    ('d', "", Value),
    ('x', "", Value),
];

/// Runs `unzip` and returns its exit status.
pub(crate) fn unzip(args: &[String]) -> i32 {
    ended("unzip", 2, unzipped(args).map(|()| 0))
}

fn unzipped(args: &[String]) -> Result<(), Failure> {
    let line = options::parse(args, UNZIP, true)?;
    let [file, operands @ ..] = line.operands.as_slice() else {
        return Err("usage: unzip [-lpoqj] [-d FOLDER] FILE.zip [NAME...]".into());
    };
    let bytes = whole(file)
        .or_else(|_| whole(&format!("{file}.zip")))
        .about(format_args!("cannot find or open {file}"))?;
    let mut archive = ZipArchive::new(Cursor::new(bytes)).about(file)?;
    let globs =
        operands.iter().map(|glob| pattern::names(glob, false)).collect::<Result<Vec<_>, _>>()?;
    let without = line.value("x").map(|glob| pattern::names(glob, false)).transpose()?;
    let mut out = out();
    let mut total = 0;
    let mut count = 0;
    if line.has("l") {
        _ = writeln!(out, "  Length  Name\n--------  ----");
    }
    for n in 0..archive.len() {
        let mut entry = archive.by_index(n)?;
        let name = entry.name().to_owned();
        let asked = globs.is_empty() || globs.iter().any(|glob| glob.is_match(name.as_bytes()));
        if !asked || without.as_ref().is_some_and(|glob| glob.is_match(name.as_bytes())) {
            continue;
        }
        count += 1;
        total += entry.size();
        if line.has("l") {
            _ = writeln!(out, "{:8}  {name}", entry.size());
            continue;
        }
        if entry.is_dir() && (line.has("p") || line.has("j") || line.has("t")) {
            continue;
        }
        let mut bytes = Vec::new();
        if !entry.is_dir() {
            entry.read_to_end(&mut bytes).about(&name)?;
        }
        if line.has("p") {
            out.write_all(&bytes)?;
            continue;
        }
        if line.has("t") {
            continue;
        }
        let Some(path) = below(&named(&name, line.has("j"))) else {
            say("unzip", format_args!("{name}: leads out of the folder; skipped"));
            continue;
        };
        let path =
            line.value("d").map_or_else(|| path.clone(), |folder| format!("{folder}/{path}"));
        if line.has("n") && fs::symlink_metadata(&path).is_ok() {
            continue;
        }
        if !line.has("q") {
            _ = writeln!(out, "  inflating: {path}");
        }
        let folder = if entry.is_dir() {
            Some(path.as_str())
        } else {
            path.rsplit_once('/').map(|(folder, _)| folder)
        };
        let made = folder.map_or(Ok(()), fs::create_dir_all);
        let made =
            made.and_then(|()| if entry.is_dir() { Ok(()) } else { fs::write(&path, &bytes) });
        made.about(&path)?;
    }
    if line.has("l") {
        _ = writeln!(out, "--------  ----\n{total:8}  {count} files");
    }
    out.flush()?;
    if count == 0 && !operands.is_empty() {
        Err(format!("no file of {file} has such a name").into())
    } else {
        Ok(())
    }
}
