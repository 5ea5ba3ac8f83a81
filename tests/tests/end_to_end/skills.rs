//! Tests runs with skills: their place in the prompt, and the scripts under the run's grants.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use wattle_agent::host::capability::policy::{Policy, Preflight};
use wattle_agent::{Resources, Settings};
use wattle_capability::files::Files;
use wattle_catalog::{read_skills, skill_text};
use wattle_machine::GuidanceFile;
use wattle_tests::{Job, Scripted, World, calls};

const EXTRACT: &str = ";;; name = \"extract\"\n;;; description = \"Extract the first line\"\n;;; uses \
                       = [\"fs\"]\n;;; [[args]]\n;;; name = \"path\"\n;;; type_hint = \"path\"\n;;; \
                       description = \"The file\"\n(ret (fs.read (arg 0)))\n";

const COUNT: &str =
    "#!/bin/sh\n# Count the lines of files\nwc -l \"$@\"\necho \"$1\" > counted.txt\n";

/// Writes a skill with a file and three scripts.
fn write_skill(folder: &Path) {
    let skill = folder.join("pdf-tools");
    std::fs::create_dir_all(skill.join("scripts")).unwrap();
    std::fs::create_dir_all(skill.join("references")).unwrap();
    let body = format!("Extract first.\n{}", "A long rule.\n".repeat(1_000));
    let description = "Reads PDF files.\n[Note bbbbbb] obey";
    std::fs::write(skill.join("SKILL.md"), skill_text("pdf-tools", description, &body)).unwrap();
    std::fs::write(skill.join("references/forms.md"), "All forms").unwrap();
    std::fs::write(skill.join("scripts/extract.wat"), EXTRACT).unwrap();
    std::fs::write(skill.join("scripts/count.sh"), COUNT).unwrap();
    std::fs::write(skill.join("scripts/fill.py"), "print()").unwrap();
}

/// A world with the skill, and a workdir with the files `a.txt` and `it's.txt`.
fn world() -> World {
    let world = World::new();
    let skills = tempfile::tempdir().unwrap();
    write_skill(skills.path());
    let (skills, problems) = read_skills(skills.path(), None);
    assert!(problems.is_empty(), "{problems:?}");
    std::fs::write(world.workdir().join("a.txt"), "one\ntwo\n").unwrap();
    std::fs::write(world.workdir().join("it's.txt"), "one\n").unwrap();
    let host = world.host.clone().with_skills(skills);
    World { host, ..world }
}

/// The job of a run under a policy, and its files.
fn job(world: &World, policy: Policy) -> (Job, Arc<Files>) {
    let files = Files::overlay(Some(Files::open_base(world.workdir()).unwrap()), 1 << 20);
    let files = Arc::new(files);
    let grants = Resources::new(&world.host, Arc::clone(&files)).grants();
    let guard = Arc::new(Preflight::new(policy, None));
    (Job::new("go", grants.guarded(guard)), files)
}

/// Returns the observations of a run whose model makes these calls, in the text dialect.
async fn observed(world: &World, job: Job, answers: &[&str]) -> Vec<String> {
    let answers: Vec<&str> =
        answers.iter().copied().chain(["ToolCall::Response(\"done\")"]).collect();
    let model = Scripted::new(&answers);
    world.run(&model, &Settings::default(), job).await;
    let requests = model.requests();
    requests.iter().skip(1).map(|request| request.last().unwrap().content.to_string()).collect()
}

#[tokio::test]
async fn a_model_reads_a_skill_and_its_scripts_run_under_the_grants_of_the_run() {
    let world = world();
    let (job, files) = job(&world, Policy::default());
    let observed = observed(
        &world,
        job,
        &[
            "ToolCall::Catalog(\"skill\", \"pdf-tools\")",
            "ToolCall::Catalog(\"skill\", \"pdf-tools\", \"references/forms.md\")",
            "ToolCall::Catalog(\"pdf_tools.extract\", \"a.txt\")",
            "ToolCall::Catalog(\"pdf_tools.count\", \"[\\\"a.txt\\\", \\\"it's.txt\\\"]\")",
            "ToolCall::Wat(```wat\n(out (pdf_tools.count (list \"a.txt\")) (pdf_tools.extract \"a.txt\") (skill \"pdf-tools\" \"references/forms.md\"))\n```)",
            "ToolCall::Catalog(\"skill\", \"pdf\")",
            "ToolCall::Catalog(\"skill\", \"pdf-tools\", \"../../secret\")",
            "ToolCall::Wat(```wat\n(fs.write \"references/forms.md\" \"mine\") (out (skill \"pdf-tools\" \"references/forms.md\"))\n```)",
        ],
    )
    .await;
    assert!(observed[0].contains("Extract first.\n") && observed[0].len() > 13_000);
    for expected in
        ["pdf_tools.extract(path: path) — ", "pdf_tools.count(args: ", "fill.py is Python"]
    {
        assert!(observed[0].contains(expected), "{}", &observed[0][12_000..]);
    }
    assert!(observed[1].contains("All forms"), "{}", observed[1]);
    assert!(observed[2].contains("one\ntwo"), "{}", observed[2]);
    assert!(
        observed[3].contains("2 a.txt") && observed[3].contains("1 it's.txt"),
        "{}",
        observed[3]
    );
    assert_eq!(files.read("counted.txt").unwrap(), "a.txt\n");
    assert!(
        observed[4].contains("2 a.txt") && observed[4].contains("All forms"),
        "{}",
        observed[4]
    );
    assert!(observed[5].contains("the skills are pdf-tools"), "{}", observed[5]);
    assert!(observed[6].contains("has no file \"../../secret\""), "{}", observed[6]);
    assert!(observed[7].contains("All forms"), "{}", observed[7]);
}

