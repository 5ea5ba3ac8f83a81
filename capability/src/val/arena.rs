//! The arena that holds the values of a program. Values are never freed before the program ends, so
//! that a handle is always valid.

use std::collections::HashMap;
use std::hash::BuildHasher as _;

use foldhash::fast::{FixedState, RandomState};
use num_bigint::BigInt;
use wattle_rt::{Code, Failure, Run};

/// The handle of null.
pub(super) const NULL: i32 = 0;
const FALSE: i32 = 1;
const TRUE: i32 = 2;
/// The handle of the first node.
const FIRST: i32 = 16;
/// The bit of a handle that is itself a whole number.
const WHOLE: i32 = i32::MIN;

/// Maximum number of keys of an object that is searched from its start.
const MAX_SEARCHED: usize = 16;

/// The values of a program.
///
/// A handle is 0 for null, 1 for false, 2 for true, negative for a small whole number, and otherwise
/// the index of a node plus 16. Scalars never change. Lists and objects are shared by reference.
#[derive(Default)]
pub(crate) struct Values {
    nodes: Vec<Node>,
    /// The text of strings, keys and decimal numbers.
    text: String,
    /// The items of lists.
    items: Vec<i32>,
    /// The entries of objects.
    entries: Vec<Entry>,
    bigs: Vec<BigInt>,
    /// The indexes of objects with many keys, by node.
    indexes: HashMap<u32, Index, RandomState>,
    pub(super) memory: Memory,
    /// The places from which values were taken last.
    recent: [Place; 8],
    next_recent: usize,
}

/// A value in the arena. Takes 16 bytes.
#[derive(Clone, Copy)]
enum Node {
    Text(Span),
    Whole(i64),
    Float(f64),
    /// A number that no `i64` holds as written, such as `1.10`. Always a valid JSON number.
    Decimal(Span),
    /// An index of [`Values::bigs`].
    Big(u32),
    List(Block),
    Object(Block),
}

/// A part of [`Values::text`].
#[derive(Clone, Copy, Default)]
pub(super) struct Span {
    start: u32,
    len: u32,
}

/// A part of [`Values::items`] or [`Values::entries`], which may have free slots at its end. A full
/// block moves to the end of the vector.
#[derive(Clone, Copy, Default)]
struct Block {
    start: u32,
    len: u32,
    capacity: u32,
}

impl Block {
    fn range(self) -> std::ops::Range<usize> {
        self.start as usize..(self.start + self.len) as usize
    }
}

/// A key of an object, and its value.
#[derive(Clone, Copy, Default)]
pub(super) struct Entry {
    key: Span,
    /// The handle of the value.
    pub(super) value: i32,
    /// The handle of the key as a string, or 0 if none exists yet.
    key_handle: i32,
}

/// The part of a list or an object that a value was taken from.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Place {
    value: i32,
    container: i32,
    position: u32,
}

/// The values' memory. Requests are checked when they are made, and charged to the run when the call
/// ends.
#[derive(Default)]
pub(super) struct Memory {
    /// The number of bytes that may still be requested.
    free: usize,
    /// The number of bytes that are not charged yet.
    owed: usize,
}

impl Memory {
    /// Requests memory that is held until the program ends.
    fn take(&mut self, bytes: usize) -> Result<(), Failure> {
        self.check(bytes)?;
        self.free -= bytes;
        self.owed += bytes;
        Ok(())
    }

    /// Checks that memory is free. The caller releases it when its call ends.
    pub(super) fn check(&self, bytes: usize) -> Result<(), Failure> {
        if bytes <= self.free {
            return Ok(());
        }
        let why = "the values take more memory than the program has left; work on less at once";
        Err(Failure::new(Code::ENOMEM, why))
    }

