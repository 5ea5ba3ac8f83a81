//! Tests of key-value state: atomic updates, separate keys for the tenant and the session, and the
//! size limit.

use std::sync::Arc;

use wattle_capability::kv::{Backend, InMemory, Kept, Kv};
use wattle_rt::Code;

use super::failure;
use crate::world::World;

/// Runs `kv.cas` on a key with the value `stored`, or on a missing key if `stored` is `None`.
/// Returns the result and the key's new value.
async fn cas(stored: Option<&str>, old: &str, new: &str) -> (String, Option<String>) {
    let world = World::new();
    let state = Arc::new(InMemory::default());
    if let Some(stored) = stored {
        let stored = stored.as_bytes().to_vec();
        state.update("k".to_owned(), Box::new(move |_| Ok(Some(stored.clone())))).await.unwrap();
    }
    let kv = Kv { session: Arc::clone(&state) as _, tenant: Arc::new(InMemory::default()) };
    let grants = Arc::new((*world.grants()).clone().with(kv));
    let text = format!(
        "(call $kv.cas \"k\" {old} {new}) (drop) (call $str.from_int) (call $sys.resv) (i32.const \
         0)"
    );
    let outcome = world.run_granted(&text, &[], &grants).await.unwrap();
    let now =
        state.get("k".to_owned()).await.unwrap().map(|value| String::from_utf8(value).unwrap());
    (outcome.texts()[0].clone(), now)
}

#[tokio::test]
async fn a_swap_happens_only_on_the_expected_value() {
    const NONE: &str = "(i32.const 0)";
    for (stored, old, new, swapped, then) in [
        (None, NONE, "\"a\"", "1", Some("a")),
        (Some("b"), NONE, "\"a\"", "0", Some("b")),
        (Some(""), NONE, "\"a\"", "0", Some("")),
        (Some(""), "\"\"", "\"a\"", "1", Some("a")),
        (None, "\"\"", "\"a\"", "0", None),
        (Some("b"), "\"b\"", "\"a\"", "1", Some("a")),
        (Some("b"), "\"c\"", "\"a\"", "0", Some("b")),
        (Some("b"), "\"b\"", NONE, "1", None),
        (Some("b"), "\"c\"", NONE, "0", Some("b")),
        (None, NONE, NONE, "1", None),
    ] {
        let found = cas(stored, old, new).await;
        assert_eq!(found, (swapped.to_owned(), then.map(str::to_owned)), "{stored:?} {old} {new}");
    }
}

#[tokio::test]
async fn keys_of_the_tenant_and_the_session_are_separate() {
    let world = World::new();
    let text = r#"
        (local $e i32) (local $v i32)
        (drop (call $kv.set "a" "of the session"))
        (drop (call $kv.set "tenant:a" "of the tenant"))
        (drop (call $kv.set "tenant:b" "2"))
        (call $kv.get "a") (local.set $e) (local.set $v) (check $e) (resv $v)
        (call $kv.get "tenant:a") (local.set $e) (local.set $v) (check $e) (resv $v)
        (call $kv.incr "tenant:b" (i32.const 5)) (drop) (drop)
        (call $kv.list "") (drop) (call $arr.to_json) (drop) (call $sys.resv)
        (call $kv.list "tenant:") (drop) (call $arr.to_json) (drop) (call $sys.resv)
        (call $kv.list "tenant:b") (drop) (call $arr.to_json) (drop) (call $sys.resv)
        (call $kv.list "ten") (drop) (call $arr.to_json) (drop) (call $sys.resv)
        (drop (call $kv.del "tenant:a"))
        (call $kv.get "tenant:a") (local.set $e) (drop)
        (local.get $e)"#;
    let outcome = world.run(text, &[]).await.unwrap();
    let expected = [
        "of the session",
        "of the tenant",
        "[\"a\"]",
        "[\"tenant:a\",\"tenant:b\"]",
        "[\"tenant:b\"]",
        "[]",
    ];
    assert_eq!(outcome.texts(), expected);
    assert_eq!(
        failure(&outcome),
        (Code::ENOENT, "the tenant's state has no key \"tenant:a\"".to_owned())
    );
    let empty = "(call $kv.set \"tenant:\" \"x\")";
    assert_eq!(
        failure(&world.run(empty, &[]).await.unwrap()),
        (Code::EBOUND, "the key is empty".to_owned())
    );
}

#[tokio::test]
async fn the_state_in_memory_is_limited_and_deletion_frees_space() {
    let state = InMemory::default();
    let fill =
        |n: usize| state.update(format!("k{n}"), Box::new(|_| Ok(Some(vec![0; (8 << 20) - 200]))));
    for n in 0..8 {
        fill(n).await.unwrap();
    }
    assert_eq!(fill(8).await.unwrap_err().code, Code::EBUDGET);
    state.update("k3".to_owned(), Box::new(|_| Ok(None))).await.unwrap();
    fill(8).await.unwrap();
    assert_eq!(state.keys("k".to_owned()).await.unwrap().len(), 8);
}

/// Returns the values that the tests of [`Kept`] compare.
fn values() -> Vec<Option<Vec<u8>>> {
    let texts = ["", "\u{0}", "\u{1}", " 12 ", "another value"];
    let long = vec![b'x'; 8 << 20];
    let values = texts.iter().map(|text| text.as_bytes().to_vec()).chain([long]);
    std::iter::once(None).chain(values.map(Some)).collect()
}

#[test]
fn a_repeated_call_knows_of_the_old_value_what_its_change_needs() {
    for old in values() {
        let restored = |kept: Kept| kept.restore(kept.record(old.as_deref()));
        assert_eq!(restored(Kept::Presence).is_some(), old.is_some());
        for expected in values() {
            let is_equal = restored(Kept::Equality(expected.clone())) == expected;
            assert_eq!(is_equal, old == expected, "a comparison");
            // Earlier versions recorded the whole value.
            let earlier = Kept::Equality(expected.clone()).restore(old.clone());
            assert_eq!(earlier == expected, old == expected, "a comparison with a whole value");
        }
    }
    let number = Kept::Number.restore(Kept::Number.record(Some(b" \n12\t ")));
    assert_eq!(number.as_deref(), Some(&b"12"[..]));
}

#[test]
fn no_record_of_an_old_value_is_long() {
    for old in values() {
        for kept in [Kept::Nothing, Kept::Presence, Kept::Number, Kept::Equality(old.clone())] {
            let record = kept.record(old.as_deref());
            assert!(record.is_none_or(|record| record.len() <= 64), "{kept:?}");
        }
    }
}
