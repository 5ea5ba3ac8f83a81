//! `gzip`, `gunzip`, `zcat`: compress and decompress files.

use std::fs;
use std::io::{self, Write as _};

use flate2::Compression;
use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;

use crate::options::Takes::{Nothing, Value};
use crate::options::{self, Known, Line};
use crate::say::{About as _, Failure, ended, open, out, say};

const OPTIONS: &[Known] = &[
    ('c', "stdout", Nothing),
    ('\0', "to-stdout", Nothing),
    ('d', "decompress", Nothing),
    ('\0', "uncompress", Nothing),
    ('f', "force", Nothing),
    ('k', "keep", Nothing),
    ('n', "no-name", Nothing),
    ('N', "name", Nothing),
    ('q', "quiet", Nothing),
    ('t', "test", Nothing),
    ('v', "verbose", Nothing),
    ('S', "suffix", Value),
    ('1', "fast", Nothing),
    ('2', "", Nothing),
    ('3', "", Nothing),
    ('4', "", Nothing),
    ('5', "", Nothing),
    ('6', "", Nothing),
    ('7', "", Nothing),
    ('8', "", Nothing),
    ('9', "best", Nothing),
];

/// Runs `gzip`, `gunzip` or `zcat`, depending on the first word, and returns its exit status.
pub(crate) fn gzip(args: &[String]) -> i32 {
    let name = args.first().map_or("gzip", String::as_str);
    ended(name, 1, all(name, args))
}

fn all(name: &str, args: &[String]) -> Result<i32, Failure> {
    let line = options::parse(args, OPTIONS, true)?;
    let unpacks = name != "gzip" || line.has("d") || line.has("uncompress") || line.has("t");
    let to_out = name == "zcat" || line.has("c") || line.has("to-stdout");
    let mut status = 0;
    for path in line.operands_or(&["-"]) {
        if let Err(why) = one(&line, path, unpacks, to_out) {
            say(name, why);
            status = 1;
        }
    }
    Ok(status)
}

fn one(line: &Line, path: &str, unpacks: bool, to_out: bool) -> Result<(), Failure> {
    let suffix = line.value("S").unwrap_or(".gz");
    let level = (1..=9).rev().find(|level: &u32| line.has(&level.to_string())).unwrap_or(6);
    let input = open(path).about(path)?;
    let target = match (path, unpacks) {
        ("-", _) => None,
        _ if to_out || line.has("t") => None,
        (_, true) => {
            let bare = path
                .strip_suffix(suffix)
                .map(str::to_owned)
                .or_else(|| path.strip_suffix(".tgz").map(|bare| format!("{bare}.tar")));
            Some(bare.ok_or(format!("{path}: unknown suffix -- ignored"))?)
        }
        (_, false) if path.ends_with(suffix) => {
            return Err(format!("{path} already has {suffix} suffix -- unchanged").into());
        }
        (_, false) => Some(format!("{path}{suffix}")),
    };
    if let Some(target) = &target
        && !line.has("f")
        && fs::symlink_metadata(target).is_ok()
    {
        return Err(format!("{target} already exists; -f overwrites it").into());
    }
    let mut output: Box<dyn io::Write> = match &target {
        _ if line.has("t") => Box::new(io::sink()),
        Some(target) => Box::new(io::BufWriter::new(fs::File::create(target).about(target)?)),
        None => Box::new(out()),
    };
    let done = if unpacks {
        io::copy(&mut MultiGzDecoder::new(input), &mut output).map_err(|error| match error.kind() {
            io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData => {
                io::Error::other("not in gzip format")
            }
            io::ErrorKind::UnexpectedEof => io::Error::other("unexpected end of file"),
            _ => error,
        })
    } else {
        let mut packer = GzEncoder::new(&mut output, Compression::new(level));
        io::copy(&mut io::BufReader::with_capacity(1 << 16, input), &mut packer)
            .and_then(|_| packer.finish().map(|_| 0))
    };
    let done = done.and_then(|_| output.flush()).about(path);
    if let Err(why) = done {
        target.iter().for_each(|target| _ = fs::remove_file(target));
        return Err(why);
    }
    if target.is_some() && !line.has("k") {
        fs::remove_file(path).about(path)?;
    }
    Ok(())
}
