//! Tests records that contain a key or a secret: the values are unreadable in the journal's file,
//! and unchanged in a resumed run.

use std::path::Path;
use std::time::Duration;

use wattle_agent::host::capability::policy::Policy;
use wattle_agent::host::journal::RunOutcome;
use wattle_agent::host::ledger::Keys;
use wattle_agent::model::ApiKey;
use wattle_agent::{Store, Tenant};

use super::place::{ByTurn, Place, answer, done, wat};

const KEY: &str = "sk-0123456789";

/// Returns an environment with a store on disk. Requests to `a.example` need approval.
fn asking(folder: &Path) -> Place {
    let rules = vec!["host:a.example".parse().unwrap()];
    let place = Place { policy: Policy::new(Vec::new(), rules, Vec::new()), ..Place::new() };
    place.host.mask().add_key(&ApiKey::new(KEY).unwrap());
    let store = Store::open(&folder.join("s.db"), Duration::from_secs(3_600)).unwrap();
    let keys = Keys::new(folder.join("keys"));
    let store = store.tenant(&Tenant::default()).sealing(place.host.mask().clone(), keys);
    Place { store, ..place }
}

fn is_in_a_file(folder: &Path) -> bool {
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    files.filter(|path| path.is_file()).any(|path| {
        std::fs::read(path).unwrap().windows(KEY.len()).any(|part| part == KEY.as_bytes())
    })
}

#[tokio::test]
async fn a_resumed_run_executes_what_the_model_said() {
    let folder = tempfile::tempdir().unwrap();
    let place = asking(folder.path());
    let body = format!(
        "(fs.write? \"said.txt\" \"{KEY}\")\n(resv (http.get? \"https://a.example/\"))\n\
         (resv (str.replace? (fs.read? \"said.txt\") \"sk-\" \"it is \"))"
    );
    let model = ByTurn(vec![wat(&body), done()]);
    let (ended, _) = place.run(&place.journal(), &model, "r").await;
    let RunOutcome::Parked(parked) = ended else { panic!("{ended:?}") };
    assert_eq!(parked.waiting[0].call, "1.1");
    assert!(!is_in_a_file(folder.path()));

    let ended = place.resume(&model, "r", &[("1.1", true)]).await.0.unwrap();
    assert_eq!(answer(&ended), "done");
    let observed = super::place::observations(&place, "r").await;
    assert!(observed[0].contains("it is 0123456789"), "{observed:?}");
    assert_eq!(place.replay("r").await.difference, None);
    assert!(!is_in_a_file(folder.path()) && !is_in_a_file(place.workdir()));
    let args = place.steps()[0]["args"]["body"].as_str().unwrap().to_owned();
    assert!(args.contains("\"***\""), "{args}");
}