    /// Makes room for more items.
    pub(super) fn reserve<T>(&mut self, list: &mut Vec<T>, more: usize) -> Result<(), Failure> {
        let free = list.capacity() - list.len();
        if more <= free {
            return Ok(());
        }
        let ample = more.max(list.capacity() / 2).max(64);
        for more in [ample, more] {
            if self.take((more - free).saturating_mul(size_of::<T>())).is_ok() {
                list.reserve_exact(more);
                return Ok(());
            }
        }
        self.check(usize::MAX)
    }

    fn reserve_text(&mut self, text: &mut String, more: usize) -> Result<(), Failure> {
        let free = text.capacity() - text.len();
        if more <= free {
            return Ok(());
        }
        let ample = more.max(text.capacity() / 2).max(256);
        for more in [ample, more] {
            if text.len() + more <= u32::MAX as usize && self.take(more - free).is_ok() {
                text.reserve_exact(more);
                return Ok(());
            }
        }
        self.check(usize::MAX)
    }
}

/// Positions of an object's keys by their hash, in open addressing. A slot holds a position plus 1,
/// or 0.
#[derive(Default)]
struct Index(Vec<u32>);

impl Index {
    /// Adds the entries of an object from the position `first` on. Their keys are parts of `text`.
    fn add(&mut self, text: &str, entries: &[Entry], first: usize) {
        for (position, entry) in entries.iter().enumerate().skip(first) {
            let span = entry.key;
            let key = text.get(span.start as usize..(span.start + span.len) as usize);
            self.insert(hash(key.unwrap_or_default()), narrow(position));
        }
    }

    fn slots(&self, hash: u64) -> impl Iterator<Item = usize> {
        let mask = self.0.len().saturating_sub(1);
        let first = usize::try_from(hash & u64::from(u32::MAX)).unwrap_or(0);
        (0..self.0.len()).map(move |step| (first + step) & mask)
    }

    fn insert(&mut self, hash: u64, position: u32) {
        let free = self.slots(hash).find(|slot| self.0.get(*slot) == Some(&0));
        if let Some(slot) = free.and_then(|slot| self.0.get_mut(slot)) {
            *slot = position + 1;
        }
    }
}

fn hash(key: &str) -> u64 {
    FixedState::with_seed(0).hash_one(key)
}

