//! The scripts of a skill. Those that can run here are catalog programs.

use std::path::Path;

use super::{SCRIPTS_FOLDER, Skill};
use crate::folder::utf8;
use crate::problem::{Fault, Problem};
use crate::{Arg, Entry, Meta, Name, Origin, TypeHint};

/// The source of the program that runs a shell script.
const SHELL_SCRIPT: &str = include_str!("shell_script.wat");

/// A script of a skill.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Script<'a> {
    /// The path, relative to the skill's folder.
    pub path: &'a str,
    /// The language of the script.
    pub kind: ScriptKind,
}

/// The language of a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScriptKind {
    /// A program of the catalog, with front matter.
    Program,
    /// A script for the shell.
    Shell,
    /// A language that does not run here. The value is its name.
    Other(&'static str),
}

impl ScriptKind {
    /// Returns the language that a file name stands for, or `None` if the file is not a script.
    fn of(path: &str) -> Option<ScriptKind> {
        Some(match Path::new(path).extension()?.to_str()? {
            "wat" => ScriptKind::Program,
            "sh" | "bash" => ScriptKind::Shell,
            "py" => ScriptKind::Other("Python"),
            "js" | "mjs" | "cjs" => ScriptKind::Other("JavaScript"),
            "ts" | "mts" => ScriptKind::Other("TypeScript"),
            "rb" => ScriptKind::Other("Ruby"),
            "pl" => ScriptKind::Other("Perl"),
            "php" => ScriptKind::Other("PHP"),
            "ps1" => ScriptKind::Other("PowerShell"),
            "lua" => ScriptKind::Other("Lua"),
            "R" | "r" => ScriptKind::Other("R"),
            _ => return None,
        })
    }
}

impl Skill {
    /// Returns the scripts, sorted by path: the files in the folder `scripts` and below it that have
    /// the extension of a script.
    pub fn scripts(&self) -> impl Iterator<Item = Script<'_>> {
        let paths = self.files.keys().map(String::as_str);
        let is_script = |path: &&str| {
            path.strip_prefix(SCRIPTS_FOLDER).is_some_and(|rest| rest.starts_with('/'))
        };
        paths
            .filter(is_script)
            .filter_map(|path| Some(Script { path, kind: ScriptKind::of(path)? }))
    }

    /// Returns the programs of the scripts that can run here, or the problem with each that cannot be
    /// used. `prefix` is the part of their names before the dot.
    pub(super) fn programs(&self, prefix: &str) -> Vec<Result<Entry, Problem>> {
        let mut programs: Vec<Result<Entry, Problem>> = Vec::new();
        for script in self.scripts().filter(|script| !matches!(script.kind, ScriptKind::Other(_))) {
            let at = self.folder.join(script.path);
            let program = self.program(script, &at, prefix);
            let program = program.and_then(|program| {
                let mut known = programs.iter().flatten();
                match known.find(|known| known.name() == program.name()) {
                    None => Ok(program),
                    Some(other) => {
                        let (name, other) =
                            (program.name().to_string(), other.origin().to_string());
                        Err((None, Fault::SkillScriptTwice { name, other }))
                    }
                }
            });
            programs.push(
                program
                    .map_err(|(line, fault)| Problem::new(at.display().to_string(), line, fault)),
            );
        }
        programs
    }

    fn program(
        &self,
        script: Script<'_>,
        at: &Path,
        prefix: &str,
    ) -> Result<Entry, (Option<usize>, Fault)> {
        let own = |fault| (None, fault);
        let stem = Path::new(script.path).file_stem().unwrap_or_default().to_string_lossy();
        let word = stem.replace('-', "_");
        let is_direct = script.path.matches('/').count() == 1;
        let name = is_direct.then(|| format!("{prefix}.{word}").parse::<Name>().ok()).flatten();
        let name = name.filter(|_| !word.contains('.'));
        let name = name.ok_or_else(|| own(Fault::SkillScriptName))?;
        let bytes = self.file(script.path).unwrap_or_default().to_vec();
        let text = utf8(bytes).map_err(own)?;
        let origin = Origin::Skill(at.to_owned());
        if script.kind == ScriptKind::Program {
            let parsed = Entry::parse(&text, origin);
            let parsed = parsed.map_err(|problem| (problem.line(), problem.into_fault()))?;
            if parsed.name().as_str() != word {
                let fault = Fault::SkillProgramName { name: parsed.name().to_string(), word };
                return Err(own(fault));
            }
            return Ok(parsed.with_name(name));
        }
        let meta = Meta {
            description: shell_description(&text)
                .unwrap_or_else(|| format!("Run {} of the skill {}", script.path, self.name())),
            args: vec![Arg {
                name: "args".to_owned(),
                type_hint: TypeHint::Json,
                format: Some("list of strings".to_owned()),
                description: "The arguments $1, $2, …".to_owned(),
                default: Some("[]".to_owned()),
            }],
            returns: Some("what the script prints, as the program `shell` does".to_owned()),
            uses: Some(["skill", "val", "str", "par"].map(str::to_owned).to_vec()),
            ..Meta::default()
        };
        let source =
            SHELL_SCRIPT.replace("SKILL", self.name()).replace("SCRIPT", &escaped(script.path));
        Ok(Entry::declared(origin, name, meta, source))
    }
}

/// Returns the first comment of a shell script that is not its `#!` line, or `None` if the script
/// does not begin with comments.
fn shell_description(text: &str) -> Option<String> {
    let comments = text.lines().map_while(|line| line.trim().strip_prefix('#'));
    let mut words = comments.filter(|line| !line.starts_with('!')).map(str::trim);
    words.find(|line| !line.is_empty()).map(str::to_owned)
}

/// Escapes a text for a string of the language.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"")
}
