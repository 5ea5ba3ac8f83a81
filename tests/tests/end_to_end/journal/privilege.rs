//! Tests that a privilege of a program holds when a run is resumed, as long as the operator gives it.

use wattle_agent::Host;
use wattle_agent::host::capability::egress::{Egress, Policy as EgressPolicy};
use wattle_agent::host::capability::policy::{Policy, Privilege, Privileges, Rule, SourceHash};
use wattle_agent::host::catalog::Folders;
use wattle_agent::host::journal::{ParkedRun, RunOutcome, end};
use wattle_agent::host::rt::Limits;

use super::place::{ByTurn, Place, answer, done, observations, wat};

const PAY: &str = r#";;; name = "pay"
;;; description = "Pay somebody"
;;; grants = ["host:api.bank.example"]
;;; [[args]]
;;; name = "to"
;;; description = "The recipient"

(ret (http.post "https://api.bank.example/pay" (arg 0) ""))
"#;

const SENT: &str = "POST https://api.bank.example/pay";

fn policy(privileges: Privileges) -> Policy {
    let rule = |text: &str| vec![text.parse::<Rule>().unwrap()];
    Policy::new(Vec::new(), rule("kv.set"), rule("http")).giving(privileges)
}

fn given() -> Privileges {
    let grants = vec!["host:api.bank.example".parse().unwrap()];
    let privilege = Privilege { sha256: SourceHash::of(PAY), grants };
    Privileges([("pay".to_owned(), privilege)].into())
}

/// A run that pays by a program of its own, and asks afterwards. It then pays by its own call.
async fn parked() -> (Place, ByTurn) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("pay.wat"), PAY).unwrap();
    let folders = Folders::open(&[folder.path()], &|_, _| Ok(()));
    let egress = Egress::new(EgressPolicy::default());
    let host = Host::new(Limits::default(), folders, egress).unwrap();
    let place = Place { policy: policy(given()), ..Place::with(host) };
    let script = ByTurn(vec![
        wat("(out (pay \"ada\"))\n(drop (call \"kv_set\" \"a\" \"1\"))"),
        "ToolCall::Catalog(\"pay\", to=\"bob\")".to_owned(),
        done(),
    ]);
    let (ended, _) = place.run(&place.journal(), &script, "r").await;
    let RunOutcome::Parked(ParkedRun { waiting, .. }) = ended else { panic!("{ended:?}") };
    assert_eq!(waiting[0].call, "1.1");
    assert_eq!(place.network.made(SENT), 1);
    (place, script)
}

#[tokio::test]
async fn a_resumed_run_and_its_replay_have_the_privilege() {
    let (place, script) = parked().await;
    let ended = place.resume(&script, "r", &[("1.1", true)]).await.0.unwrap();
    assert_eq!(answer(&ended), "done");
    assert_eq!(place.network.made(SENT), 2, "one request for each payment");
    let RunOutcome::Done(report) = ended else { panic!() };
    end(&place.journal(), &report, false).await.unwrap();
    assert_eq!(place.replay("r").await.difference, None);
    assert_eq!(place.network.made(SENT), 2);
}

#[tokio::test]
async fn a_resumed_run_has_no_privilege_that_was_withdrawn() {
    let (mut place, script) = parked().await;
    place.policy = policy(Privileges::default());
    let ended = place.resume(&script, "r", &[("1.1", true)]).await.0.unwrap();
    assert_eq!(answer(&ended), "done");
    assert_eq!(place.network.made(SENT), 1, "nothing was sent afterwards");
    let observations = observations(&place, "r").await;
    assert!(observations.iter().all(|seen| seen.contains("[programs.pay]")), "{observations:?}");
}
