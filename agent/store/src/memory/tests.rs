//! Tests that a caller of the memory can observe neither the items that it cannot see, nor which
//! texts are encrypted.

use std::time::Duration;

use wattle_capability::memory::{Item, Memory as _, MemoryText, NewItem, Scope};
use wattle_capability::search::Query;
use wattle_capability::secrets::{Mask, Secret};

use crate::ledger::Keys;
use crate::memory::StoredMemory;
use crate::{Store, Tenant, TenantStore};

const HOUR: Duration = Duration::from_secs(3_600);
const PIN: &str = "48151623";

/// Returns an empty store in each engine that the tests can use.
fn stores() -> Vec<Store> {
    let postgres = wattle_cases::postgres::url().map(|url| Store::connect(&url, HOUR).unwrap());
    [Store::in_memory(HOUR).unwrap()].into_iter().chain(postgres).collect()
}

fn tenant(store: &Store, name: &str) -> TenantStore {
    store.tenant(&Tenant::new(name).unwrap())
}

fn mask(name: &str, value: &str) -> Mask {
    let mask = Mask::default();
    mask.add_secrets([&Secret::new(name, value, Vec::new()).unwrap()]);
    mask
}

async fn add(memory: &StoredMemory, text: &str, scope: Scope) -> i32 {
    let item = NewItem { text: MemoryText::new(text).unwrap(), scope };
    memory.add(None, item).await.unwrap()
}

async fn remember(memory: &StoredMemory, text: &str) -> i32 {
    add(memory, text, Scope::Tenant).await
}

/// Returns all that a caller observes of a search and of the list.
async fn seen(memory: &StoredMemory, words: &str) -> (Vec<(i32, f64)>, Vec<Item>, Vec<i32>) {
    let found = memory.by_words(Query::read(words).unwrap()).await.unwrap();
    let missing = memory.without_vector("m".to_owned(), Vec::new(), 2).await.unwrap();
    let missing = missing.into_iter().map(|(id, _)| id).collect();
    (found, memory.list(100).await.unwrap(), missing)
}

/// Returns the texts of a tenant's items as they are stored.
async fn stored(store: &Store, tenant: &'static str) -> Vec<String> {
    let query = "SELECT text FROM memory WHERE tenant = ?1 ORDER BY id";
    let read = store.read(move |transaction| {
        transaction.query(query, crate::db::params![tenant], |row| row.get(0))
    });
    read.await.unwrap()
}

#[tokio::test]
async fn a_search_depends_only_on_the_items_that_its_caller_can_see() {
    for store in stores() {
        let folder = tempfile::tempdir().unwrap();
        let keys = Keys::new(folder.path());
        let own = tenant(&store, "alice").sealing(mask("pin", "a secret of alice"), keys.clone());
        let memory = own.memory(Some("s"));
        remember(&memory, "an apple").await;
        remember(&memory, "a pear").await;
        remember(&memory, "a pear with a secret of alice").await;
        add(&memory, "the plum of this session", Scope::Session).await;
        let searches = ["apple pear", "pear", "plum apple", "zebra", "pea appl"];
        let mut before = Vec::new();
        for words in searches {
            before.push(seen(&memory, words).await);
        }
        assert_eq!(before[0].0.len(), 3);
        // Others remember one of the words, and unknown ones.
        let bob = tenant(&store, "bob").sealing(mask("pin", "zebra stripes"), keys);
        let (bobs, session) = (bob.memory(Some("s")), own.memory(Some("other")));
        for number in 0..30 {
            remember(&bobs, &format!("a pear, plum and zebra {number}")).await;
            remember(&bobs, &format!("a pear with zebra stripes {number}")).await;
            add(&session, &format!("a long text about a pear and zebra {number}"), Scope::Session)
                .await;
        }
        for (words, before) in searches.iter().zip(before) {
            assert_eq!(seen(&memory, words).await, before, "{words}");
        }
        // The ids of a tenant count its own items only.
        let (tenants, others) = (tenant(&store, "carol"), tenant(&store, "dave"));
        assert_eq!(remember(&tenants.memory(None), "mine").await, 1);
        assert_eq!(remember(&others.memory(None), "mine").await, 1);
    }
}

#[tokio::test]
async fn a_text_is_stored_once_whether_it_is_encrypted_or_not() {
    for store in stores() {
        let folder = tempfile::tempdir().unwrap();
        let (keys, mask) = (Keys::new(folder.path()), mask("pin", PIN));
        let of = tenant(&store, "alice").sealing(mask.clone(), keys.clone());
        let memory = of.memory(Some("s"));
        let mut ids = Vec::new();
        for text in ["pin 48151622", "pin 48151623", "pin 48151624", "hidden later", "plain"] {
            let id = remember(&memory, text).await;
            assert_eq!(remember(&memory, text).await, id, "{text}");
            let own = add(&memory, text, Scope::Session).await;
            assert_ne!(own, id, "{text}");
            assert_eq!(add(&memory, text, Scope::Session).await, own, "{text}");
            ids.push(id);
        }
        let sealed = async || {
            let texts = stored(&store, "alice").await;
            texts.iter().filter(|text| text.starts_with("\u{1}wattle:sealed:")).count()
        };
        assert_eq!(sealed().await, 2, "only the texts with the secret are encrypted");
        // A text is also found in the form that it had before the secrets changed.
        mask.add_secrets([&Secret::new("more", "hidden later", Vec::new()).unwrap()]);
        assert_eq!(remember(&memory, "hidden later").await, ids[3]);
        let other = tenant(&store, "alice").sealing(Mask::default(), keys).memory(None);
        assert_eq!(remember(&other, "pin 48151623").await, ids[1]);
        assert_eq!(remember(&other, "plain").await, ids[4]);
        assert_eq!(sealed().await, 2);
    }
}

#[tokio::test]
async fn the_stored_form_of_an_item_is_no_item() {
    let store = Store::in_memory(HOUR).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let keys = Keys::new(folder.path());
    let of = |name| tenant(&store, name).sealing(mask("pin", PIN), keys.clone()).memory(None);
    let (alice, bob) = (of("alice"), of("bob"));
    let id = remember(&alice, PIN).await;
    remember(&bob, PIN).await;
    let (alices, bobs) = (stored(&store, "alice").await, stored(&store, "bob").await);
    assert_ne!(alices, bobs, "equal texts of tenants have different stored forms");
    let copy = remember(&alice, &alices[0]).await;
    assert_ne!(copy, id);
    assert_eq!(remember(&alice, &alices[0]).await, copy);
    let texts: Vec<String> =
        alice.list(9).await.unwrap().into_iter().map(|item| item.text).collect();
    assert_eq!(texts, [alices[0].as_str(), PIN]);
}
