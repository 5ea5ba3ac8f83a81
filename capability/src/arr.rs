//! `arr`: arrays of texts that the host keeps for the run; a program holds a handle.

use wattle_rt::{Code, Failure, Run, Value, capability, host};

capability! {
    /// Arrays of texts, held by the host; a handle is a number above 0.
    pub const ARR: "arr" 1;

    /// Makes an empty array
    #[example = "(call $arr.new) (call $arr.len) (call $str.from_int) (call $sys.resv) (i32.const 0)"]
    fn new() -> h: arr = new;

    /// Adds a text at the end
    #[example = "(local $a i32) (local.set $a (call $arr.new)) (call $arr.push (local.get $a) \"x\")"]
    fn push(h: arr, ptr: bytes) ! EBOUND ENOMEM = push;

    /// Gives the text at index i, counted from 0
    #[example = "(call $str.split \"a b\" \" \") (drop) (i32.const 1) (call $arr.get) (drop) (call $sys.resv) (i32.const 0)"]
    fn get(h: arr, i: int) -> ptr: str ! EBOUND = get;

    /// Replaces the text at index i
    #[example = "(local $a i32) (call $str.split \"a b\" \" \") (drop) (local.set $a) (call $arr.set (local.get $a) (i32.const 0) \"z\")"]
    fn set(h: arr, i: int, ptr: bytes) ! EBOUND ENOMEM = set;

    /// Gives the number of texts
    #[example = "(call $arr.new) (call $arr.len) (call $str.from_int) (call $sys.resv) (i32.const 0)"]
    fn len(h: arr) -> n: int = len;

    /// Sorts by bytes, in place
    #[example = "(local $a i32) (call $str.split \"b a\" \" \") (drop) (local.set $a) (call $arr.sort (local.get $a))"]
    fn sort(h: arr) ! EBOUND = sort;

    /// Turns the order round, in place
    #[example = "(local $a i32) (call $str.split \"a b\" \" \") (drop) (local.set $a) (call $arr.reverse (local.get $a))"]
    fn reverse(h: arr) ! EBOUND = reverse;

    /// Writes the array as a JSON array of strings
    #[example = "(call $str.split \"a b\" \" \") (drop) (call $arr.to_json) (drop) (call $sys.resv) (i32.const 0)"]
    fn to_json(h: arr) -> ptr: str ! EBOUND = to_json;

    /// Reads a JSON array; strings lose their quotes, anything else stays JSON
    #[example = "(call $arr.from_json \"[1, \\\"b\\\"]\") (drop) (call $arr.len) (call $str.from_int) (call $sys.resv) (i32.const 0)"]
    fn from_json(doc: str) -> h: arr ! EPARSE ENOMEM = from_json;
}

/// The handle of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Handle(pub i32);

impl Value for Handle {
    type Wire = i32;
    fn store(self, _: &mut host::Caller<'_>) -> Result<i32, Failure> {
        Ok(self.0)
    }
}

/// The arrays of a run.
#[derive(Default)]
pub struct Arrays(Vec<Vec<Vec<u8>>>);

impl Arrays {
    /// The run's arrays.
    pub fn of(run: &mut Run) -> &mut Arrays {
        run.state()
    }

    /// Makes an array of those items.
    ///
    /// # Errors
    /// `ENOMEM` where the run holds too much already.
    pub fn make<T: AsRef<[u8]>>(run: &mut Run, items: impl IntoIterator<Item = T>) -> Result<Handle, Failure> {
        let mut list = Vec::new();
        run.charge(0)?;
        for item in items {
            run.charge(item.as_ref().len())?;
            list.push(item.as_ref().to_vec());
        }
        let arrays = &mut Arrays::of(run).0;
        arrays.push(list);
        Ok(Handle(i32::try_from(arrays.len()).unwrap_or(i32::MAX)))
    }

    /// The array of that handle.
    ///
    /// # Errors
    /// `EBOUND` where no array has it.
    pub fn get(&mut self, handle: Handle) -> Result<&mut Vec<Vec<u8>>, Failure> {
        let at = usize::try_from(handle.0).ok().and_then(|h| h.checked_sub(1));
        at.and_then(|at| self.0.get_mut(at)).ok_or_else(|| {
            Failure::new(Code::EBOUND, format!("no array has the handle {}; handles come from `arr.new`", handle.0))
        })
    }

    fn item(&mut self, handle: Handle, i: i32) -> Result<&mut Vec<u8>, Failure> {
        let list = self.get(handle)?;
        let length = list.len();
        usize::try_from(i)
            .ok()
            .and_then(|i| list.get_mut(i))
            .ok_or_else(|| Failure::new(Code::EBOUND, format!("no index {i} in an array of {length}")))
    }
}

fn new(run: &mut Run) -> Result<Handle, Failure> {
    Arrays::make(run, std::iter::empty::<&[u8]>())
}

fn push(run: &mut Run, h: i32, item: &[u8]) -> Result<(), Failure> {
    Arrays::of(run).get(Handle(h))?;
    run.charge(item.len())?;
    Arrays::of(run).get(Handle(h))?.push(item.to_vec());
    Ok(())
}

fn get(run: &mut Run, h: i32, i: i32) -> Result<Vec<u8>, Failure> {
    Arrays::of(run).item(Handle(h), i).cloned()
}

fn set(run: &mut Run, h: i32, i: i32, item: &[u8]) -> Result<(), Failure> {
    run.charge(item.len())?;
    *Arrays::of(run).item(Handle(h), i)? = item.to_vec();
    Ok(())
}

fn len(run: &mut Run, h: i32) -> Result<i32, Failure> {
    Ok(i32::try_from(Arrays::of(run).get(Handle(h))?.len()).unwrap_or(i32::MAX))
}

fn sort(run: &mut Run, h: i32) -> Result<(), Failure> {
    Arrays::of(run).get(Handle(h))?.sort();
    Ok(())
}

fn reverse(run: &mut Run, h: i32) -> Result<(), Failure> {
    Arrays::of(run).get(Handle(h))?.reverse();
    Ok(())
}

fn to_json(run: &mut Run, h: i32) -> Result<String, Failure> {
    let items = Arrays::of(run).get(Handle(h))?;
    let texts: Vec<_> = items.iter().map(|item| String::from_utf8_lossy(item)).collect();
    Ok(serde_json::json!(texts).to_string())
}

fn from_json(run: &mut Run, doc: &str) -> Result<Handle, Failure> {
    let items: Vec<serde_json::Value> =
        serde_json::from_str(doc).map_err(|e| Failure::new(Code::EPARSE, format!("the text is no JSON array: {e}")))?;
    Arrays::make(run, items.iter().map(crate::json::plain))
}
