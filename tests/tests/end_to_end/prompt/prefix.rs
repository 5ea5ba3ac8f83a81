//! Tests that the requests of all sessions of an agent begin with the same prompt and functions,
//! regardless of the sessions' first messages, so that a provider can cache this prefix.

use std::path::Path;

use wattle_agent::host::capability::egress::{Egress, Policy};
use wattle_agent::host::capability::files::Files;
use wattle_agent::host::catalog::Folders;
use wattle_agent::host::machine::{Dialect, Message, Role};
use wattle_agent::host::rt::{Grants, Limits};
use wattle_agent::{Host, Resources, Settings};
use wattle_tests::{Job, Scripted};

/// The first messages of two sessions, about different subjects.
const MESSAGES: [&str; 2] =
    ["How high is the tide in Emden tomorrow?", "Convert the invoices of May to one CSV file"];

/// Returns a host with `own` additional programs. The last two are about tides and invoices.
fn host(folder: &Path, own: usize) -> Host {
    for number in 0..own {
        let (name, about) = match own - number {
            1 => ("zz_tide".to_owned(), "Give the height of the tide at a harbour"),
            2 => ("zz_invoice".to_owned(), "Read an invoice and give its lines as CSV"),
            _ => (format!("own_{number:03}"), "Do one of the many other things of this deployment"),
        };
        let text = format!(
            ";;; name = \"{name}\"\n;;; description = \"{about}\"\n;;; [[args]]\n;;; name = \
             \"place\"\n;;; description = \"A name\"\n(ret \"x\")\n"
        );
        std::fs::write(folder.join(format!("{name}.wat")), text).unwrap();
    }
    let folders = Folders::open(&[folder], &|_, _| Ok(()));
    assert!(folders.catalog().problems().is_empty());
    Host::new(Limits::default(), folders, Egress::new(Policy::default())).unwrap()
}

fn everything(host: &Host) -> Grants {
    Grants::without_state(host.runtime().capabilities().iter().map(|capability| capability.name))
}

#[test]
fn two_sessions_share_their_prompts_as_a_prefix() {
    for own in [0, 5, 100, 101, 150] {
        let folder = tempfile::tempdir().unwrap();
        let host = host(folder.path(), own);
        let grants = everything(&host);
        for dialect in [Dialect::Text, Dialect::Native] {
            let listings = MESSAGES.map(|message| host.listing(None, message));
            let prompts = listings
                .each_ref()
                .map(|listing| host.prompt(&Settings::default(), &grants, listing, dialect));
            let [one, two] = prompts.each_ref().map(ToString::to_string);
            let same = one.bytes().zip(two.bytes()).take_while(|(a, b)| a == b).count();
            let longest = one.len().max(two.len());
            assert!(same * 100 >= longest * 95, "{own} {dialect:?}: {same} of {longest} bytes");
            assert!(same >= prompts[0].stable.len() && prompts[0].stable == prompts[1].stable);

            // Each of the deployment's programs is listed.
            for entry in host.catalog().iter().filter(|entry| entry.origin().path().is_some()) {
                let name = entry.name().as_str();
                let is_listed = prompts[0].stable.split([' ', '\n', '(']).any(|word| word == name);
                assert!(is_listed, "{own} {dialect:?}: {name}");
            }
        }
    }
}

#[test]
fn a_typed_program_is_listed_with_the_shape_of_its_result() {
    let folder = tempfile::tempdir().unwrap();
    let text = ";;; name = \"get_events\"\n;;; description = \"List the events of a day\"\n;;; \
                result = \"[{id, title}]\"\n;;; [[args]]\n;;; name = \"day\"\n;;; format = \
                \"date\"\n;;; description = \"The day\"\n;;; [[args]]\n;;; name = \"max\"\n;;; \
                type_hint = \"int\"\n;;; format = \"int from 1\"\n;;; default = 9\n;;; description = \
                \"At most so many\"\n(out (list (obj \"id\" 1)))\n";
    std::fs::write(folder.path().join("get_events.wat"), text).unwrap();
    let host = host(folder.path(), 0);
    let (grants, listing) = (everything(&host), host.listing(None, "x"));
    for dialect in [Dialect::Text, Dialect::Native] {
        let prompt = host.prompt(&Settings::default(), &grants, &listing, dialect).to_string();
        let line = "\nget_events(day: date, max?: int from 1) → [{id, title}] — List the events";
        assert!(prompt.contains(line), "{prompt}");
    }
}

