//! The table of the ways in which data can leave a run (docs/security.md). Each row's call runs
//! under each rule, so the table says what the rules do now.

use std::sync::Arc;

use wattle_agent::host::ExampleWorld;
use wattle_agent::{Host, Resources};
use wattle_capability::PortFuture;
use wattle_capability::agent::{Agents, Delegated, Delegates, Delegation};
use wattle_capability::policy::{Policy, Preflight, Rule};
use wattle_capability::tool::{ToolBox, Tools};
use wattle_catalog::Fixtures;
use wattle_rt::Limits;
use wattle_tests::built_in_host;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/security.md");

/// The first line of the table.
const HEAD: &str = "| channel | a call | by default | denied by |";

/// The rules under which each call runs.
const RULES: &[&str] = &[
    "*",
    "egress",
    "http",
    "host:*",
    "web",
    "ai",
    "agent",
    "tool",
    "publish",
    "issue",
    "image",
    "git",
    "memory",
    "kv",
    "fs",
    "private",
    "protected",
];

/// The application's tools and other agents.
struct Others;

impl ToolBox for Others {
    fn call(&self, _: String, _: String) -> PortFuture<'_, String> {
        Box::pin(async { Ok("done".to_owned()) })
    }
}

impl Delegates for Others {
    fn ask(&self, _: Delegation) -> PortFuture<'_, Delegated> {
        Box::pin(async { Ok(Delegated::Answer("done".to_owned())) })
    }
}

/// Returns true if the guard refuses the program.
async fn is_refused(host: &Host, source: &str, policy: Policy) -> bool {
    let scene = ExampleWorld::new(&Fixtures::default()).await.unwrap();
    let access = Resources { trusted: Some(scene.trusted()), ..scene.access(host) };
    let guard = Preflight::new(policy, None);
    let grants = scene.grants(access).with(Tools(Arc::new(Others))).with(Agents(Arc::new(Others)));
    let grants = Arc::new(grants.guarded(Arc::new(guard)));
    let program = host.runtime().prepare(source).await.unwrap();
    let shown = match host.runtime().run(&program, &grants, Vec::new()).await {
        Ok(outcome) => format!("{:?} {:?}", outcome.texts(), outcome.failure),
        Err(error) => error.to_string(),
    };
    shown.contains(" may not ")
}

/// Returns a row with what is measured in its last two columns.
async fn measured(host: &Host, row: &str) -> String {
    let mut columns = row.trim_matches('|').split('|').map(str::trim);
    let (channel, call) = (columns.next().unwrap(), columns.next().unwrap());
    let mut denied = Vec::new();
    for rule in RULES {
        let deny: Rule = rule.parse().unwrap();
        let allowed = ["private".parse().unwrap()].into_iter().filter(|rule| *rule != deny);
        let policy = Policy::new(allowed.collect(), Vec::new(), vec![deny]);
        if is_refused(host, call.trim_matches('`'), policy).await {
            denied.push(format!("`{rule}`"));
        }
    }
    let default = if is_refused(host, call.trim_matches('`'), Policy::default()).await {
        "denied"
    } else if denied.contains(&"`protected`".to_owned()) {
        "asked when it is applied"
    } else {
        "allowed"
    };
    format!("| {channel} | {call} | {default} | {} |", denied.join(", "))
}

#[tokio::test]
async fn the_table_of_channels_says_what_each_rule_denies() {
    let host = built_in_host(Limits::default());
    let page = wattle_cases::read(PAGE);
    let (mut lines, mut in_table, mut rows) = (Vec::new(), false, 0);
    for line in page.lines() {
        in_table = line == HEAD || (in_table && line.starts_with('|'));
        if in_table && line != HEAD && !line.starts_with("| ---") {
            rows += 1;
            lines.push(measured(&host, line).await);
        } else {
            lines.push(line.to_owned());
        }
    }
    assert!(rows >= 20, "the table has {rows} rows");
    wattle_cases::compare(PAGE, &format!("{}\n", lines.join("\n")));
}
