//! `tar`: creates, lists and extracts archives, uncompressed or compressed with gzip.

use std::fs;
use std::io::{self, Read, Write};

use flate2::Compression;
use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;
use jiff::tz::TimeZone;
use tar::{Archive, Builder, EntryType, Header};

use super::below;
use crate::clock;
use crate::options::Takes::{Nothing, Value};
use crate::options::{self, Known, Line};
use crate::say::{About as _, Failure, ended, names, out, say, whole};

const OPTIONS: &[Known] = &[
    ('c', "create", Nothing),
    ('x', "extract", Nothing),
    ('\0', "get", Nothing),
    ('t', "list", Nothing),
    ('f', "file", Value),
    ('z', "gzip", Nothing),
    ('a', "auto-compress", Nothing),
    ('v', "verbose", Nothing),
    ('C', "directory", Value),
    ('O', "to-stdout", Nothing),
    ('p', "preserve-permissions", Nothing),
    ('k', "keep-old-files", Nothing),
    ('\0', "exclude", Value),
    ('\0', "strip-components", Value),
    ('\0', "no-same-owner", Nothing),
];

/// Runs `tar` and returns its exit status.
pub(crate) fn tar(args: &[String]) -> i32 {
    let mut words = args.to_vec();
    // The first word after the name may contain option letters without a dash.
    if let Some(first) = words.get_mut(1).filter(|first| !first.starts_with('-')) {
        first.insert(0, '-');
    }
    ended("tar", 2, run(&words).map(|()| 0))
}

fn run(words: &[String]) -> Result<(), Failure> {
    let line = options::parse(words, OPTIONS, true)?;
    if line.has("c") {
        create(&line)
    } else if line.has("x") || line.has("get") {
        extract(&line)
    } else if line.has("t") {
        list(&line)
    } else {
        Err(USAGE.into())
    }
}

const USAGE: &str = "one of -c, -x and -t says what is to be done; usage: tar -c|-x|-t [-zv] [-f FILE] [-C FOLDER] [FILE]...";

fn create(line: &Line) -> Result<(), Failure> {
    let file = line.value("f").unwrap_or("-");
    if line.operands.is_empty() {
        return Err("cowardly refusing to create an empty archive".into());
    }
    let packed =
        line.has("z") || (line.has("a") && (file.ends_with(".gz") || file.ends_with(".tgz")));
    let sink: Box<dyn Write> = match file {
        "-" => Box::new(out()),
        path => Box::new(io::BufWriter::new(
            fs::File::create(path).about(format_args!("{path}: cannot open"))?,
        )),
    };
    let sink: Box<dyn Write> =
        if packed { Box::new(GzEncoder::new(sink, Compression::default())) } else { sink };
    let mut builder = Builder::new(sink);
    let exclude = line.globs("exclude")?;
    let folder = line.value("C");
    for operand in &line.operands {
        let path = folder.map_or_else(|| operand.clone(), |folder| format!("{folder}/{operand}"));
        add(&mut builder, &path, operand.trim_start_matches('/'), line, &exclude).about(operand)?;
    }
    let mut sink = builder.into_inner()?;
    Ok(sink.flush()?)
}

fn add(
    builder: &mut Builder<impl Write>,
    path: &str,
    name: &str,
    line: &Line,
    exclude: &[regex::bytes::Regex],
) -> io::Result<()> {
    let last = name.trim_end_matches('/').rsplit('/').next().unwrap_or(name);
    if exclude
        .iter()
        .any(|pattern| pattern.is_match(last.as_bytes()) || pattern.is_match(name.as_bytes()))
    {
        return Ok(());
    }
    let found = fs::symlink_metadata(path)?;
    let mut header = Header::new_gnu();
    header.set_mtime(
        found.modified().map(|time| clock::epoch(time).0.max(0) as u64).unwrap_or_default(),
    );
    header.set_mode(crate::find::mode(&found));
    header.set_size(0);
    if found.is_dir() {
        let name = format!("{}/", name.trim_end_matches('/'));
        if line.has("v") {
            crate::say::note(format_args!("{name}"));
        }
        header.set_entry_type(EntryType::Directory);
        builder.append_data(&mut header, &name, io::empty())?;
        return names(path)?.iter().try_for_each(|entry| {
            add(builder, &format!("{path}/{entry}"), &format!("{name}{entry}"), line, exclude)
        });
    }
    if line.has("v") {
        crate::say::note(format_args!("{name}"));
    }
    if found.is_symlink() {
        header.set_entry_type(EntryType::Symlink);
        return builder.append_link(&mut header, name, fs::read_link(path)?);
    }
    let bytes = fs::read(path)?;
    header.set_size(bytes.len() as u64);
    builder.append_data(&mut header, name, bytes.as_slice())
}