#[test]
fn past_a_hundred_programs_those_of_the_task_are_described_at_the_end() {
    let folder = tempfile::tempdir().unwrap();
    let host = host(folder.path(), 150);
    let grants = everything(&host);
    let prompt = |message| {
        let listing = host.listing(None, message);
        host.prompt(&Settings::default(), &grants, &listing, Dialect::Text)
    };
    let [tide, invoice] = MESSAGES.map(prompt);
    assert!(tide.stable.contains("\nown_099(place) — Do one"), "{}", tide.stable);
    assert!(!tide.stable.contains("own_100(") && tide.stable.contains(" own_100 "));
    assert!(tide.rest.contains("\nzz_tide(place) — Give the height"), "{}", tide.rest);
    assert!(invoice.rest.contains("\nzz_invoice(place) — Read an invoice"), "{}", invoice.rest);
    assert!(!invoice.rest.contains("zz_tide("), "{}", invoice.rest);
    assert!(!prompt("hello").rest.contains("place"));
}

/// In the native dialect, `done` is a function. In the text dialect, `ToolCall::Response` replaces
/// it.
#[test]
fn done_is_listed_in_the_native_dialect_only() {
    let folder = tempfile::tempdir().unwrap();
    let host = host(folder.path(), 0);
    let (grants, listing) = (everything(&host), host.listing(None, "x"));
    let prompt = host.prompt(&Settings::default(), &grants, &listing, Dialect::Text).to_string();
    assert!(!prompt.contains("done("), "{prompt}");
    assert!(prompt.contains("ToolCall::Response(") && prompt.contains("\nhelp(topic?)"));
    assert!(
        host.functions(&Settings::default(), &grants)
            .iter()
            .any(|function| function.name == "done")
    );
}

/// The families of built-in programs have a fixed order. Programs that are useful for every task
/// come first.
#[test]
fn built_in_programs_are_listed_by_family() {
    let folder = tempfile::tempdir().unwrap();
    let host = host(folder.path(), 0);
    let (grants, listing) = (everything(&host), host.listing(None, "x"));
    let prompt = host.prompt(&Settings::default(), &grants, &listing, Dialect::Text);
    let section = prompt.stable.split("# Catalog programs").nth(1).unwrap();
    let names: Vec<&str> =
        section.lines().skip(1).filter_map(|l| Some(l.split_once('(')?.0)).collect();
    assert!(names.contains(&"fetch") && !names.contains(&"web_text"), "near-twins are listed once");
    assert!(names.len() > 40 && names.len() < host.catalog().len() - 20, "{names:?}");
    assert_eq!(names[..3], ["help", "shell", "search"]);
    let families = names[11..].iter().map(|name| name.split('_').next().unwrap());
    let mut families: Vec<&str> = families.collect();
    families.dedup();
    assert_eq!(families, ["file", "text", "csv", "json", "http", "web", "date", "ai"]);
}

/// The first request contains the length of the part of the prompt that all sessions share. The
/// programs for the session's task are listed after that part.
#[tokio::test]
async fn the_request_says_which_part_of_the_prompt_is_shared() {
    let folder = tempfile::tempdir().unwrap();
    let host = host(folder.path(), 150);
    let mut stable = Vec::new();
    for message in MESSAGES {
        let model = Scripted::new(&["ToolCall::Response(\"done\")"]);
        let files = std::sync::Arc::new(Files::overlay(None, 1 << 20));
        let job = Job::new(message, Resources::new(&host, files).grants());
        let (parts, request) = job.on(&host, &model, &Settings::default());
        wattle_agent::host::run(parts, &request, &|_: &_| {}).await;
        let requests = model.requests_verbatim();
        let Message { role, content, stable: length, .. } = &requests[0][0];
        assert_eq!(*role, Role::System);
        let (shared, own) = content.split_at(*length);
        assert!(own.contains("# Of these, for this task\nzz_"), "{own}");
        stable.push(shared.to_owned());
    }
    assert!(stable[0].len() > 10_000);
    assert_eq!(stable[0], stable[1]);
}
