//! The host functions of the WebAssembly peers: minimal versions that do the same work as Wattle's
//! host functions.
//!
//! They trust the module, because Wattle generated it: an invalid pointer or handle causes a panic.
//! Each engine implements [`Space`] for its caller type, and `link_all!` adds the functions to its
//! linker.

use crate::values::Values;

/// Size of a memory page, in bytes.
const PAGE: usize = 65_536;

/// The error code for a missing argument, array item, map key or JSON key.
pub(crate) const ENOENT: i32 = 4;

/// The error code for invalid input.
pub(crate) const EPARSE: i32 = 7;

/// The state of one run.
#[derive(Default)]
pub struct Host {
    /// The first free address in the program's memory.
    pub heap: usize,
    /// The program's arguments.
    pub args: Vec<String>,
    /// The program's results.
    pub results: Vec<Vec<u8>>,
    arrays: Vec<Vec<String>>,
    /// The values, by their handles.
    pub values: Values,
}

impl Host {
    /// Creates the state of a run with the given arguments. `heap` is the first address after the
    /// static data.
    #[must_use]
    pub fn new(heap: u32, args: Vec<String>) -> Host {
        Host { heap: heap as usize, args, ..Host::default() }
    }

    /// Returns the results, one per line.
    #[must_use]
    pub fn text(self) -> String {
        let texts = self.results.iter().map(|result| String::from_utf8_lossy(result));
        texts.collect::<Vec<_>>().join("\n")
    }

    /// Stores an array and returns its handle.
    fn keep(&mut self, items: Vec<String>) -> i32 {
        self.arrays.push(items);
        self.arrays.len() as i32
    }

    pub(crate) fn array(&self, handle: i32) -> &[String] {
        &self.arrays[handle as usize - 1]
    }
}

/// A program's memory and the state of its run.
pub trait Space {
    /// Returns the memory and the state together.
    fn split(&mut self) -> (&mut [u8], &mut Host);

    /// Grows the memory by the given number of pages.
    fn grow(&mut self, pages: u64);
}

fn bytes(memory: &[u8], pointer: i32) -> &[u8] {
    let (at, mut length) = (pointer as usize, [0; 4]);
    length.copy_from_slice(&memory[at..at + 4]);
    &memory[at + 4..at + 4 + u32::from_le_bytes(length) as usize]
}

pub(crate) fn text(memory: &[u8], pointer: i32) -> &str {
    std::str::from_utf8(bytes(memory, pointer)).unwrap_or_default()
}

/// Allocates memory and returns its address. The memory doubles in size when it is full.
fn reserve(space: &mut impl Space, size: usize) -> usize {
    let (memory, host) = space.split();
    let (length, start) = (memory.len(), host.heap.next_multiple_of(8));
    host.heap = start + size;
    if host.heap > length {
        let pages = (host.heap - length).div_ceil(PAGE).max(length / PAGE);
        space.grow(pages as u64);
    }
    start
}

fn write(memory: &mut [u8], at: usize, bytes: &[u8]) {
    memory[at..at + 4].copy_from_slice(&(bytes.len() as u32).to_le_bytes());
    memory[at + 4..at + 4 + bytes.len()].copy_from_slice(bytes);
}

pub(crate) fn put(space: &mut impl Space, bytes: &[u8]) -> i32 {
    let at = reserve(space, bytes.len() + 4);
    write(space.split().0, at, bytes);
    at as i32
}

/// Copies a string from the host into the program's memory. Returns its address and an error code.
fn put_held<S: Space>(space: &mut S, find: impl Fn(&mut Host) -> Option<&str>) -> (i32, i32) {
    let Some(length) = find(space.split().1).map(str::len) else { return (0, ENOENT) };
    let at = reserve(space, length + 4);
    let (memory, host) = space.split();
    write(memory, at, find(host).unwrap_or_default().as_bytes());
    (at as i32, 0)
}

/// Implements `sys.argv`.
pub fn argv(space: &mut impl Space, index: i32) -> (i32, i32) {
    put_held(space, |host| host.args.get(index as usize).map(String::as_str))
}

/// Implements `sys.resv`.
pub fn resv(space: &mut impl Space, result: i32) {
    let (memory, host) = space.split();
    host.results.push(bytes(memory, result).to_vec());
}

/// Implements `sys.alloc`.
pub fn alloc(space: &mut impl Space, size: i32) -> i32 {
    reserve(space, size as usize) as i32
}

/// Implements `str.cat`.
pub fn cat(space: &mut impl Space, a: i32, b: i32) -> (i32, i32) {
    let memory = space.split().0;
    let joined = [bytes(memory, a), bytes(memory, b)].concat();
    (put(space, &joined), 0)
}

/// Implements `str.upper`.
pub fn upper(space: &mut impl Space, s: i32) -> (i32, i32) {
    let upper = text(space.split().0, s).to_uppercase();
    (put(space, upper.as_bytes()), 0)
}

