//! Tests a machine that loses power. The store then has the state of its last durable write, and
//! all later writes are gone. No call that must not be repeated is made twice.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use wattle_agent::host::TenantStore;
use wattle_agent::host::journal::{Journal as _, RunOutcome, SharedJournal, end};
use wattle_agent::{Store, Tenant};

use super::place::{ByTurn, Place, answer, done, wat};
use super::stopped::Stopping;

const DAY: Duration = Duration::from_secs(24 * 3_600);

/// The files of a store.
const FILES: [&str; 2] = ["s.db", "s.db-wal"];

fn open(folder: &Path) -> TenantStore {
    Store::open(&folder.join("s.db"), DAY).unwrap().tenant(&Tenant::default())
}

/// Copies the files of a store, without the locks of its process, which a restarted machine does
/// not have.
fn snapshot(from: &Path, to: &Path) {
    for name in FILES {
        std::fs::copy(from.join(name), to.join(name)).unwrap();
    }
    let copy = rusqlite::Connection::open(to.join("s.db")).unwrap();
    copy.execute_batch("DELETE FROM hold; DELETE FROM replica").unwrap();
}

/// Returns the URL to which the program posts in the given round.
fn form(number: usize) -> String {
    format!("https://a.example/form{number}")
}

fn script() -> Vec<String> {
    let post = |number| format!("(resv (http.post? \"{}\" \"a\" \"\"))\n", form(number));
    let posts: String = (0..3).map(post).collect();
    let at_once = r#"(each $r (par.run? (arr.from_json? """[
        ["http_post","https://a.example/form3","a"],["http_post","https://a.example/form4","a"]]"""))
    (out $r))"#;
    vec![wat("(resv (str.from_int (kv.incr? \"n\" 1)))"), wat(&posts), wat(at_once), done()]
}

#[tokio::test]
async fn after_a_loss_of_power_no_post_is_made_twice() {
    let (first, model) = (Place::new(), ByTurn(script()));
    let mut moments = 0;
    for written in [false, true] {
        for write in 1.. {
            let (running, kept) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
            let place = Place { store: open(running.path()), ..first.another() };
            let copies = (running.path().to_owned(), kept.path().to_owned());
            let after_durable = Box::new(move || snapshot(&copies.0, &copies.1));
            let stopping = Stopping::observed(&place.store, (write, written), after_durable);
            let journal: SharedJournal = Arc::<Stopping>::clone(&stopping);
            let over = tokio::select! {
                _ = place.run(&journal, &model, "r") => true,
                () = stopping.stopped.notified() => false,
            };
            let posted = |number| place.network.made(&format!("POST {}", form(number)));
            let posts = || (0..5).map(posted).sum::<usize>();
            if over {
                assert_eq!(posts(), 5, "write {write}");
                break;
            }
            moments += 1;
            if !kept.path().join("s.db").exists() {
                assert_eq!(posts(), 0, "write {write}: posted before anything was durable");
                continue;
            }
            let network = Arc::clone(&place.network);
            let again = Place { store: open(kept.path()), network, ..first.another() };
            if again.store.run("r").await.unwrap().is_none() {
                assert_eq!(posts(), 0, "write {write}: the run is lost");
                continue;
            }
            let ended = again.resume(&model, "r", &[]).await.0.unwrap();
            assert_eq!(answer(&ended), "done", "write {write}, written {written}");
            for number in 0..5 {
                assert!(posted(number) <= 1, "form {number}, write {write}, written {written}");
            }
            let RunOutcome::Done(report) = ended else { panic!() };
            end(&again.journal(), &report, false).await.unwrap();
            assert_eq!(again.value("n").await.as_deref(), Some("1"));
        }
    }
    assert!(moments > 15, "{moments}");
}

#[tokio::test]
async fn only_calls_that_must_not_be_repeated_wait_for_the_disk() {
    let place = Place::new();
    let durable = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&durable);
    place.store.file().observe(move |transaction| {
        counter.fetch_add(usize::from(transaction.is_durable), Ordering::SeqCst);
    });
    let counted = async |id: &str, program: &str| {
        let before = durable.load(Ordering::SeqCst);
        let model = ByTurn(vec![wat(program), done()]);
        assert_eq!(answer(&place.run(&place.journal(), &model, id).await.0), "done");
        durable.load(Ordering::SeqCst) - before
    };
    let harmless = r#"(kv.set? "k" "v") (fs.append? "log.txt" "one\n")
(resv (http.get? "https://a.example/page"))"#;
    assert_eq!(counted("reads", harmless).await, 0);
    let post = r#"(resv (http.post? "https://a.example/form" "a" ""))"#;
    assert_eq!(counted("posts", post).await, 2, "before and after the call");
}
