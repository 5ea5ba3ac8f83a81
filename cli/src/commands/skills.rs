//! `wattle skills`: lists, shows, checks and writes skills.

use std::path::{Path, PathBuf};

use serde_json::{Value as Json, json};
use wattle_agent::host::capability;
use wattle_agent::host::catalog::{
    Catalog, Entry, MAX_SKILL_DESCRIPTION, Name, Problem, SCRIPTS_FOLDER, SKILL_FILE, ScriptKind,
    Skill, Skills, is_skill_name, read_skills, skeleton, skill_text,
};
use wattle_agent::host::rt::truncate;

use super::write_new;
use crate::args::{ExportArgs, NewSkillArgs, SkillsCommand};
use crate::config::{Config, Layer, Places};
use crate::fault::{Exit, Fault};
use crate::output::{self, BAD, DIM, GOOD, NAME, WARN, paint, visible};
use crate::progress::counted;
use crate::setup::Setup;
use crate::trust::{self, Found, FoundSkill, short};

/// The folder for a project's own skills.
const OWN_SKILLS: &str = ".agents/skills";

/// The description of a new skill.
const NEW_DESCRIPTION: &str =
    "Says in one or two sentences what the skill does, and when to use it";

/// Runs a `skills` command.
pub(crate) async fn skills(command: SkillsCommand, flags: &[Layer]) -> Result<Exit, Fault> {
    let config = trust::gather_with_warnings(flags)?;
    match command {
        SkillsCommand::List { json } => list(&found(&config)?, json).map(Exit::from),
        SkillsCommand::Show { name, json } => show(&name, found(&config)?, json).map(Exit::from),
        SkillsCommand::Check { what, json } => check(&what, config, json).await,
        SkillsCommand::New(args) => new(args, &config).map(Exit::from),
        SkillsCommand::Export(args) => export(args, config).await,
    }
}

fn found(config: &Config) -> Result<Found, Fault> {
    Found::read(config, Some(&config.root.value), &Places::of_user())
}

/// Returns true if runs use the skill at position `at`: it is trusted, and no later one has its name.
fn is_used(skills: &[FoundSkill], at: usize) -> bool {
    let name = skills.get(at).map(|found| found.skill.name());
    let used = |found: &&FoundSkill| found.state.is_trusted() && Some(found.skill.name()) == name;
    let mut rest = skills.iter().skip(at).filter(used);
    skills.get(at).is_some_and(|found| found.state.is_trusted()) && rest.nth(1).is_none()
}

fn list(found: &Found, json: bool) -> Result<(), Fault> {
    if json {
        let skills = found.skills.iter().enumerate();
        let skills = skills.map(|(at, skill)| to_json(skill, is_used(&found.skills, at)));
        return output::json(&skills.collect::<Json>());
    }
    found.problems.iter().for_each(|problem| output::warn(&problem.to_string()));
    let width = found.skills.iter().map(|found| found.skill.name().len()).max().unwrap_or(0);
    for (at, skill) in found.skills.iter().enumerate() {
        let name = format!("{:<width$}", skill.skill.name());
        let state = match (is_used(&found.skills, at), skill.state.is_trusted()) {
            (true, _) => paint(DIM, skill.source.word()),
            (false, true) => paint(WARN, "replaced by a later one"),
            (false, false) => paint(WARN, skill.state.word()),
        };
        let description = visible(skill.skill.description());
        output::styled(&format!("{}  {description} ({state})", paint(NAME, &name)))?;
    }
    if found.skills.is_empty() {
        output::aside("there are no skills; `wattle skills new NAME` writes one");
    }
    Ok(())
}

/// Returns a set with only this skill, in which its programs have their names.
fn alone(skill: &Skill) -> Skills {
    let capabilities: Vec<&str> = capability::ALL.iter().map(|one| one.name).collect();
    Skills::new([skill.clone()], &capabilities, &Catalog::default())
}

