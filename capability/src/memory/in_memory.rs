//! The in-memory implementation of [`Memory`]. Its items are lost when the process ends.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use wattle_rt::{Code, Failure};

use super::{Item, MAX_ITEMS, Memory, NewItem, full};
use crate::PortFuture;
use crate::search::{Nearest, Query, TextIndex};

/// The memory of runs without a store. It has a single session.
#[derive(Default)]
pub struct InMemory {
    items: Mutex<Items>,
}

#[derive(Default)]
struct Items {
    /// The items, oldest first.
    items: Vec<Item>,
    /// The vectors, by model and item id.
    vectors: HashMap<(String, i32), Vec<u8>>,
    /// The id of the last item.
    last: i32,
}

impl InMemory {
    fn lock(&self) -> MutexGuard<'_, Items> {
        // No change can panic halfway, so the items behind a poisoned lock are valid.
        self.items.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls `work` with the items and returns its result as a completed future.
    fn now<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Items) -> Result<T, Failure>,
    ) -> PortFuture<'_, T> {
        let done = work(&mut self.lock());
        Box::pin(async { done })
    }
}

impl Items {
    fn add(&mut self, NewItem { text, scope }: NewItem) -> Result<i32, Failure> {
        let same = |item: &&Item| item.scope == scope && item.text == text.as_str();
        if let Some(item) = self.items.iter().find(same) {
            return Ok(item.id);
        }
        if self.items.len() >= MAX_ITEMS {
            return Err(full());
        }
        self.last = self.last.checked_add(1).ok_or_else(full)?;
        let id = self.last;
        let made = milliseconds_now();
        self.items.push(Item { id, text: text.into_string(), scope, made });
        Ok(id)
    }

    fn remove(&mut self, id: i32) -> bool {
        let before = self.items.len();
        self.items.retain(|item| item.id != id);
        self.vectors.retain(|(_, item), _| *item != id);
        self.items.len() < before
    }

    fn find(&self, id: i32) -> Option<&Item> {
        self.items.iter().find(|item| item.id == id)
    }
}

impl Memory for InMemory {
    fn add(&self, _: Option<String>, item: NewItem) -> PortFuture<'_, i32> {
        self.now(|items| items.add(item))
    }

    fn remove(&self, _: Option<String>, id: i32) -> PortFuture<'_, bool> {
        self.now(|items| Ok(items.remove(id)))
    }

    fn list(&self, max: usize) -> PortFuture<'_, Vec<Item>> {
        self.now(|items| Ok(items.items.iter().rev().take(max).cloned().collect()))
    }

    fn items(&self, ids: Vec<i32>) -> PortFuture<'_, Vec<Item>> {
        self.now(|items| Ok(ids.into_iter().filter_map(|id| items.find(id)).cloned().collect()))
    }

    fn by_words(&self, query: Query) -> PortFuture<'_, Vec<(i32, f64)>> {
        self.now(|items| {
            let rank = || {
                let index = TextIndex::new()?;
                for item in &items.items {
                    index.add(item.id.into(), &item.text)?;
                }
                index.rank(&query)
            };
            let ranked = rank().map_err(|why: rusqlite::Error| {
                Failure::new(Code::EREMOTE, format!("the search of the memory failed: {why}"))
            })?;
            let id = |(id, score)| i32::try_from(id).ok().map(|id| (id, score));
            Ok(ranked.into_iter().filter_map(id).collect())
        })
    }

    fn without_vector(
        &self,
        model: String,
        first: Vec<i32>,
        max: usize,
    ) -> PortFuture<'_, Vec<(i32, String)>> {
        self.now(|items| {
            let others = items.items.iter().map(|item| item.id).filter(|id| !first.contains(id));
            let missing = first.iter().copied().chain(others).filter_map(|id| {
                let has = items.vectors.contains_key(&(model.clone(), id));
                items.find(id).filter(|_| !has).map(|item| (id, item.text.clone()))
            });
            Ok(missing.take(max).collect())
        })
    }

    fn add_vectors(&self, model: String, vectors: Vec<(i32, Vec<u8>)>) -> PortFuture<'_, ()> {
        self.now(|items| {
            for (id, vector) in vectors {
                if items.find(id).is_some() {
                    items.vectors.insert((model.clone(), id), vector);
                }
            }
            Ok(())
        })
    }

    fn nearest(&self, model: String, mut nearest: Nearest<i32>) -> PortFuture<'_, Vec<(i32, f64)>> {
        self.now(|items| {
            let own = items.vectors.iter().filter(|((of, _), _)| *of == model);
            own.for_each(|((_, id), vector)| nearest.compare(*id, vector));
            Ok(nearest.ranked())
        })
    }
}

fn milliseconds_now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