fn archive(line: &Line) -> Result<Archive<Box<dyn Read>>, Failure> {
    let file = line.value("f").unwrap_or("-");
    let bytes = whole(file).about(format_args!("{file}: cannot open"))?;
    let packed = bytes.starts_with(&[0x1f, 0x8b]);
    let source: Box<dyn Read> = Box::new(io::Cursor::new(bytes));
    Ok(Archive::new(if packed { Box::new(MultiGzDecoder::new(source)) } else { source }))
}

/// Returns true if the operands select an archive entry, or if there are no operands.
fn wanted(line: &Line, name: &str) -> bool {
    let bare = name.trim_end_matches('/');
    line.operands.is_empty()
        || line
            .operands
            .iter()
            .map(|operand| operand.trim_end_matches('/'))
            .any(|operand| bare == operand || bare.starts_with(&format!("{operand}/")))
}

fn list(line: &Line) -> Result<(), Failure> {
    let mut archive = archive(line)?;
    let mut out = out();
    for entry in archive.entries()? {
        let entry = entry?;
        let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        if !wanted(line, &name) {
            continue;
        }
        let header = entry.header();
        if line.has("v") {
            let at = clock::in_zone(header.mtime().unwrap_or(0) as i64, 0, TimeZone::UTC);
            let at = clock::format(&at, "%Y-%m-%d %H:%M");
            let mode = if header.entry_type().is_dir() { "drwxr-xr-x" } else { "-rw-r--r--" };
            writeln!(out, "{mode} user/user {:9} {at} {name}", entry.size())?;
        } else {
            writeln!(out, "{name}")?;
        }
    }
    Ok(out.flush()?)
}

fn extract(line: &Line) -> Result<(), Failure> {
    let mut archive = archive(line)?;
    let exclude = line.globs("exclude")?;
    let why = |_: &str| "--strip-components takes a number".to_owned();
    let strip = line.parsed("strip-components", why)?.unwrap_or(0);
    let mut out = out();
    for entry in archive.entries()? {
        let mut entry = entry?;
        let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        if !wanted(line, &name) || exclude.iter().any(|pattern| pattern.is_match(name.as_bytes())) {
            continue;
        }
        if line.has("O") {
            io::copy(&mut entry, &mut out)?;
            continue;
        }
        let rest = name
            .split('/')
            .filter(|part| !part.is_empty() && *part != ".")
            .skip(strip)
            .collect::<Vec<_>>()
            .join("/");
        if rest.is_empty() {
            continue;
        }
        let Some(path) = below(&rest) else {
            say("tar", format_args!("{name}: leads out of the folder; skipped"));
            continue;
        };
        let path =
            line.value("C").map_or_else(|| path.clone(), |folder| format!("{folder}/{path}"));
        if line.has("v") {
            _ = writeln!(out, "{name}");
        }
        unpack(&mut entry, &path, line.has("k")).about(path)?;
    }
    Ok(out.flush()?)
}

fn unpack(entry: &mut tar::Entry<'_, Box<dyn Read>>, path: &str, keep: bool) -> io::Result<()> {
    let kind = entry.header().entry_type();
    if kind.is_dir() {
        return fs::create_dir_all(path);
    }
    if let Some((folder, _)) = path.rsplit_once('/') {
        fs::create_dir_all(folder)?;
    }
    if !kind.is_file() {
        say("tar", format_args!("{path}: only files and folders are unpacked here; skipped"));
        return Ok(());
    }
    if keep && fs::symlink_metadata(path).is_ok() {
        return Err(io::Error::other("exists already"));
    }
    io::copy(entry, &mut fs::File::create(path)?).map(|_| ())
}