fn to_json(found: &FoundSkill, used: bool) -> Json {
    let skill = &found.skill;
    let own = alone(skill);
    json!({
        "name": skill.name(),
        "description": skill.description(),
        "license": skill.license(),
        "compatibility": skill.compatibility(),
        "metadata": skill.metadata(),
        "allowed_tools": skill.allowed_tools(),
        "source": found.source.word(),
        "folder": skill.folder(),
        "hash": found.hash,
        "state": found.state.word(),
        "used": used,
        "files": skill.files().map(|(path, _)| path).collect::<Vec<_>>(),
        "programs": own.programs().map(Entry::usage).collect::<Vec<_>>(),
    })
}

fn show(name: &str, found: Found, json: bool) -> Result<(), Fault> {
    let skills = &found.skills;
    let named = |at: &usize| skills.get(*at).is_some_and(|found| found.skill.name() == name);
    let positions = || (0..skills.len()).rev().filter(named);
    let at = positions().find(|at| is_used(skills, *at)).or_else(|| positions().next());
    let Some((at, shown)) = at.and_then(|at| Some((at, skills.get(at)?))) else {
        let known = Skills::new(skills.iter().map(|f| f.skill.clone()), &[], &Catalog::default());
        return Err(Fault::usage(known.unknown(name)).hint("`wattle skills list` shows all skills"));
    };
    let used = is_used(skills, at);
    if json {
        let mut document = to_json(shown, used);
        super::extend(&mut document, json!({"instructions": shown.skill.instructions()}));
        return output::json(&document);
    }
    let skill = &shown.skill;
    let state = if used { "in use" } else { shown.state.word() };
    output::styled(&format!(
        "{} {}\n{}",
        paint(NAME, skill.name()),
        paint(DIM, &format!("({state}, {})", short(&shown.hash))),
        visible(skill.description())
    ))?;
    let line = |name: &str, value: &str| -> Result<(), Fault> {
        if value.is_empty() {
            return Ok(());
        }
        output::styled(&format!("  {} {}", paint(DIM, name), visible(value)))
    };
    line("from", &skill.folder().display().to_string())?;
    line("license", skill.license().unwrap_or_default())?;
    line("needs", skill.compatibility().unwrap_or_default())?;
    for (key, value) in skill.metadata() {
        line(key, value)?;
    }
    line("allowed-tools (which allow nothing here)", &skill.allowed_tools().join(" "))?;
    let own = alone(skill);
    output::text(&format!("\n{}", visible(own.page(name).unwrap_or_default().trim_end())))
}

/// A checked skill, or a folder that is none.
struct Checked {
    /// The skill's name, or the path of the folder.
    name: String,
    problems: Vec<String>,
    /// What works otherwise than the author may expect.
    notes: Vec<String>,
}

async fn check(what: &[String], config: Config, json: bool) -> Result<Exit, Fault> {
    let found = if what.is_empty() { Some(found(&config)?) } else { None };
    let (mut skills, mut problems): (Vec<Skill>, Vec<Problem>) = match found {
        Some(found) => (found.skills.into_iter().map(|f| f.skill).collect(), found.problems),
        None => named(what, &config)?,
    };
    let setup = Setup::without_warnings(config)?;
    let mut checked = Vec::new();
    for skill in skills.drain(..) {
        checked.push(check_one(&setup, skill).await);
    }
    for problem in problems.drain(..) {
        let (name, problems) = (problem.path().to_owned(), vec![problem.to_string()]);
        checked.push(Checked { name, problems, notes: Vec::new() });
    }
    let is_sound = checked.iter().all(|one| one.problems.is_empty());
    if json {
        let skills: Vec<Json> = checked
            .iter()
            .map(|one| json!({"name": one.name, "problems": one.problems, "notes": one.notes}))
            .collect();
        output::json(&json!({"ok": is_sound, "skills": skills}))?;
        return Ok(Exit::of(is_sound));
    }
    for Checked { name, problems, notes } in &checked {
        let verdict =
            if problems.is_empty() { paint(GOOD, "ok    ") } else { paint(BAD, "broken") };
        output::styled(&format!("{verdict} {}", visible(name)))?;
        for line in problems.iter().chain(notes) {
            output::styled(&format!("       {}", visible(line).replace('\n', "\n       ")))?;
        }
    }
    let broken = checked.iter().filter(|one| !one.problems.is_empty()).count();
    output::text(&format!("{}, {broken} broken", counted(checked.len(), "skill")))?;
    Ok(Exit::of(is_sound))
}

