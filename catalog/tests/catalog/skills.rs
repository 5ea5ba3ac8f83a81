//! Tests of skills: the rules of the public specification, hostile folders, and scripts.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use wattle_catalog::{Catalog, ScriptKind, Skill, Skills, read_skills, skill_text};

/// A folder of skills.
struct Folder(TempDir);

impl Folder {
    fn new() -> Folder {
        Folder(tempfile::tempdir().unwrap())
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    /// Writes a file of a skill and returns its path.
    fn write(&self, path: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    /// Writes a valid `SKILL.md`.
    fn skill(&self, name: &str) -> PathBuf {
        self.write(&format!("{name}/SKILL.md"), skill_text(name, "Does it.", "Do it."))
    }

    /// Returns the names of the skills, and the problems as text.
    fn read(&self) -> (Vec<String>, Vec<String>) {
        let (skills, problems) = read_skills(self.path(), Some(self.path()));
        let left_out = skills.iter().flat_map(Skill::left_out).chain(&problems);
        let shown = |path: String| path.replace(&self.path().display().to_string(), "DIR");
        let left_out = left_out.map(|problem| shown(problem.to_string())).collect();
        (skills.iter().map(|skill| skill.name().to_owned()).collect(), left_out)
    }
}

/// Reads a skill with this front matter in the folder `pdf-tools`.
fn with_front(front: &str) -> Result<Skill, String> {
    let folder = Folder::new();
    folder.write("pdf-tools/SKILL.md", format!("---\n{front}\n---\n\nDo it.\n"));
    Skill::read(&folder.path().join("pdf-tools")).map_err(|problem| {
        let text = problem.to_string();
        text.split_once("SKILL.md`").unwrap().1.to_owned()
    })
}

#[test]
fn a_skill_has_what_the_specification_defines() {
    let skill = with_front(
        "name: pdf-tools\ndescription: >-\n  Fills forms.\n  Use it for PDF files.\nlicense: \
         Apache-2.0\ncompatibility: Needs the network\nmetadata:\n  author: example\n  version: \
         1.0\nallowed-tools: Bash(git:*) Read",
    )
    .unwrap();
    assert_eq!(skill.name(), "pdf-tools");
    assert_eq!(skill.description(), "Fills forms. Use it for PDF files.");
    assert_eq!(skill.license(), Some("Apache-2.0"));
    assert_eq!(skill.compatibility(), Some("Needs the network"));
    assert_eq!(skill.metadata()["author"], "example");
    assert_eq!(skill.metadata()["version"], "1.0");
    assert_eq!(skill.allowed_tools(), ["Bash(git:*)", "Read"]);
    assert_eq!(skill.instructions(), "Do it.");
    let least = with_front("name: pdf-tools\ndescription: Does it.").unwrap();
    assert_eq!((least.license(), least.compatibility()), (None, None));
    let more = with_front("name: pdf-tools\ndescription: Does it.\nmodel: big\nhooks: {}").unwrap();
    assert_eq!(more.other_keys(), ["hooks", "model"]);
    let tools = with_front("name: pdf-tools\ndescription: x\nallowed-tools: [Read, Write]");
    assert_eq!(tools.unwrap().allowed_tools(), ["Read", "Write"]);
}

#[test]
fn names_and_descriptions_have_the_lengths_and_characters_of_the_specification() {
    for (name, is_valid) in [
        ("a", true),
        ("pdf-processing", true),
        ("v2", true),
        ("2d-plots", true),
        (&*"a".repeat(64), true),
        (&*"a".repeat(65), false),
        ("", false),
        ("PDF-Processing", false),
        ("-pdf", false),
        ("pdf-", false),
        ("pdf--processing", false),
        ("pdf_processing", false),
        ("pdf.x", false),
        ("../pdf", false),
        ("pdf/x", false),
        ("größe", false),
    ] {
        assert_eq!(wattle_catalog::is_skill_name(name), is_valid, "{name}");
    }
    let described = |length| {
        with_front(&format!("name: pdf-tools\ndescription: {}", "é".repeat(length))).map(drop)
    };
    assert_eq!(described(1_024), Ok(()));
    assert!(described(1_025).unwrap_err().contains("has 1025 characters, and 1 to 1024"));
    let needs = |length| {
        let front = "name: pdf-tools\ndescription: x\ncompatibility: ";
        with_front(&format!("{front}{}", "x".repeat(length))).map(drop)
    };
    assert!(needs(500).is_ok() && needs(501).is_err());
}

#[test]
fn an_invalid_skill_is_left_out_and_the_problem_names_the_line() {
    for (front, expected) in [
        ("description: x", ", line 1: the front matter has no `name`"),
        ("name: pdf-tools", ", line 1: the front matter has no `description`"),
        ("name: pdf-tools\ndescription: \"\"", ", line 3: `description` has 0 characters"),
        ("name: pdf-tools\ndescription: 12", ", line 3: `description` is not a text"),
        ("name: ../../etc\ndescription: x", ", line 2: \"../../etc\" is not the name of a skill"),
        ("name: other\ndescription: x", ": the skill is called `other`, and its folder"),
        ("name: pdf-tools\nname: pdf-tools\ndescription: x", "not valid YAML"),
        ("name: pdf-tools\ndescription: Use it: now", "not valid YAML"),
        ("- name\n- description", "not valid YAML"),
        ("name: pdf-tools\ndescription: &a x\nlicense: *a", "not valid YAML"),
        ("name: pdf-tools\ndescription: x\nmetadata: x", "`metadata` is not a mapping"),
        ("\t{", "not valid YAML"),
        ("", "the front matter"),
    ] {
        let problem = with_front(front).unwrap_err();
        assert!(problem.contains(expected), "{front:?}: {problem}");
    }
    let folder = Folder::new();
    for (text, expected) in [
        ("# Do it\n", "line 1: no front matter"),
        ("---\nname: a\ndescription: x\n", "has no second line `---`"),
    ] {
        folder.write("a/SKILL.md", text);
        assert!(folder.read().1[0].contains(expected), "{:?}", folder.read());
    }
    folder.write("a/SKILL.md", b"---\nname: a\xff\n---\n");
    assert!(folder.read().1[0].contains("not UTF-8 at byte 11"));
}

#[test]
fn an_alias_bomb_is_refused_at_once() {
    let mut front =
        "name: pdf-tools\ndescription: x\nmetadata:\n  a: &a [x, x, x, x, x]\n".to_owned();
    for level in 1..30 {
        let (own, below) = (level, level - 1);
        let name = |n: i32| if n == 0 { "a".to_owned() } else { format!("a{n}") };
        let alias = format!("*{}", name(below));
        front += &format!("  {0}: &{0} [{1}, {1}, {1}, {1}]\n", name(own), alias);
    }
    let started = std::time::Instant::now();
    assert!(with_front(&front).unwrap_err().contains("not valid YAML"));
    let deep = format!("name: pdf-tools\ndescription: x\nmetadata: {}", "[".repeat(100_000));
    assert!(with_front(&deep).unwrap_err().contains("not valid YAML"));
    assert!(started.elapsed().as_secs() < 20, "{:?}", started.elapsed());
}

#[test]
fn hostile_folders_are_bounded_and_named() {
    let folder = Folder::new();
    let outside = Folder::new();
    let secret = outside.write("secret.txt", "secret");
    outside.skill("elsewhere");
    folder.skill("good");
    folder.skill("links");
    symlink(&secret, folder.path().join("links/secret.txt")).unwrap();
    symlink("/", folder.path().join("links/root")).unwrap();
    symlink(outside.path().join("elsewhere"), folder.path().join("elsewhere")).unwrap();
    folder.skill("many");
    for n in 0..10_000 {
        folder.write(&format!("many/files/{n}"), "");
    }
    folder.skill("folders");
    for n in 0..600 {
        fs::create_dir_all(folder.path().join(format!("folders/{}/{n}", n % 7))).unwrap();
    }
    folder.skill("deep");
    folder.write("deep/1/2/3/4/5/6/7/8/9/x", "");
    folder.write("long/SKILL.md", skill_text("long", "x", &"x\n".repeat(100_000)));
    let large = folder.write("large/x", "");
    folder.skill("large");
    fs::File::options().write(true).open(large).unwrap().set_len(1 << 40).unwrap();
    folder.skill(".hidden");
    folder.write("plain/README.md", "no skill");
    fs::create_dir_all(folder.path().join("folder/SKILL.md")).unwrap();
    folder.write("good/.git/config", "hidden");
    let (skills, problems) = folder.read();
    assert_eq!(skills, ["good", "links"]);
    let expected = [
        ("DIR/links/root`", "a link"),
        ("DIR/links/secret.txt`", "a link"),
        ("DIR/deep`", "more than 8 nested folders"),
        ("DIR/elsewhere`", "a link that leads out of the project"),
        ("DIR/folder/SKILL.md`", "not a regular file"),
        ("DIR/folders`", "more than 500 files or folders"),
        ("DIR/large`", "more than 16 MiB"),
        ("DIR/long/SKILL.md`", "larger than 128 KiB"),
        ("DIR/many`", "more than 500 files or folders"),
    ];
    assert_eq!(problems.len(), expected.len(), "{problems:#?}");
    for (problem, (path, what)) in problems.iter().zip(expected) {
        assert!(problem.contains(path) && problem.contains(what), "{problem}");
    }
    let (skills, _) = read_skills(folder.path(), Some(folder.path()));
    let good = skills.iter().find(|skill| skill.name() == "good").unwrap();
    assert_eq!(good.files().map(|(path, _)| path).collect::<Vec<_>>(), ["SKILL.md"]);
    assert!(skills.iter().all(|skill| skill.files().all(|(_, bytes)| bytes != b"secret")));
    assert_eq!(read_skills(&folder.path().join("none"), None).0, []);
}

#[test]
fn the_hash_changes_with_every_file_and_path() {
    let folder = Folder::new();
    let hash = || Skill::read(&folder.path().join("a")).unwrap().hash();
    folder.skill("a");
    folder.write("a/references/x.md", "one");
    let first = hash();
    assert_eq!(hash(), first);
    folder.write("a/references/x.md", "two");
    let second = hash();
    fs::rename(folder.path().join("a/references/x.md"), folder.path().join("a/y.md")).unwrap();
    let third = hash();
    assert!(first != second && second != third && first != third);
}

const EXTRACT: &str = ";;; name = \"extract\"\n;;; description = \"Extract the text\"\n;;; uses = \
                       [\"fs\"]\n;;; [[args]]\n;;; name = \"path\"\n;;; type_hint = \"path\"\n;;; \
                       description = \"The file\"\n(ret (fs.read (arg 0)))\n";

#[test]
fn scripts_are_programs_and_the_page_of_a_skill_lists_them() {
    let folder = Folder::new();
    folder.skill("pdf-tools");
    folder.write("pdf-tools/references/forms.md", "Forms");
    folder.write("pdf-tools/scripts/extract.wat", EXTRACT);
    folder.write(
        "pdf-tools/scripts/clean-up.sh",
        "#!/bin/sh\n# Remove blank lines\nsed '/^$/d' \"$1\"\n",
    );
    folder.write("pdf-tools/scripts/fill.py", "print(1)");
    folder.write("pdf-tools/scripts/notes.txt", "no script");
    folder.skill("git");
    folder.write("git/scripts/commit_push.wat", EXTRACT.replace("extract", "commit_push"));
    let (skills, problems) = read_skills(folder.path(), None);
    assert!(problems.is_empty(), "{problems:?}");
    let kinds: Vec<_> = skills[1].scripts().map(|script| (script.path, script.kind)).collect();
    let expected = [
        ("scripts/clean-up.sh", ScriptKind::Shell),
        ("scripts/extract.wat", ScriptKind::Program),
        ("scripts/fill.py", ScriptKind::Other("Python")),
    ];
    assert_eq!(kinds, expected);
    let capabilities: Vec<&str> = wattle_capability::ALL.iter().map(|c| c.name).collect();
    let skills = Skills::new(skills, &capabilities, &Catalog::built_in());
    assert!(skills.problems().is_empty(), "{:?}", skills.problems());
    let programs: Vec<String> =
        skills.programs().map(|program| program.name().to_string()).collect();
    assert_eq!(programs, ["skill_git.commit_push", "pdf_tools.clean_up", "pdf_tools.extract"]);
    let page = skills.page("pdf-tools").unwrap();
    for expected in [
        "Do it.\n\n---\n",
        "skill(\"pdf-tools\", FILE) returns: references/forms.md, scripts/clean-up.sh,",
        "pdf_tools.clean_up(args: list of strings = []) — Remove blank lines\n",
        "pdf_tools.extract(path: path) — Extract the text\n",
        "scripts/fill.py is Python, which does not run here",
    ] {
        assert!(page.contains(expected), "{expected:?} is not in {page}");
    }
    assert_eq!(skills.page("none"), None);
    assert_eq!(
        skills.unknown("pdf_tool"),
        "there is no skill \"pdf_tool\"; the nearest is `pdf-tools`"
    );
}

#[test]
fn a_script_that_cannot_be_a_program_is_named() {
    let folder = Folder::new();
    folder.skill("a");
    folder.write("a/scripts/extract.wat", EXTRACT);
    folder.write("a/scripts/extract.sh", "true");
    folder.write("a/scripts/other.wat", EXTRACT);
    folder.write("a/scripts/plain.wat", "(ret 1)");
    folder.write("a/scripts/below/x.sh", "true");
    folder.write("a/scripts/Größe.sh", "true");
    folder.write("a/scripts/bytes.sh", b"\xff\xfe");
    let skills = Skills::new(read_skills(folder.path(), None).0, &[], &Catalog::default());
    let names: Vec<String> = skills.programs().map(|program| program.name().to_string()).collect();
    assert_eq!(names, ["a.extract"]);
    let problems: Vec<String> =
        skills.problems().iter().map(|problem| problem.to_string()).collect();
    let expected = [
        ("scripts/Größe.sh`", "cannot be the name of a program"),
        ("scripts/below/x.sh`", "cannot be the name of a program"),
        ("scripts/bytes.sh`", "not UTF-8 at byte 0"),
        ("scripts/extract.wat`", "which is also the name of"),
        ("scripts/other.wat`", "the program is called `extract`, and its file `other.wat`"),
        ("scripts/plain.wat`", "no front matter"),
    ];
    assert_eq!(problems.len(), expected.len(), "{problems:#?}");
    for (problem, (path, what)) in problems.iter().zip(expected) {
        assert!(problem.contains(path) && problem.contains(what), "{problem}");
    }
}

#[test]
fn skills_are_found_by_words_and_later_ones_replace_earlier_ones() {
    let (one, two) = (Folder::new(), Folder::new());
    for (name, about) in [("pdf", "Fills forms in PDF files"), ("tax", "Computes taxes of sales")] {
        one.write(&format!("{name}/SKILL.md"), skill_text(name, about, "One."));
    }
    two.write("tax/SKILL.md", skill_text("tax", "Computes: \"taxes\" # of sales", "Two."));
    let all = [one.path(), two.path()].map(|path| read_skills(path, None).0);
    let skills = Skills::new(all.into_iter().flatten(), &[], &Catalog::default());
    assert_eq!(skills.iter().len(), 2);
    assert_eq!(skills.get("tax").unwrap().instructions(), "Two.");
    assert_eq!(skills.get("tax").unwrap().description(), "Computes: \"taxes\" # of sales");
    assert_eq!(skills.search("fill in this form, please")[0].name(), "pdf");
}
