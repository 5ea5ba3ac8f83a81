//! Tests of the memory items in a store: their owners, limits and search, and the content of the
//! database file.

use std::path::Path;
use std::time::Duration;

use wattle_agent::host::capability::memory::{MAX_ITEMS, Memory, MemoryText, NewItem, Scope};
use wattle_agent::host::capability::search::Query;
use wattle_agent::host::ledger::Keys;
use wattle_agent::host::rt::Code;
use wattle_agent::host::{LazyMemory, TenantStore};
use wattle_agent::model::{ApiKey, Mask};
use wattle_agent::{Store, Tenant};

use crate::place::Place;

const HOUR: Duration = Duration::from_secs(3_600);
const KEY: &str = "sk-0123456789";

fn store() -> (Place, TenantStore) {
    let place = Place::new();
    let store = place.open(HOUR).tenant(&Tenant::default());
    (place, store)
}

fn item(text: &str, scope: Scope) -> NewItem {
    NewItem { text: MemoryText::new(text).unwrap(), scope }
}

async fn add(memory: &dyn Memory, text: &str) -> i32 {
    memory.add(None, item(text, Scope::Tenant)).await.unwrap()
}

async fn found(memory: &dyn Memory, words: &str) -> Vec<i32> {
    let found = memory.by_words(Query::read(words).unwrap()).await.unwrap();
    found.into_iter().map(|(id, _)| id).collect()
}

async fn listed(memory: &dyn Memory) -> Vec<String> {
    memory.list(MAX_ITEMS).await.unwrap().into_iter().map(|item| item.text).collect()
}

#[tokio::test]
async fn all_sessions_find_an_item_of_the_tenant_and_only_its_own_finds_that_of_a_session() {
    let (_place, store) = store();
    let (one, other) = (store.memory(Some("one")), store.memory(Some("other")));
    let shared = add(&one, "Ada drinks tea").await;
    let own = one.add(None, item("tea for two", Scope::Session)).await.unwrap();
    assert_eq!(found(&other, "tea").await, [shared]);
    assert_eq!(found(&store.memory(None), "tea").await, [shared]);
    let mut both = found(&one, "tea").await;
    both.sort_unstable();
    assert_eq!(both, [shared, own]);
    assert!(!other.remove(None, own).await.unwrap());
    assert_eq!(listed(&one).await, ["tea for two", "Ada drinks tea"]);
    // The items of a session are removed with the session.
    assert!(store.remove("one").await.unwrap());
    assert_eq!(listed(&one).await, ["Ada drinks tea"]);
    assert_eq!(found(&one, "tea").await, [shared]);
    let why = store.memory(None).add(None, item("x", Scope::Session)).await.unwrap_err();
    assert_eq!(
        (why.code, why.reason.as_str()),
        (Code::EBOUND, "this run has no session; use the scope `tenant`")
    );
}

#[tokio::test]
async fn the_best_match_is_first_and_words_are_compared_by_their_stems() {
    let (_place, store) = store();
    let memory = store.memory(None);
    let _other = add(&memory, "The bicycle is in the cellar").await;
    let long = add(&memory, "A note about many things, cats among them, and about a house").await;
    let best = add(&memory, "Cats sleep").await;
    assert_eq!(found(&memory, "sleeping cat").await, [best, long]);
    assert_eq!(found(&memory, "tenant OR NOT \"x\" {text}: *").await, Vec::<i32>::new());
    assert_eq!(found(&memory, &Tenant::default().file_name()).await, Vec::<i32>::new());
}

#[tokio::test]
async fn a_text_is_stored_once_and_an_id_is_never_used_again() {
    let (_place, store) = store();
    let memory = store.memory(Some("s"));
    let first = add(&memory, "same").await;
    assert_eq!(add(&memory, " same\n").await, first);
    let own = memory.add(None, item("same", Scope::Session)).await.unwrap();
    assert_ne!(own, first);
    assert!(memory.remove(None, own).await.unwrap());
    assert!(!memory.remove(None, own).await.unwrap());
    assert_eq!(add(&memory, "next").await, own + 1);
}

#[tokio::test]
async fn a_repeated_call_changes_nothing_and_returns_the_same_result() {
    let (_place, store) = store();
    let memory = store.memory(None);
    let call = |name: &str| Some(name.to_owned());
    let id = memory.add(call("r/1"), item("once", Scope::Tenant)).await.unwrap();
    assert!(memory.remove(call("r/2"), id).await.unwrap());
    assert_eq!(memory.add(call("r/1"), item("once", Scope::Tenant)).await.unwrap(), id);
    assert!(memory.remove(call("r/2"), id).await.unwrap());
    assert!(!memory.remove(call("r/3"), id).await.unwrap());
    assert_eq!(listed(&memory).await, Vec::<String>::new());
}