/// Implements `str.len`.
pub fn len(space: &mut impl Space, s: i32) -> i32 {
    bytes(space.split().0, s).len() as i32
}

/// Implements `str.from_int`.
pub fn from_int(space: &mut impl Space, n: i32) -> i32 {
    put(space, n.to_string().as_bytes())
}

/// Implements `str.words`.
pub fn words(space: &mut impl Space, s: i32) -> i32 {
    let (memory, host) = space.split();
    let words = text(memory, s).split_whitespace().map(str::to_owned).collect();
    host.keep(words)
}

/// Implements `str.lines`.
pub fn lines(space: &mut impl Space, s: i32) -> (i32, i32) {
    let (memory, host) = space.split();
    let lines = text(memory, s).lines().map(str::to_owned).collect();
    (host.keep(lines), 0)
}

/// Implements `arr.len`.
pub fn arr_len(space: &mut impl Space, array: i32) -> i32 {
    space.split().1.array(array).len() as i32
}

/// Adds the listed host functions to a linker. This is a macro because the engines' linkers have
/// the same methods but no common trait.
macro_rules! link_each {
    ($linker:expr, $caller:ty, { $($module:literal $name:literal
        ($($arg:ident: $ty:ty),*) $(-> $result:ty)? = $function:path;)* }) => {
        $($linker.func_wrap($module, $name, |mut caller: $caller, $($arg: $ty),*| $(-> $result)? {
            $function(&mut caller, $($arg),*)
        })?;)*
    };
}

/// Adds all host functions to a linker with the given caller type.
macro_rules! link_all {
    ($linker:expr, $caller:ty) => {
        $crate::host::link_each!($linker, $caller, {
            "sys" "argv" (index: i32) -> (i32, i32) = $crate::host::argv;
            "sys" "resv" (result: i32) = $crate::host::resv;
            "sys" "alloc" (size: i32) -> i32 = $crate::host::alloc;
            "str" "cat" (a: i32, b: i32) -> (i32, i32) = $crate::host::cat;
            "str" "upper" (s: i32) -> (i32, i32) = $crate::host::upper;
            "str" "len" (s: i32) -> i32 = $crate::host::len;
            "str" "from_int" (n: i32) -> i32 = $crate::host::from_int;
            "str" "words" (s: i32) -> i32 = $crate::host::words;
            "str" "lines" (s: i32) -> (i32, i32) = $crate::host::lines;
            "arr" "len" (array: i32) -> i32 = $crate::host::arr_len;
            "val" "parse" (document: i32) -> (i32, i32) = $crate::values::parse;
            "val" "list" () -> i32 = $crate::values::list;
            "val" "object" () -> i32 = $crate::values::object;
            "val" "of_long" (n: i64) -> i32 = $crate::values::of_long;
            "val" "of_str" (s: i32) -> i32 = $crate::values::of_str;
            "val" "len" (v: i32) -> (i32, i32) = $crate::values::len;
            "val" "size" (v: i32) -> (i32, i32) = $crate::values::len;
            "val" "list_len" (v: i32) -> (i32, i32) = $crate::values::len;
            "val" "nth" (v: i32, i: i32) -> (i32, i32) = $crate::values::nth;
            "val" "nth_key" (v: i32, i: i32) -> (i32, i32) = $crate::values::nth_key;
            "val" "key" (v: i32, key: i32) -> (i32, i32) = $crate::values::key;
            "val" "put_key" (v: i32, key: i32, x: i32) -> i32 = $crate::values::put_key;
            "val" "push" (v: i32, x: i32) -> i32 = $crate::values::push;
            "val" "truth" (v: i32) -> (i32, i32) = $crate::values::truth;
            "val" "add" (a: i32, b: i32) -> (i32, i32) = $crate::values::add;
            "val" "cmp" (a: i32, b: i32) -> (i32, i32) = $crate::values::cmp;
            "val" "text" (v: i32) -> (i32, i32) = $crate::values::write;
            "val" "pluck" (list: i32, key: i32) -> (i32, i32) = $crate::values::pluck;
            "val" "group" (list: i32, keys: i32) -> (i32, i32) = $crate::values::group;
            "val" "sum" (list: i32) -> (i32, i32) = $crate::values::sum;
            "val" "sort" (list: i32, keys: i32, descending: i32) -> (i32, i32) = $crate::values::sort;
            "val" "csv_text" (rows: i32, separator: i32) -> (i32, i32) = $crate::values::csv_text;
            "val" "count_arr" (array: i32) -> (i32, i32) = $crate::values::count_arr;
        });
        $linker.func_wrap("sys", "trap", |_: $caller, _: i32, _: i64, _: i64| {})?;
    };
}

pub(crate) use {link_all, link_each};