/// A value, borrowed from the arena.
#[derive(Clone, Copy)]
pub(super) enum View<'v> {
    Null,
    Bool(bool),
    Whole(i64),
    Float(f64),
    Decimal(&'v str),
    Big(&'v BigInt),
    Text(&'v str),
    List(&'v [i32]),
    Object(&'v [Entry]),
}

impl View<'_> {
    pub(super) fn kind(self) -> &'static str {
        match self {
            View::Null => "null",
            View::Bool(_) => "bool",
            View::Whole(_) | View::Float(_) | View::Decimal(_) | View::Big(_) => "number",
            View::Text(_) => "string",
            View::List(_) => "list",
            View::Object(_) => "object",
        }
    }
}

/// A state of the arena, to which [`Values::restore`] returns.
pub(super) struct Mark {
    nodes: usize,
    text: usize,
    items: usize,
    entries: usize,
}

/// Returns the program's values. What a call takes must be charged by [`with`].
pub(super) fn of(run: &mut Run) -> &mut Values {
    // A charge takes 32 bytes more than it is for.
    let free = run.remaining_memory().saturating_sub(32);
    let values = run.state::<Values>();
    values.memory.free = free.saturating_sub(values.memory.owed);
    values
}

/// Calls a function with the program's values, and charges the memory that it requests to the run.
pub(super) fn with<T>(
    run: &mut Run,
    work: impl FnOnce(&mut Values) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let values = of(run);
    let result = work(values);
    let owed = values.memory.owed;
    if owed > 0 {
        run.charge(owed)?;
        run.state::<Values>().memory.owed = 0;
    }
    result
}

#[cfg(test)]
impl Values {
    pub(super) fn limited(bytes: usize) -> Values {
        Values { memory: Memory { free: bytes, owed: 0 }, ..Values::default() }
    }

    pub(super) fn unlimited() -> Values {
        Values::limited(usize::MAX / 2)
    }
}

impl Values {
    /// Returns a value.
    ///
    /// # Errors
    /// `EBOUND` if no value has the handle.
    pub(super) fn view(&self, handle: i32) -> Result<View<'_>, Failure> {
        Ok(match handle {
            NULL => View::Null,
            FALSE => View::Bool(false),
            TRUE => View::Bool(true),
            ..0 => View::Whole(i64::from((handle << 1) >> 1)),
            _ => match *self.node(handle)? {
                Node::Text(span) => View::Text(self.span(span)),
                Node::Whole(n) => View::Whole(n),
                Node::Float(x) => View::Float(x),
                Node::Decimal(span) => View::Decimal(self.span(span)),
                Node::Big(at) => match self.bigs.get(at as usize) {
                    Some(big) => View::Big(big),
                    None => View::Null,
                },
                Node::List(block) => View::List(self.items.get(block.range()).unwrap_or_default()),
                Node::Object(block) => {
                    View::Object(self.entries.get(block.range()).unwrap_or_default())
                }
            },
        })
    }

    fn node(&self, handle: i32) -> Result<&Node, Failure> {
        let at = handle.checked_sub(FIRST).and_then(|at| usize::try_from(at).ok());
        at.and_then(|at| self.nodes.get(at))
            .ok_or_else(|| Failure::new(Code::EBOUND, format!("no value has the handle {handle}")))
    }

    fn set_node(&mut self, handle: i32, node: Node) {
        let at = handle.checked_sub(FIRST).and_then(|at| usize::try_from(at).ok());
        if let Some(old) = at.and_then(|at| self.nodes.get_mut(at)) {
            *old = node;
        }
    }

    fn span(&self, span: Span) -> &str {
        self.text.get(span.start as usize..(span.start + span.len) as usize).unwrap_or_default()
    }

    fn add_node(&mut self, node: Node) -> Result<i32, Failure> {
        self.memory.reserve(&mut self.nodes, 1)?;
        let handle = i32::try_from(self.nodes.len()).ok().and_then(|at| at.checked_add(FIRST));
        let Some(handle) = handle else { return self.memory.check(usize::MAX).map(|()| NULL) };
        self.nodes.push(node);
        Ok(handle)
    }

    /// Appends to the text of the arena.
    fn write(&mut self, text: &str) -> Result<Span, Failure> {
        self.memory.reserve_text(&mut self.text, text.len())?;
        let start = narrow(self.text.len());
        self.text.push_str(text);
        Ok(Span { start, len: narrow(text.len()) })
    }

    pub(super) fn bool(yes: bool) -> i32 {
        if yes { TRUE } else { FALSE }
    }

    pub(super) fn whole(&mut self, n: i64) -> Result<i32, Failure> {
        match small(n) {
            Some(handle) => Ok(handle),
            None => self.add_node(Node::Whole(n)),
        }
    }

    pub(super) fn float(&mut self, x: f64) -> Result<i32, Failure> {
        self.add_node(Node::Float(x))
    }

    /// Adds a number whose text is a JSON number.
    pub(super) fn decimal(&mut self, text: &str) -> Result<i32, Failure> {
        let span = self.write(text)?;
        self.add_node(Node::Decimal(span))
    }

    pub(super) fn big(&mut self, n: BigInt) -> Result<i32, Failure> {
        let words = usize::try_from(n.bits() / 8).unwrap_or(usize::MAX);
        self.memory.take(words)?;
        self.memory.reserve(&mut self.bigs, 1)?;
        let at = narrow(self.bigs.len());
        self.bigs.push(n);
        self.add_node(Node::Big(at))
    }

    pub(super) fn text(&mut self, text: &str) -> Result<i32, Failure> {
        let span = self.write(text)?;
        self.add_node(Node::Text(span))
    }

    pub(super) fn list(&mut self, items: &[i32]) -> Result<i32, Failure> {
        self.memory.reserve(&mut self.items, items.len())?;
        let block = block(self.items.len(), items.len());
        self.items.extend_from_slice(items);
        self.add_node(Node::List(block))
    }

    pub(super) fn object(&mut self) -> Result<i32, Failure> {
        self.add_node(Node::Object(Block::default()))
    }

    /// Adds an object with entries of existing objects, whose keys differ.
    pub(super) fn object_of(&mut self, entries: &[Entry]) -> Result<i32, Failure> {
        self.memory.reserve(&mut self.entries, entries.len())?;
        let block = block(self.entries.len(), entries.len());
        self.entries.extend_from_slice(entries);
        let object = self.add_node(Node::Object(block))?;
        self.index(object)?;
        Ok(object)
    }

    /// Appends an item to a list.
    pub(super) fn append(&mut self, list: i32, item: i32) -> Result<(), Failure> {
        let Node::List(mut block) = *self.node(list)? else { return Ok(()) };
        make_room(&mut self.items, &mut block, &mut self.memory)?;
        if let Some(slot) = self.items.get_mut(block.range().end) {
            *slot = item;
        }
        block.len += 1;
        self.set_node(list, Node::List(block));
        Ok(())
    }

    /// Removes the last item of a list.
    pub(super) fn remove_last(&mut self, list: i32) -> Result<Option<i32>, Failure> {
        let Node::List(mut block) = *self.node(list)? else { return Ok(None) };
        let last = self.items.get(block.range()).unwrap_or_default().last().copied();
        block.len = block.len.saturating_sub(1);
        self.set_node(list, Node::List(block));
        Ok(last)
    }

    /// Replaces an item of a list. The position must exist.
    pub(super) fn replace(&mut self, list: i32, position: usize, item: i32) -> Result<(), Failure> {
        let Node::List(block) = *self.node(list)? else { return Ok(()) };
        let items = self.items.get_mut(block.range()).unwrap_or_default();
        if let Some(slot) = items.get_mut(position) {
            *slot = item;
        }
        Ok(())
    }

    /// Sets the value of a key of an object. Adds the key if it is missing.
    pub(super) fn set(&mut self, object: i32, key: &str, value: i32) -> Result<(), Failure> {
        if let Some(position) = self.position(object, key)? {
            return self.set_at(object, position, value);
        }
        let key = self.write(key)?;
        self.add_entry(object, Entry { key, value, key_handle: 0 })
    }

    /// Adds a key that the object has not.
    pub(super) fn add_entry(&mut self, object: i32, entry: Entry) -> Result<(), Failure> {
        let Node::Object(mut block) = *self.node(object)? else { return Ok(()) };
        make_room(&mut self.entries, &mut block, &mut self.memory)?;
        if let Some(slot) = self.entries.get_mut(block.range().end) {
            *slot = entry;
        }
        block.len += 1;
        self.set_node(object, Node::Object(block));
        self.index(object)
    }

    /// Replaces the value at a position of an object.
    pub(super) fn set_at(
        &mut self,
        object: i32,
        position: usize,
        value: i32,
    ) -> Result<(), Failure> {
        let Node::Object(block) = *self.node(object)? else { return Ok(()) };
        let entries = self.entries.get_mut(block.range()).unwrap_or_default();
        if let Some(entry) = entries.get_mut(position) {
            entry.value = value;
        }
        Ok(())
    }

    /// Removes the item of a list or the entry of an object at a position. Those after it move up.
    pub(super) fn remove_at(&mut self, container: i32, position: usize) -> Result<(), Failure> {
        match *self.node(container)? {
            Node::List(mut block) => {
                let items = self.items.get_mut(block.range()).unwrap_or_default();
                if let Some(rest) = items.get_mut(position..) {
                    rest.rotate_left(1);
                    block.len -= 1;
                    self.set_node(container, Node::List(block));
                }
                Ok(())
            }
            Node::Object(mut block) => {
                let entries = self.entries.get_mut(block.range()).unwrap_or_default();
                let Some(rest) = entries.get_mut(position..) else { return Ok(()) };
                rest.rotate_left(1);
                block.len -= 1;
                self.set_node(container, Node::Object(block));
                // The positions in the index have changed. An object of few keys keeps none, since keys
                // that are added to it are not indexed.
                let id = container.cast_unsigned();
                if block.len as usize <= MAX_SEARCHED {
                    self.indexes.remove(&id);
                } else if let Some(index) = self.indexes.get_mut(&id) {
                    index.0.fill(0);
                    let entries = self.entries.get(block.range()).unwrap_or_default();
                    index.add(&self.text, entries, 0);
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Adds the last key of an object to the object's index, which is created if the object has
    /// many keys and no index.
    fn index(&mut self, object: i32) -> Result<(), Failure> {
        let Node::Object(block) = *self.node(object)? else { return Ok(()) };
        let count = block.len as usize;
        if count <= MAX_SEARCHED {
            return Ok(());
        }
        let entries = self.entries.get(block.range()).unwrap_or_default();
        let id = object.cast_unsigned();
        let old = self.indexes.get(&id).map_or(0, |index| index.0.len());
        let is_added = old >= 2 * count;
        if !is_added {
            let size = (4 * count).next_power_of_two();
            self.memory.take(size * size_of::<u32>())?;
            self.indexes.insert(id, Index(vec![0; size]));
        }
        if let Some(index) = self.indexes.get_mut(&id) {
            index.add(&self.text, entries, if is_added { count - 1 } else { 0 });
        }
        Ok(())
    }

    /// Returns the position of a key in an object.
    fn position(&self, object: i32, key: &str) -> Result<Option<usize>, Failure> {
        let View::Object(entries) = self.view(object)? else { return Ok(None) };
        Ok(self.position_in(object, entries, key))
    }

    pub(super) fn position_in(&self, object: i32, entries: &[Entry], key: &str) -> Option<usize> {
        if entries.len() <= MAX_SEARCHED {
            return self.search(entries, key);
        }
        let index = self.indexes.get(&object.cast_unsigned())?;
        for slot in index.slots(hash(key)) {
            let position = (*index.0.get(slot)?).checked_sub(1)? as usize;
            if entries.get(position).is_some_and(|entry| self.key(entry) == key) {
                return Some(position);
            }
        }
        None
    }

    fn search(&self, entries: &[Entry], key: &str) -> Option<usize> {
        let length = narrow(key.len());
        entries.iter().position(|entry| entry.key.len == length && self.key(entry) == key)
    }

    /// Returns the key of an entry.
    pub(super) fn key(&self, entry: &Entry) -> &str {
        self.span(entry.key)
    }

    /// Returns the handle of the key at a position of an object. The handle is kept, so that a loop
    /// over the object adds each key once.
    pub(super) fn key_handle(&mut self, object: i32, position: usize) -> Result<i32, Failure> {
        let Node::Object(block) = *self.node(object)? else { return Ok(NULL) };
        let at = block.range().start + position;
        let Some(entry) = self.entries.get(at).copied() else { return Ok(NULL) };
        if entry.key_handle != 0 {
            return Ok(entry.key_handle);
        }
        let handle = self.add_node(Node::Text(entry.key))?;
        if let Some(entry) = self.entries.get_mut(at) {
            entry.key_handle = handle;
        }
        Ok(handle)
    }

    /// Returns the position of the key of an entry in an object.
    pub(super) fn position_of(&self, object: i32, entry: &Entry) -> Result<Option<usize>, Failure> {
        self.position(object, self.key(entry))
    }

    /// Returns the value at a position of an object, or null.
    pub(super) fn value_at(&self, object: i32, position: usize) -> Result<i32, Failure> {
        let View::Object(entries) = self.view(object)? else { return Ok(NULL) };
        Ok(entries.get(position).map_or(NULL, |entry| entry.value))
    }

    /// Returns an entry with the key of another one.
    pub(super) fn entry_like(entry: &Entry, value: i32) -> Entry {
        Entry { value, ..*entry }
    }

    /// Remembers the place that a value was taken from, for messages about the value.
    pub(super) fn remember(&mut self, value: i32, container: i32, position: usize) -> i32 {
        let place = Place { value, container, position: narrow(position) };
        if let Some(slot) = self.recent.get_mut(self.next_recent) {
            *slot = place;
        }
        self.next_recent = (self.next_recent + 1) % self.recent.len();
        value
    }

    /// Returns the position of the place that was remembered last.
    pub(super) fn last_position(&self) -> Option<usize> {
        let last = self.next_recent.checked_sub(1).unwrap_or(self.recent.len() - 1);
        self.recent.get(last).map(|place| place.position as usize)
    }

    /// Returns the list or object that contains a value, and the value's position in it. A value
    /// that several contain has the place that it was taken from last.
    pub(super) fn parent(&self, value: i32) -> Option<(i32, usize)> {
        // A place is out of date if its item was replaced.
        let is_current = |place: &&Place| {
            place.container != 0
                && place.value == value
                && match self.view(place.container) {
                    Ok(View::List(items)) => items.get(place.position as usize) == Some(&value),
                    Ok(View::Object(entries)) => entries
                        .get(place.position as usize)
                        .is_some_and(|entry| entry.value == value),
                    _ => false,
                }
        };
        let mut places = self.recent.iter().filter(is_current);
        if let Some(place) = places.next() {
            let is_unique = value >= FIRST || places.all(|other| other == place);
            return is_unique.then_some((place.container, place.position as usize));
        }
        if value < FIRST {
            return None;
        }
        self.nodes.iter().zip(FIRST..).find_map(|(node, container)| {
            let position = match node {
                Node::List(block) => {
                    self.items.get(block.range())?.iter().position(|item| *item == value)
                }
                Node::Object(block) => {
                    self.entries.get(block.range())?.iter().position(|entry| entry.value == value)
                }
                _ => None,
            };
            Some((container, position?))
        })
    }

    /// Returns the current state of the arena.
    pub(super) fn mark(&self) -> Mark {
        Mark {
            nodes: self.nodes.len(),
            text: self.text.len(),
            items: self.items.len(),
            entries: self.entries.len(),
        }
    }

    /// Removes what was added since a mark. No handle to it may exist.
    pub(super) fn restore(&mut self, mark: &Mark) {
        self.nodes.truncate(mark.nodes);
        self.text.truncate(mark.text);
        self.items.truncate(mark.items);
        self.entries.truncate(mark.entries);
        let end = i32::try_from(mark.nodes).unwrap_or(i32::MAX).saturating_add(FIRST);
        self.indexes.retain(|object, _| *object < end.cast_unsigned());
    }
}

/// Builds values from the parts of a text. Containers get their nodes when they open, so that nodes
/// are in the order of the text.
pub(super) struct Builder<'v> {
    values: &'v mut Values,
    /// The offset of the text's copy in the arena, or `None` if the arena has no copy.
    copy: Option<usize>,
    frames: Vec<Frame>,
    /// The items of the lists that are open.
    items: Vec<i32>,
    /// The entries of the objects that are open. The value of the last one of each object may be
    /// still missing.
    entries: Vec<Entry>,
    /// The entries of the object that was closed last at each depth.
    closed: Vec<Block>,
    root: i32,
}

/// A list or an object that is open.
struct Frame {
    handle: i32,
    is_object: bool,
    /// The first of its items or entries.
    start: usize,
    /// The index of an object with many keys.
    index: Index,
    /// The entries of the last object at the same depth, which has the same keys so far. A list of
    /// records repeats their keys, so that few keys need a search.
    like: Option<Block>,
}

impl<'v> Builder<'v> {
    /// Builds values from the parts of a text that is copied to the arena first, so that the
    /// strings and numbers in it are not copied one by one.
    pub(super) fn of_copy(values: &'v mut Values, text: &str) -> Result<Self, Failure> {
        let copy = values.text.len();
        values.write(text)?;
        Ok(Builder { copy: Some(copy), ..Builder::new(values) })
    }

    pub(super) fn new(values: &'v mut Values) -> Self {
        Builder {
            values,
            copy: None,
            frames: Vec::new(),
            items: Vec::new(),
            entries: Vec::new(),
            closed: Vec::new(),
            root: NULL,
        }
    }

    /// Returns the value that was built.
    pub(super) fn finish(self) -> i32 {
        self.root
    }

    /// Returns a part of the arena's text that is equal to `text`, which starts at the offset `at`
    /// of the copied text, if it is a part of it.
    fn span(&mut self, text: &str, at: Option<usize>) -> Result<Span, Failure> {
        match (self.copy, at) {
            (Some(copy), Some(at)) => {
                Ok(Span { start: narrow(copy + at), len: narrow(text.len()) })
            }
            _ => self.values.write(text),
        }
    }

    fn add(&mut self, value: i32) -> Result<(), Failure> {
        match self.frames.last() {
            None => self.root = value,
            Some(Frame { is_object: true, .. }) => {
                if let Some(entry) = self.entries.last_mut() {
                    entry.value = value;
                }
            }
            Some(_) => {
                if self.items.len() == self.items.capacity() {
                    // The items are copied to the arena when their list closes.
                    self.values.memory.check(3 * self.items.len() * size_of::<i32>())?;
                }
                self.items.push(value);
            }
        }
        Ok(())
    }

    pub(super) fn add_null(&mut self) -> Result<(), Failure> {
        self.add(NULL)
    }

    pub(super) fn add_bool(&mut self, yes: bool) -> Result<(), Failure> {
        self.add(Values::bool(yes))
    }

    pub(super) fn add_whole(&mut self, n: i64) -> Result<(), Failure> {
        let value = self.values.whole(n)?;
        self.add(value)
    }

    /// Adds a number whose text is a JSON number.
    pub(super) fn add_number(&mut self, text: &str) -> Result<(), Failure> {
        match text.parse::<i64>() {
            Ok(n) if text != "-0" => self.add_whole(n),
            _ => self.add_decimal(text, None),
        }
    }

    pub(super) fn add_decimal(&mut self, text: &str, at: Option<usize>) -> Result<(), Failure> {
        let span = self.span(text, at)?;
        let value = self.values.add_node(Node::Decimal(span))?;
        self.add(value)
    }

    pub(super) fn add_text(&mut self, text: &str, at: Option<usize>) -> Result<(), Failure> {
        let span = self.span(text, at)?;
        let value = self.values.add_node(Node::Text(span))?;
        self.add(value)
    }

    /// Adds the key of the next value. Returns false if the object has the key already.
    pub(super) fn add_key(&mut self, text: &str, at: Option<usize>) -> Result<bool, Failure> {
        let Some(Frame { start, index, like, .. }) = self.frames.last_mut() else {
            return Ok(true);
        };
        let known = self.entries.get(*start..).unwrap_or_default();
        if let Some(block) = like {
            let entries = self.values.entries.get(block.range()).unwrap_or_default();
            let same = entries.get(known.len()).map(|entry| entry.key);
            if let Some(key) = same.filter(|key| self.values.span(*key) == text) {
                self.push_key(key)?;
                return Ok(true);
            }
            *like = None;
        }
        if known.len() <= MAX_SEARCHED {
            if self.values.search(known, text).is_some() {
                return Ok(false);
            }
        } else {
            if index.0.len() < 2 * known.len() {
                let size = (4 * known.len()).next_power_of_two();
                self.values.memory.take(size * size_of::<u32>())?;
                *index = Index(vec![0; size]);
                for (position, entry) in known.iter().enumerate() {
                    index.insert(hash(self.values.key(entry)), narrow(position));
                }
            }
            let hash = hash(text);
            for slot in index.slots(hash) {
                let position = index.0.get(slot).copied().unwrap_or(0).checked_sub(1);
                let Some(position) = position else { break };
                let entry = known.get(position as usize);
                if entry.is_some_and(|entry| self.values.key(entry) == text) {
                    return Ok(false);
                }
            }
            index.insert(hash, narrow(known.len()));
        }
        let key = self.span(text, at)?;
        self.push_key(key)?;
        Ok(true)
    }

    fn push_key(&mut self, key: Span) -> Result<(), Failure> {
        if self.entries.len() == self.entries.capacity() {
            // The entries are copied to the arena when their object closes.
            self.values.memory.check(3 * self.entries.len() * size_of::<Entry>())?;
        }
        self.entries.push(Entry { key, value: NULL, key_handle: 0 });
        Ok(())
    }

    pub(super) fn open(&mut self, is_object: bool) -> Result<(), Failure> {
        let empty = Block::default();
        let node = if is_object { Node::Object(empty) } else { Node::List(empty) };
        let handle = self.values.add_node(node)?;
        self.add(handle)?;
        let start = if is_object { self.entries.len() } else { self.items.len() };
        let like = self.closed.get(self.frames.len()).copied().filter(|_| is_object);
        self.frames.push(Frame { handle, is_object, start, index: Index::default(), like });
        Ok(())
    }

    pub(super) fn close(&mut self) -> Result<(), Failure> {
        let Some(Frame { handle, is_object, start, index, .. }) = self.frames.pop() else {
            return Ok(());
        };
        let values = &mut *self.values;
        if is_object {
            let entries = self.entries.get(start..).unwrap_or_default();
            values.memory.reserve(&mut values.entries, entries.len())?;
            let block = block(values.entries.len(), entries.len());
            values.entries.extend_from_slice(entries);
            values.set_node(handle, Node::Object(block));
            let count = entries.len();
            self.entries.truncate(start);
            let depth = self.frames.len();
            if self.closed.len() <= depth {
                self.closed.resize(depth + 1, Block::default());
            }
            if let Some(slot) = self.closed.get_mut(depth) {
                *slot = block;
            }
            if count > MAX_SEARCHED {
                if index.0.len() > count {
                    values.indexes.insert(handle.cast_unsigned(), index);
                } else {
                    values.index(handle)?;
                }
            }
        } else {
            let items = self.items.get(start..).unwrap_or_default();
            values.memory.reserve(&mut values.items, items.len())?;
            let block = block(values.items.len(), items.len());
            values.items.extend_from_slice(items);
            values.set_node(handle, Node::List(block));
            self.items.truncate(start);
        }
        Ok(())
    }
}

/// Returns the handle of a small whole number.
fn small(n: i64) -> Option<i32> {
    let n = i32::try_from(n).ok().filter(|n| (-(1 << 30)..1 << 30).contains(n))?;
    Some(n & i32::MAX | WHOLE)
}

fn block(start: usize, len: usize) -> Block {
    Block { start: narrow(start), len: narrow(len), capacity: narrow(len) }
}

/// Converts a length or a position, which the memory of a run keeps far below the maximum.
fn narrow(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

/// Moves a full block to the end of its vector and doubles it.
fn make_room<T: Copy + Default>(
    all: &mut Vec<T>,
    block: &mut Block,
    memory: &mut Memory,
) -> Result<(), Failure> {
    if block.len < block.capacity {
        return Ok(());
    }
    let capacity = (2 * block.len).max(4);
    let is_last = block.range().end == all.len();
    let added = if is_last { capacity - block.len } else { capacity };
    memory.reserve(all, added as usize)?;
    if !is_last {
        let start = narrow(all.len());
        all.extend_from_within(block.range());
        block.start = start;
    }
    all.resize((block.start + capacity) as usize, T::default());
    block.capacity = capacity;
    Ok(())
}