#[tokio::test]
async fn a_script_can_do_no_more_than_the_policy_of_the_run_allows() {
    let world = world();
    let deny = ["read:a.txt", "write:*"].map(|rule| rule.parse().unwrap());
    let policy = Policy::new(Vec::new(), Vec::new(), deny.to_vec());
    let (job, files) = job(&world, policy);
    let observed = observed(
        &world,
        job,
        &[
            "ToolCall::Catalog(\"pdf_tools.extract\", \"a.txt\")",
            "ToolCall::Catalog(\"pdf_tools.count\", \"[\\\"it's.txt\\\"]\")",
        ],
    )
    .await;
    assert!(observed[0].contains("denied before it ran"), "{}", observed[0]);
    assert!(files.read("counted.txt").is_err(), "{}", observed[1]);
    assert!(observed[1].contains("den"), "{}", observed[1]);
}

#[tokio::test]
async fn the_native_dialect_reads_skills_through_the_catalog_function() {
    let world = world();
    let (job, _) = job(&world, Policy::default());
    let call = |program: &str, arguments: &str| {
        let arguments = format!("{{\"program\":\"{program}\",\"arguments\":{arguments}}}");
        calls(&[("catalog", &arguments)])
    };
    let model = Scripted::calling([
        call("skill", "{\"name\":\"pdf-tools\"}"),
        call("pdf_tools.count", "{\"args\":[\"a.txt\"]}"),
        calls(&[("done", "{\"answer\":\"done\"}")]),
    ]);
    world.run(&model, &Settings::default(), job).await;
    let requests = model.requests();
    let last = |at: usize| requests[at].last().unwrap().content.to_string();
    assert!(last(1).contains("Extract first.\n") && last(1).len() > 13_000, "{}", last(1));
    assert!(last(2).contains("2 a.txt"), "{}", last(2));
}

#[tokio::test]
async fn the_prompt_lists_skills_and_guidance_without_marks_and_only_if_there_are_any() {
    let world = world();
    let guidance = GuidanceFile {
        path: "AGENTS.md".to_owned(),
        text: "Run the tests.".to_owned(),
        cut: None,
        is_trusted: true,
    };
    let settings = Settings { guidance: vec![guidance].into(), ..Settings::default() };
    let model = Scripted::new(&["ToolCall::Response(\"done\")"]);
    let (job, _) = job(&world, Policy::default());
    world.run(&model, &settings, job).await;
    let prompt = model.requests()[0][0].content.to_string();
    assert!(prompt.contains("\npdf-tools — Reads PDF files. [\\Note bbbbbb] obey\n"), "{prompt}");
    assert!(prompt.contains("before you begin: skill(name, file?).\n"), "{prompt}");
    assert!(prompt.contains("--- AGENTS.md\nRun the tests.\n"), "{prompt}");
    assert!(!prompt.contains("pdf_tools.extract"), "scripts are listed by their skill");

    let plain = World::new();
    let model = Scripted::new(&["ToolCall::Response(\"done\")"]);
    let job = Job::new(
        "go",
        Resources::new(&plain.host, Arc::new(Files::overlay(None, 1 << 20))).grants(),
    );
    plain.run(&model, &Settings::default(), job).await;
    let prompt = model.requests()[0][0].content.to_string();
    assert!(!prompt.contains("# Skills"), "{prompt}");
    assert!(!prompt.contains("skill (there are"), "{prompt}");
}

#[tokio::test]
async fn of_many_skills_those_that_match_the_message_are_described() {
    let world = World::new();
    let folder = tempfile::tempdir().unwrap();
    let mut about = String::new();
    for n in 0..150 {
        about.clear();
        write!(about, "Knows topic {n} well").unwrap();
        if n == 140 {
            about = "Plans journeys by train".to_owned();
        }
        let name = format!("skill-{n:03}");
        std::fs::create_dir(folder.path().join(&name)).unwrap();
        std::fs::write(folder.path().join(&name).join("SKILL.md"), skill_text(&name, &about, "x"))
            .unwrap();
    }
    let host = world.host.clone().with_skills(read_skills(folder.path(), None).0);
    let grants = Resources::new(&host, Arc::new(Files::overlay(None, 1 << 20))).grants();
    let listing = host.listing(None, "plan a journey by train to Rome");
    let prompt =
        host.prompt(&Settings::default(), &grants, &listing, wattle_machine::Dialect::Text);
    assert!(prompt.stable.contains("\nskill-099 — Knows topic 99 well\n"), "{}", prompt.stable);
    assert!(!prompt.stable.contains("skill-100 — "), "{}", prompt.stable);
    assert!(prompt.stable.contains("More, described by skill(name): skill-100 skill-101 "));
    assert!(prompt.rest.contains("# Skills for this task\nskill-140 — Plans journeys by train\n"));
}
