//! The command line of `jq`.

use jaq_json::{Map, Val, read};

use super::write::Look;
use crate::say::{whole, words};

/// The parsed command line.
#[derive(Default)]
pub(crate) struct Line {
    pub filter: String,
    pub files: Vec<String>,
    pub variables: Vec<(String, Val)>,
    pub null_input: bool,
    pub raw_input: bool,
    pub slurp: bool,
    pub exit_status: bool,
    pub look: Look,
}

const USAGE: &str = "usage: jq [-nrjascSeRC] [--tab] [--indent N] [--arg NAME VALUE] [--argjson NAME JSON] [--slurpfile NAME FILE] \
[--rawfile NAME FILE] [-f FILE] FILTER [FILE...] [--args VALUE...] [--jsonargs JSON...]";

/// The kind of the operands after the filter.
enum Rest {
    Files,
    Texts,
    Values,
}

/// Parses a command line. Returns `None` after printing the usage or the version.
pub(crate) fn parse(args: &[String]) -> Result<Option<Line>, String> {
    let mut line =
        Line { look: Look { indent: Some("  ".to_owned()), ..Look::default() }, ..Line::default() };
    let mut filter = None;
    let mut from_file = None;
    let mut named = Vec::<(String, Val)>::new();
    let mut positional = Vec::new();
    let mut rest = Rest::Files;
    let mut options = true;
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        let mut next =
            |what: &str| args.next().cloned().ok_or_else(|| format!("{arg} needs {what}; {USAGE}"));
        if !options || !arg.starts_with('-') || arg == "-" {
            match (&filter, &rest) {
                (None, _) if from_file.is_none() => filter = Some(arg.clone()),
                (_, Rest::Files) => line.files.push(arg.clone()),
                (_, Rest::Texts) => positional.push(Val::utf8_str(arg.clone())),
                (_, Rest::Values) => positional.push(json(arg, "--jsonargs")?),
            }
            continue;
        }
        match arg.as_str() {
            "--" => options = false,
            "--arg" => {
                let name = next("a name and a value")?;
                named.push((name, Val::utf8_str(next("a name and a value")?)));
            }
            "--argjson" => {
                let name = next("a name and a JSON text")?;
                let value = json(&next("a name and a JSON text")?, "--argjson")?;
                named.push((name, value));
            }
            "--slurpfile" | "--rawfile" => {
                let name = next("a name and a file")?;
                let path = next("a name and a file")?;
                let value = content(arg, &name, &path)?;
                named.push((name, value));
            }
            "--indent" => {
                line.look.indent = indent(&next("a number")?)?;
            }
            "--tab" => line.look.indent = Some("\t".to_owned()),
            "--args" => rest = Rest::Texts,
            "--jsonargs" => rest = Rest::Values,
            "--from-file" => from_file = Some(next("a file")?),
            long if long.starts_with("--") => {
                let letter = LONG
                    .iter()
                    .find(|(name, _)| *name == long)
                    .ok_or_else(|| format!("unknown option {long}; {USAGE}"))?
                    .1;
                if letter == 'h' {
                    crate::say::line(format_args!("{USAGE}"));
                    return Ok(None);
                }
                short(&mut line, letter);
            }
            cluster => {
                for letter in cluster.chars().skip(1) {
                    match letter {
                        'h' => {
                            crate::say::line(format_args!("{USAGE}"));
                            return Ok(None);
                        }
                        'V' => {
                            crate::say::line(format_args!("jq-1.7 (jaq)"));
                            return Ok(None);
                        }
                        'f' => from_file = Some(next("a file")?),
                        'L' => _ = next("a folder")?,
                        _ if short(&mut line, letter) => {}
                        _ => return Err(format!("unknown option -{letter}; {USAGE}")),
                    }
                }
            }
        }
    }
    line.filter = program(&mut line.files, from_file, filter)?;
    line.variables = variables(named, positional);
    Ok(Some(line))
}