#[tokio::test]
async fn a_memory_that_is_full_takes_no_more_until_an_item_is_removed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.db");
    let store = Store::open(&path, HOUR).unwrap().tenant(&Tenant::default());
    let memory = store.memory(None);
    let first = add(&memory, "first").await;
    let fill = "WITH RECURSIVE n (i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < ?1)
                INSERT INTO memory (tenant, id, created, text)
                SELECT 'default', i, 0, 'x' || i FROM n";
    let file = rusqlite::Connection::open(&path).unwrap();
    file.execute(fill, [i64::try_from(MAX_ITEMS).unwrap()]).unwrap();
    file.execute("UPDATE tenant SET memories = ?1", [i64::try_from(MAX_ITEMS).unwrap()]).unwrap();
    let why = memory.add(None, item("more", Scope::Tenant)).await.unwrap_err();
    assert_eq!(
        (why.code, why.reason.as_str()),
        (Code::EBUDGET, "the memory is full (10000 items); remove items first")
    );
    assert_eq!(add(&memory, "first").await, first, "a text that is there needs no space");
    assert!(memory.remove(None, first).await.unwrap());
    add(&memory, "more").await;
}

fn sealing(folder: &Path) -> TenantStore {
    let mask = Mask::default();
    mask.add_key(&ApiKey::new(KEY).unwrap());
    let store = Store::open(&folder.join("s.db"), HOUR).unwrap().tenant(&Tenant::default());
    store.sealing(mask, Keys::new(folder.join("keys")))
}

#[tokio::test]
async fn an_item_with_a_key_is_found_but_the_file_does_not_contain_its_words() {
    let folder = tempfile::tempdir().unwrap();
    let plain = {
        let memory = sealing(folder.path()).memory(None);
        let plain = add(&memory, "the walrus sings").await;
        let secret = add(&memory, &format!("the walrus of the endpoint has {KEY} zanzibar")).await;
        assert_eq!(found(&memory, "zanzibar").await, [secret]);
        assert_eq!(found(&memory, "walrus").await.len(), 2);
        let missing = memory.without_vector("m".to_owned(), vec![secret], 9).await.unwrap();
        assert_eq!(missing, [(plain, "the walrus sings".to_owned())], "no embedding of a secret");
        plain
    };
    for suffix in ["", "-wal"] {
        let bytes = std::fs::read(folder.path().join(format!("s.db{suffix}"))).unwrap_or_default();
        for word in [KEY, "zanzibar", "0123456789"] {
            let is_in = bytes.windows(word.len()).any(|part| part == word.as_bytes());
            assert!(!is_in, "{word} in {suffix}");
        }
    }
    let memory = sealing(folder.path()).memory(None);
    assert!(listed(&memory).await[0].contains(KEY));
    assert!(memory.remove(None, plain).await.unwrap());
    assert_eq!(found(&memory, "walrus").await.len(), 1);
}

#[tokio::test]
async fn a_vector_ends_with_its_item() {
    let (_place, store) = store();
    let memory = store.memory(None);
    let (one, two) = (add(&memory, "one").await, add(&memory, "two").await);
    let vectors = vec![(one, vec![1; 8]), (two, vec![2; 8]), (99, vec![3; 8])];
    memory.add_vectors("m".to_owned(), vectors).await.unwrap();
    assert_eq!(memory.without_vector("m".to_owned(), vec![], 9).await.unwrap(), []);
    let other = memory.without_vector("other".to_owned(), vec![two], 1).await.unwrap();
    assert_eq!(other, [(two, "two".to_owned())], "the named ones come first");
    assert!(memory.remove(None, one).await.unwrap());
    assert!(memory.remove(None, two).await.unwrap());
    let again = add(&memory, "one").await;
    let missing = memory.without_vector("m".to_owned(), vec![], 9).await.unwrap();
    assert_eq!(missing, [(again, "one".to_owned())]);
}

#[tokio::test]
async fn a_lazy_memory_opens_the_store_at_its_first_use() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.db");
    let at = path.clone();
    let lazy = LazyMemory::new(move || {
        let store = Store::open(&at, HOUR).map_err(|error| error.to_string())?;
        Ok(store.tenant(&Tenant::default()))
    });
    assert!(!path.exists());
    add(&lazy, "kept").await;
    assert_eq!(listed(&lazy).await, ["kept"]);
    let broken = LazyMemory::new(|| Err("no store".to_owned()));
    let why = broken.list(1).await.unwrap_err();
    assert_eq!((why.code, why.reason.as_str()), (Code::EREMOTE, "no store"));
}
