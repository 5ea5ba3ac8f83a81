//! `memory`: items that outlive a session and can be searched by keywords and by meaning.
//!
//! An item belongs to the tenant unless a program adds it for the session. Memory is meant for
//! facts that later conversations need, and each conversation is a separate session. Therefore,
//! `add` without a scope adds an item for the tenant. The scope `session` is for notes that are
//! dropped with the session. A search covers the items of the tenant and of the run's session.

mod in_memory;
mod item;
mod vectors;

use std::sync::Arc;

use serde_json::json;
use wattle_rt::{Code, Config, Failure, Gate, Run, Service, Target, capability, quote};

use crate::ai::MODEL;
use crate::search::{Allowance, Embedder, Query, fuse, rank_by_meaning};
use crate::{QUOTED, egress};

pub use in_memory::InMemory;
pub use item::{Item, MAX_ITEMS, MAX_TEXT, Memory, MemoryText, NewItem, Scope, full};
use vectors::ItemVectors;

/// The memory of the tenant and of the session.
pub const STORE: Service = Service {
    name: "memory",
    label: "memory",
    verb: "use the memory",
    capability: "memory",
    is_class: false,
    depends_on: &["kv"],
    leaves_machine: false,
    kept_in: None,
};

capability! {
    /// Texts that outlive the session, for later conversations of the tenant.
    pub const MEMORY: "memory" 1;

    /// Adds a text (at most 4,000 characters) and returns its id; adding the same text again
    /// returns the same id; scope is tenant (the default, 0) or session (dropped with the session)
    #[example = r#"(memory.add "Ada drinks tea") (ret (json.get (memory.search "tea" 0) "[0].text"))"# => "Ada drinks tea"]
    #[prompt(name)]
    #[effect(repeatable)]
    #[touches(STORE)]
    async add(text: str, scope: opt_str) with MemoryGrant -> id: int ! EBOUND EBUDGET EREMOTE = add;

    /// Returns the items that best match words or a conversation, best first, as JSON [{id, text,
    /// scope}]; n is 1 to 20, 0 for 5
    #[example = r#"(memory.add "The office closes at six") (ret (json.get (memory.search "closing office" 0) "[0].text"))"# => "The office closes at six"]
    #[prompt(name)]
    #[effect(reads)]
    #[touches(STORE)]
    async search(words: str, n: int) with MemoryGrant -> ptr: str ! EBOUND ENOMEM EREMOTE = search;

    /// Returns the newest items, newest first, as JSON [{id, text, scope}]; n is 1 to 100, 0 for 20
    #[example = r#"(memory.add "one") (memory.add "two") (ret (json.get (memory.list 1) "[0].text"))"# => "two"]
    #[prompt(omitted)]
    #[effect(reads)]
    #[touches(STORE)]
    async list(n: int) with MemoryGrant -> ptr: str ! EBOUND ENOMEM EREMOTE = list;

    /// Removes an item
    #[example = r#"(let $id (memory.add "Ada drinks tea")) (memory.remove $id) (ret (memory.list 0))"# => "[]"]
    #[prompt(omitted)]
    #[effect(repeatable)]
    #[touches(STORE)]
    async remove(id: int) with MemoryGrant ! ENOENT EREMOTE = remove;
}

/// The default and the maximum number of items that a call returns.
struct ItemCount {
    default: usize,
    max: usize,
}

/// The number of items that a search returns.
const FOUND: ItemCount = ItemCount { default: 5, max: 20 };

/// The number of items that `list` returns.
const LISTED: ItemCount = ItemCount { default: 20, max: 100 };

/// Maximum length of a search query, in characters. This is enough for the text of a recent
/// conversation.
const MAX_WORDS: usize = 20_000;

/// Maximum length of the text that a search sends to the embedding model, in characters. Only the
/// end of a longer text is sent.
const MAX_EMBEDDED: usize = 2_000;

/// The `memory` grant: a memory and, optionally, a model for embeddings.
pub struct MemoryGrant {
    memory: Arc<dyn Memory>,
    embedder: Option<Embedder>,
    /// A counter that limits the embeddings requested under this grant.
    allowance: Allowance,
}

impl MemoryGrant {
    /// Creates a grant. With an embedder, items are also found by meaning.
    #[must_use]
    pub fn new(memory: Arc<dyn Memory>, embedder: Option<Embedder>) -> MemoryGrant {
        MemoryGrant { memory, embedder, allowance: Allowance::default() }
    }
}