/// Parses the value of `--indent`. Returns `None` for 0: each value is printed on one line.
fn indent(width: &str) -> Result<Option<String>, String> {
    match width.parse() {
        Ok(width @ 0..=7) => Ok((width > 0).then(|| " ".repeat(width))),
        Ok(8_usize..) => Err("cannot indent more than 7 characters".to_owned()),
        Err(_) => Err("--indent takes a number".to_owned()),
    }
}

/// Reads the file given to `--rawfile` or `--slurpfile`.
fn content(option: &str, name: &str, path: &str) -> Result<Val, String> {
    let text = whole(path)
        .map_err(|error| format!("bad file for {option} {name}: {path}: {}", words(&error)))?;
    if option == "--rawfile" {
        return Ok(Val::utf8_str(text));
    }
    let all: Result<Vec<Val>, _> = read::parse_many(&text).collect();
    let all = all.map_err(|error| format!("bad JSON in {path}: {error}"))?;
    Ok(all.into_iter().collect())
}

/// Returns the text of the filter. If the filter is in a file, the first operand is an input file.
fn program(
    files: &mut Vec<String>,
    from_file: Option<String>,
    filter: Option<String>,
) -> Result<String, String> {
    match (from_file, filter) {
        (Some(path), operand) => {
            files.splice(0..0, operand);
            let text = whole(&path)
                .map_err(|error| format!("could not open {path}: {}", words(&error)))?;
            Ok(String::from_utf8_lossy(&text).into_owned())
        }
        (None, Some(filter)) => Ok(filter),
        (None, None) => Err(USAGE.to_owned()),
    }
}

/// Returns the variables of the filter: the given ones, `$ARGS` and `$ENV`.
fn variables(mut named: Vec<(String, Val)>, positional: Vec<Val>) -> Vec<(String, Val)> {
    let mut map = Map::default();
    map.extend(named.iter().map(|(name, value)| (Val::utf8_str(name.clone()), value.clone())));
    let mut arguments = Map::default();
    arguments.insert(Val::utf8_str("positional"), positional.into_iter().collect());
    arguments.insert(Val::utf8_str("named"), Val::obj(map));
    let mut environment = Map::default();
    environment
        .extend(std::env::vars().map(|(name, value)| (Val::utf8_str(name), Val::utf8_str(value))));
    named.push(("ARGS".to_owned(), Val::obj(arguments)));
    named.push(("ENV".to_owned(), Val::obj(environment)));
    named
}

const LONG: [(&str, char); 18] = [
    ("--raw-output", 'r'),
    ("--raw-output0", '0'),
    ("--join-output", 'j'),
    ("--compact-output", 'c'),
    ("--null-input", 'n'),
    ("--raw-input", 'R'),
    ("--slurp", 's'),
    ("--exit-status", 'e'),
    ("--ascii-output", 'a'),
    ("--sort-keys", 'S'),
    ("--color-output", 'C'),
    ("--monochrome-output", 'M'),
    ("--unbuffered", 'u'),
    ("--binary", 'b'),
    ("--help", 'h'),
    ("--seq", 'q'),
    ("--color", 'C'),
    ("--no-color", 'M'),
];

fn short(line: &mut Line, letter: char) -> bool {
    let look = &mut line.look;
    match letter {
        'r' => look.raw = true,
        'j' => (look.raw, look.end) = (true, Some("")),
        '0' => (look.raw, look.end) = (true, Some("\0")),
        'c' => look.indent = None,
        'a' => look.ascii = true,
        'S' => look.sorted = true,
        'q' => look.record_mark = true,
        'n' => line.null_input = true,
        'R' => line.raw_input = true,
        's' => line.slurp = true,
        'e' => line.exit_status = true,
        // These options have no effect: output is never coloured, and always buffered.
        'C' | 'M' | 'u' | 'b' => {}
        _ => return false,
    }
    true
}

fn json(text: &str, option: &str) -> Result<Val, String> {
    read::parse_single(text.as_bytes())
        .map_err(|error| format!("invalid JSON text passed to {option}: {error}"))
}