/// Reads the skills with these names, or in these folders.
fn named(what: &[String], config: &Config) -> Result<(Vec<Skill>, Vec<Problem>), Fault> {
    let (mut skills, mut problems) = (Vec::new(), Vec::new());
    let known = found(config)?;
    for name in what {
        let path = Path::new(name);
        if is_skill_name(name) && known.skills.iter().any(|found| found.skill.name() == name) {
            let named = known.skills.iter().filter(|found| found.skill.name() == name);
            skills.extend(named.map(|found| found.skill.clone()));
        } else if path.join(SKILL_FILE).symlink_metadata().is_ok() {
            match Skill::read(path) {
                Ok(skill) => skills.push(skill),
                Err(problem) => problems.push(problem),
            }
        } else if path.is_dir() {
            let (more, wrong) = read_skills(path, None);
            if more.is_empty() && wrong.is_empty() {
                let message =
                    format!("`{name}` contains no skill, which is a folder with `SKILL.md`");
                return Err(Fault::usage(message));
            }
            skills.extend(more);
            problems.extend(wrong);
        } else {
            return Err(Fault::usage(format!("there is no skill and no folder `{name}`"))
                .hint("`wattle skills list` shows all skills"));
        }
    }
    Ok((skills, problems))
}

async fn check_one(setup: &Setup, skill: Skill) -> Checked {
    let mut notes: Vec<String> = Vec::new();
    for script in skill.scripts() {
        if let ScriptKind::Other(language) = script.kind {
            notes.push(format!(
                "note: `{}` is {language}, which does not run here: write it as a program (`.wat`) \
                 or for the shell (`.sh`)",
                script.path
            ));
        }
    }
    if !skill.other_keys().is_empty() {
        let keys = skill.other_keys().join("`, `");
        notes.push(format!("note: `{keys}` has no effect here"));
    }
    if !skill.allowed_tools().is_empty() {
        notes.push("note: `allowed-tools` allows nothing here; the policy does".to_owned());
    }
    let name = skill.name().to_owned();
    let host = setup.host.clone().with_skills(vec![skill]);
    let mut problems: Vec<String> =
        host.skills().problems().iter().map(ToString::to_string).collect();
    for program in host.skills().programs() {
        problems.extend(host.check(program).await.err().map(|problem| problem.to_string()));
    }
    Checked { name, problems, notes }
}

fn valid_name(name: &str) -> Result<(), Fault> {
    if is_skill_name(name) {
        return Ok(());
    }
    Err(Fault::usage(format!("`{name}` is not the name of a skill")).hint(
        "use 1 to 64 lowercase letters, digits and single hyphens between them, such as pdf-forms",
    ))
}

/// The folder in which a new skill is written: the last folder of the setting, else the project's.
fn folder_of_new(dir: Option<PathBuf>, config: &Config) -> PathBuf {
    let set = || config.skills.value.last().cloned();
    dir.or_else(set).unwrap_or_else(|| config.root.value.join(OWN_SKILLS))
}

