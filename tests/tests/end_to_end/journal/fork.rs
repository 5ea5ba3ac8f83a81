//! Tests forks: runs that begin with the first steps of another run.

use std::time::Duration;

use wattle_agent::host::journal::{ForkError, RunLimits, fork};

use super::place::{ByTurn, Place, answer, done, observations, wat};

/// No limits.
const ALL: RunLimits =
    RunLimits { max_steps: None, timeout: None, max_tokens_total: None, max_cost: None };

fn script(second: &str) -> ByTurn {
    ByTurn(vec![
        wat(r#"(fs.append? "log.txt" "one\n") (resv (str.from_int (kv.incr? "n" 1)))"#),
        second.to_owned(),
        done(),
    ])
}

#[tokio::test]
async fn a_fork_shares_the_first_steps() {
    let place = Place::new();
    let first = script(&wat(r#"(resv "first")"#));
    let (ended, _) = place.run(&place.journal(), &first, "r").await;
    assert_eq!(answer(&ended), "done");
    let run = place.opened("r").await;
    let second = script(&wat(r#"(resv (fs.read? "log.txt"))"#));

    fork(&place.journal(), &run, 1, None, "f".to_owned(), ALL).await.unwrap();
    assert_eq!(place.opened("f").await.start.forked, Some(("r".to_owned(), 1)));
    let (ended, files) = place.resume(&second, "f", &[]).await;
    assert_eq!(answer(&ended.unwrap()), "done");
    assert_eq!(place.value("n").await.as_deref(), Some("1"), "the first step is not done again");
    assert_eq!(&*files.read("log.txt").unwrap(), b"one\n");
    let (was, is) = (observations(&place, "r").await, observations(&place, "f").await);
    assert_eq!(was[0], is[0]);
    assert!(was[1].ends_with("first") && is[1].contains("\none"), "{is:?}");
    assert_eq!(place.replay("f").await.difference, None);

    fork(&place.journal(), &run, 0, None, "g".to_owned(), ALL).await.unwrap();
    let (ended, _) = place.resume(&first, "g", &[]).await;
    assert_eq!(answer(&ended.unwrap()), "done");
    assert_eq!(place.value("n").await.as_deref(), Some("2"), "the first step is part of the fork");

    let error = fork(&place.journal(), &run, 7, None, "h".to_owned(), ALL).await.unwrap_err();
    assert!(matches!(error, ForkError::TooFar { asked: 7, has: 2 }), "{error}");
}

#[tokio::test]
async fn a_fork_may_have_another_message() {
    let place = Place::new();
    let first = script(&wat(r#"(resv "first")"#));
    place.run(&place.journal(), &first, "r").await;
    let run = place.opened("r").await;
    let message = Some("now read the log".to_owned());
    fork(&place.journal(), &run, 1, message, "f".to_owned(), ALL).await.unwrap();
    let (ended, files) = place.resume(&script(&done()), "f", &[]).await;
    assert_eq!(answer(&ended.unwrap()), "done");
    assert_eq!(&*files.read("log.txt").unwrap(), b"one\n", "what the first step wrote is there");
    let messages =
        wattle_agent::host::journal::conversation(&place.journal(), &place.opened("f").await)
            .await
            .unwrap();
    let last = wattle_tests::plain(&messages[messages.len() - 2].content);
    assert!(
        last.starts_with("[Observation (step 1)]") && last.ends_with("now read the log"),
        "{last}"
    );
    assert_eq!(place.replay("f").await.difference, None);
}

#[tokio::test]
async fn a_fork_has_no_more_steps_and_time_than_the_operator_allows() {
    let place = Place::new();
    let first = script(&wat(r#"(resv "first")"#));
    place.run(&place.journal(), &first, "r").await;
    let run = place.opened("r").await;
    let limits = RunLimits { max_steps: Some(2), timeout: Some(Duration::from_secs(50)), ..ALL };
    let again = || Some("again".to_owned());
    for message in [None, again()] {
        let forked = fork(&place.journal(), &run, 1, message, "no".to_owned(), limits).await;
        assert!(matches!(forked, Err(ForkError::OverLimit { limit: 2 })), "{forked:?}");
    }
    let limits = RunLimits { max_steps: None, ..limits };
    for (id, at, message) in [("a", 1, None), ("b", 1, again()), ("c", 2, again())] {
        let forked = fork(&place.journal(), &run, at, message, id.to_owned(), limits).await;
        assert_eq!(forked.unwrap().run.id, id);
        assert_eq!(place.opened(id).await.start.timeout_ms, Some(50_000));
    }
    let (ended, _) = place.resume(&first, "a", &[]).await;
    assert_eq!(answer(&ended.unwrap()), "done");
    assert_eq!(place.replay("a").await.difference, None, "the shared steps are the same");
    // Higher limits change nothing.
    let limits = RunLimits { max_steps: Some(1_000), timeout: Some(Duration::MAX), ..ALL };
    let forked = fork(&place.journal(), &run, 2, None, "e".to_owned(), limits).await.unwrap();
    let steps = |start: &wattle_agent::host::journal::RunStart| start.setup.settings.max_steps;
    assert_eq!(steps(&forked.run.start), steps(&run.start));
}
