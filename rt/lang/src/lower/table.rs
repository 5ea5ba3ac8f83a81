//! Values that can be looked up by name or by index.

use foldhash::fast::RandomState;

use crate::NameMap;
use crate::syntax::literal::index;

/// A list of values, some of which have names. A name refers to the latest value with that name.
#[derive(Clone, Debug)]
pub(crate) struct Table<'s, T> {
    list: Vec<T>,
    by_name: NameMap<&'s str, usize>,
}

impl<T> Default for Table<'_, T> {
    fn default() -> Self {
        Table { list: Vec::new(), by_name: NameMap::default() }
    }
}

impl<'s, T> Table<'s, T> {
    /// Creates an empty table with space for `count` values.
    pub(crate) fn with_capacity(count: usize) -> Self {
        let by_name = NameMap::with_capacity_and_hasher(count, RandomState::default());
        Table { list: Vec::with_capacity(count), by_name }
    }

    /// Reserves space for `count` more values.
    pub(crate) fn reserve(&mut self, count: usize) {
        self.list.reserve(count);
        self.by_name.reserve(count);
    }

    /// Adds a value. Returns its index.
    pub(crate) fn push(&mut self, name: Option<&'s str>, value: T) -> usize {
        let at = self.list.len();
        if let Some(name) = name {
            self.by_name.insert(name, at);
        }
        self.list.push(value);
        at
    }

    /// Returns the index of the value that a name refers to.
    pub(crate) fn find(&self, name: &str) -> Option<usize> {
        self.by_name.get(name).copied()
    }

    /// Returns the value that a name refers to.
    pub(crate) fn get(&self, name: &str) -> Option<&T> {
        self.list.get(self.find(name)?)
    }

    /// Returns the value with this name, together with the name itself, borrowed from the source.
    pub(crate) fn get_named(&self, name: &str) -> Option<(&'s str, &T)> {
        let (name, at) = self.by_name.get_key_value(name)?;
        Some((name, self.list.get(*at)?))
    }

    /// Returns the value that an immediate refers to by its name or its index.
    pub(crate) fn get_word(&self, word: &str) -> Option<&T> {
        self.list.get(self.find(word).or_else(|| index(word))?)
    }

    /// Returns the values that the names refer to now, to [rebind](Table::rebind) them later.
    pub(crate) fn bindings(&self) -> NameMap<&'s str, usize> {
        self.by_name.clone()
    }

    /// Makes the names refer to the values that they referred to earlier.
    pub(crate) fn rebind(&mut self, bindings: NameMap<&'s str, usize>) {
        self.by_name = bindings;
    }

    /// Returns the value at an index.
    pub(crate) fn at(&self, at: usize) -> Option<&T> {
        self.list.get(at)
    }

    pub(crate) fn at_mut(&mut self, at: usize) -> Option<&mut T> {
        self.list.get_mut(at)
    }

    /// Returns all values, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.list.iter()
    }

    pub(crate) fn len(&self) -> usize {
        self.list.len()
    }

    /// Returns all names.
    pub(crate) fn names(&self) -> impl Iterator<Item = &'s str> + '_ {
        self.by_name.keys().copied()
    }
}