/// Writes the files of a skill, `SKILL.md` first, and prints the folder.
fn write(folder: &Path, files: &[(String, String)], json: bool, name: &str) -> Result<(), Fault> {
    for (path, text) in files {
        let path = Path::new(path);
        let file = path.file_name().unwrap_or_default().to_string_lossy();
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        write_new(&parent.map_or(folder.to_owned(), |parent| folder.join(parent)), &file, text)?;
    }
    let folder = folder.strip_prefix(".").unwrap_or(folder);
    if json {
        return output::json(&json!({"name": name, "folder": folder}));
    }
    output::text(&visible(&folder.display().to_string()))?;
    let shown = visible(&folder.display().to_string());
    output::aside(&format!("check it: wattle skills check {shown}"));
    Ok(())
}

fn new(args: NewSkillArgs, config: &Config) -> Result<(), Fault> {
    valid_name(&args.name)?;
    let folder = folder_of_new(args.dir, config).join(&args.name);
    let word: Name = "example".parse().map_err(Fault::failed)?;
    let instructions = "# How to do it\n\n1. Write here what an agent must know to do the task.\n2. \
                        Name the files and programs of the skill that it needs, such as the program \
                        in `scripts/example.wat`.";
    let files = [
        (SKILL_FILE.to_owned(), skill_text(&args.name, NEW_DESCRIPTION, instructions)),
        (format!("{SCRIPTS_FOLDER}/{word}.wat"), skeleton(&word)),
    ];
    write(&folder, &files, args.json, &args.name)
}

/// Writes the programs of a catalog folder as a skill.
async fn export(args: ExportArgs, config: Config) -> Result<Exit, Fault> {
    let name = match args.name {
        Some(name) => name,
        None => {
            let whole = args.folder.canonicalize().unwrap_or_else(|_| args.folder.clone());
            let name = whole.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
            name.replace(['_', '.', ' '], "-")
        }
    };
    valid_name(&name).map_err(|fault| match fault.hinted() {
        Some(hint) => Fault::usage(fault.message()).hint(format!("name it with `--name`: {hint}")),
        None => fault,
    })?;
    let paths = super::catalog::files_in(&args.folder)?;
    let read: Result<Vec<Entry>, _> = paths.iter().map(|path| Entry::read(path)).collect();
    let programs = read.map_err(Fault::usage)?;
    if programs.is_empty() {
        return Err(Fault::usage(format!("`{}` contains no programs", args.folder.display())));
    }
    let prefix = name.replace('-', "_");
    let mut instructions = "# Programs\n\n".to_owned();
    for program in &programs {
        let about = program.meta().description.trim();
        instructions.push_str(&format!("- `{prefix}.{}`: {about}\n", program.usage()));
    }
    let about: Vec<&str> =
        programs.iter().map(|program| program.meta().description.trim()).collect();
    let about = args.description.unwrap_or_else(|| about.join("; "));
    let about = truncate(&about, MAX_SKILL_DESCRIPTION - 1);
    let text = skill_text(&name, &about, &instructions);
    let scripts = programs.iter().map(|program| {
        (format!("{SCRIPTS_FOLDER}/{}.wat", program.name()), program.source().to_string())
    });
    let files: Vec<(String, String)> =
        [(SKILL_FILE.to_owned(), text)].into_iter().chain(scripts).collect();
    let folder = folder_of_new(args.dir, &config).join(&name);
    write(&folder, &files, args.json, &name)?;
    let setup = Setup::without_warnings(config)?;
    let skill = Skill::read(&folder).map_err(Fault::failed)?;
    let checked = check_one(&setup, skill).await;
    checked.problems.iter().for_each(|problem| output::warn(problem));
    Ok(Exit::of(checked.problems.is_empty()))
}

/// Returns the number of skills that runs use, and the problems of all skills.
pub(crate) async fn problems(setup: &Setup) -> (usize, Vec<String>) {
    let host = &setup.host;
    let content = setup.config.content.problems.iter().chain(host.skills().problems());
    let mut problems: Vec<String> = content.map(ToString::to_string).collect();
    for program in host.skills().programs() {
        problems.extend(host.check(program).await.err().map(|problem| problem.to_string()));
    }
    (host.skills().iter().len(), problems)
}
