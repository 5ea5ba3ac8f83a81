//! The items of a memory, and the port to the memory.

use wattle_rt::{Code, Failure};

use crate::PortFuture;
use crate::search::{Nearest, Query};

/// Maximum length of an item, in characters.
pub const MAX_TEXT: usize = 4_000;

/// Maximum number of items per tenant, including those of its sessions.
pub const MAX_ITEMS: usize = 10_000;

/// The owner of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scope {
    /// The tenant: all of its sessions find the item, which is kept until it is removed.
    Tenant,
    /// The run's session: only runs of this session find the item, which is dropped with the
    /// session.
    Session,
}

impl Scope {
    /// Returns the name that programs use for the scope.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Scope::Tenant => "tenant",
            Scope::Session => "session",
        }
    }

    /// Returns the scope with this name, or `None` if the name is unknown.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Scope> {
        [Scope::Tenant, Scope::Session].into_iter().find(|scope| scope.name() == name)
    }
}

/// The text of an item: 1 to 4,000 characters, without leading or trailing whitespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryText(String);

impl MemoryText {
    /// Trims and validates an item's text.
    ///
    /// # Errors
    /// `EBOUND` if the text is empty or too long.
    pub fn new(text: &str) -> Result<MemoryText, Failure> {
        let text = text.trim();
        let wrong = |why: String| Err(Failure::new(Code::EBOUND, why));
        match text.chars().count() {
            0 => wrong("the text of the item is empty".to_owned()),
            n if n > MAX_TEXT => wrong(format!(
                "the text of the item has {n} characters, more than {MAX_TEXT}; add its parts, or \
                 write it to a file"
            )),
            _ => Ok(MemoryText(text.to_owned())),
        }
    }

    /// Returns the text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the text.
    #[must_use]
    pub fn into_string(self) -> String {
        self.0
    }
}

/// An item to add.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewItem {
    /// The item's text.
    pub text: MemoryText,
    /// The item's owner.
    pub scope: Scope,
}

/// A stored text, with its id, its owner and its creation time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// The number of the item. It is unique within the tenant and never reused.
    pub id: i32,
    /// The item's text.
    pub text: String,
    /// The item's owner.
    pub scope: Scope,
    /// The time when the item was added, in milliseconds since 1970.
    pub made: i64,
}

/// Returns the failure for an attempt to add an item to a memory that already contains
/// [`MAX_ITEMS`] items.
#[must_use]
pub fn full() -> Failure {
    let message = format!("the memory is full ({MAX_ITEMS} items); remove items first");
    Failure::new(Code::EBUDGET, message)
}

/// The port to a memory, as one session sees it: the items of the tenant and of this session.
/// Backend failures are reported as `EREMOTE`.
pub trait Memory: Send + Sync {
    /// Adds an item and returns its id. If the owner already has an item with this text, returns
    /// the id of that item. If the idempotency key `call` is repeated, adds nothing and returns the
    /// same id.
    fn add(&self, call: Option<String>, item: NewItem) -> PortFuture<'_, i32>;

    /// Removes an item. Returns false if the item does not exist. If the idempotency key `call` is
    /// repeated, returns the same result as the first time.
    fn remove(&self, call: Option<String>, id: i32) -> PortFuture<'_, bool>;

    /// Returns at most `max` items, newest first.
    fn list(&self, max: usize) -> PortFuture<'_, Vec<Item>>;

    /// Returns the items with these ids, in the order of the ids. Ids without an item are skipped.
    fn items(&self, ids: Vec<i32>) -> PortFuture<'_, Vec<Item>>;

    /// Returns the ids and scores of at most [`POOL`](crate::search::POOL) items that match words
    /// in a query, best first.
    fn by_words(&self, query: Query) -> PortFuture<'_, Vec<(i32, f64)>>;

    /// Returns the ids and texts of at most `max` items that have no vector from the model. Omits
    /// encrypted items, because their embeddings must not be stored. The items whose ids are in
    /// `first` come first.
    fn without_vector(
        &self,
        model: String,
        first: Vec<i32>,
        max: usize,
    ) -> PortFuture<'_, Vec<(i32, String)>>;

    /// Stores vectors of items, computed by `model`. Each is paired with the id of its item.
    fn add_vectors(&self, model: String, vectors: Vec<(i32, Vec<u8>)>) -> PortFuture<'_, ()>;

    /// Compares all vectors from the model with the target of `nearest`. Returns the ids of the
    /// items with the nearest vectors, each with its similarity.
    fn nearest(&self, model: String, nearest: Nearest<i32>) -> PortFuture<'_, Vec<(i32, f64)>>;
}