impl Config for MemoryGrant {
    const CAPABILITIES: &'static [&'static str] = &["memory"];
}

async fn add(
    grant: Arc<MemoryGrant>,
    run: &mut Run,
    text: String,
    scope: Option<String>,
) -> Result<i32, Failure> {
    let text = MemoryText::new(&text)?;
    let scope = match scope.as_deref() {
        None | Some("") => Scope::Tenant,
        Some(name) => Scope::from_name(name).ok_or_else(|| {
            bad(format!("the scope is `tenant` or `session`, not {}", quote(name, QUOTED)))
        })?,
    };
    let call = run.change_key();
    grant.memory.add(call, NewItem { text, scope }).await
}

async fn list(grant: Arc<MemoryGrant>, run: &mut Run, n: i32) -> Result<String, Failure> {
    let max = number(n, LISTED)?;
    let _held = run.account().hold(max * MAX_TEXT)?;
    let items = grant.memory.list(max).await?;
    Ok(render(&items))
}

async fn remove(grant: Arc<MemoryGrant>, run: &mut Run, id: i32) -> Result<(), Failure> {
    let call = run.change_key();
    if grant.memory.remove(call, id).await? {
        Ok(())
    } else {
        Err(Failure::new(Code::ENOENT, format!("the memory has no item {id}")))
    }
}

async fn search(
    grant: Arc<MemoryGrant>,
    run: &mut Run,
    words: String,
    n: i32,
) -> Result<String, Failure> {
    let max = number(n, FOUND)?;
    let length = words.chars().count();
    if length > MAX_WORDS {
        return Err(bad(format!("there are {length} characters, more than {MAX_WORDS}")));
    }
    // If there are more words than a query may contain, the last ones are used, because the end of
    // a conversation best describes what is relevant now.
    let last_first = words.split_whitespace().rev().collect::<Vec<_>>().join(" ");
    let Some(query) = Query::read(&last_first) else { return Ok(render(&[])) };
    let by_words = grant.memory.by_words(query).await?;
    let ranked = match by_meaning(run, &grant, &words, &by_words).await {
        Some(by_meaning) => fuse(&by_words, &by_meaning),
        None => by_words,
    };
    let _held = run.account().hold(max * MAX_TEXT)?;
    let ids = ranked.iter().take(max).map(|(id, _)| *id).collect();
    Ok(render(&grant.memory.items(ids).await?))
}

/// Returns the ids and scores of the items whose meaning is similar to `words`. Returns `None` if
/// there is no model for embeddings, if the policy denies the model or requires approval for it, or
/// if the model fails.
async fn by_meaning(
    run: &mut Run,
    grant: &MemoryGrant,
    words: &str,
    by_words: &[(i32, f64)],
) -> Option<Vec<(i32, f64)>> {
    let embedder = grant.embedder.as_ref()?;
    Gate::of(run, "memory.search").admit(Target::Service(&MODEL), "").ok()?;
    let out = egress::Passage::of(run, MEMORY.name);
    let skipped = words.chars().count().saturating_sub(MAX_EMBEDDED);
    let words: String = words.chars().skip(skipped).collect();
    let items = ItemVectors { memory: &*grant.memory, by_words };
    match rank_by_meaning(&items, embedder, &grant.allowance, &out, &words).await {
        Ok(near) => Some(near),
        Err(why) => {
            run.log(&format!("memory: by words only: {}", why.reason));
            None
        }
    }
}

/// Returns the number of items that a program's argument requests. 0 means the default.
fn number(n: i32, ItemCount { default, max }: ItemCount) -> Result<usize, Failure> {
    match usize::try_from(n) {
        Ok(0) => Ok(default),
        Ok(n) if n <= max => Ok(n),
        _ => Err(bad(format!("n must be 0 to {max}, not {n}"))),
    }
}

/// Renders items as JSON.
fn render(items: &[Item]) -> String {
    let items = items
        .iter()
        .map(|item| json!({"id": item.id, "text": item.text, "scope": item.scope.name()}));
    serde_json::Value::Array(items.collect()).to_string()
}

fn bad(why: String) -> Failure {
    Failure::new(Code::EBOUND, why)
}
