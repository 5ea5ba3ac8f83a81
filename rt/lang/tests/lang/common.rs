//! The host functions that programs in these tests may call, with their fixed signatures.

use wattle_lang::{Code, Names, Param, Signature, Signatures, Ty};

macro_rules! host {
    ($(
        $module:ident . $name:ident ($($param:ident : $pty:ident),*)
            -> ($($result:ident : $rty:ident),*) $([$($error:ident),+])?;
    )*) => {
        &[$(Signature {
            module: stringify!($module),
            name: stringify!($name),
            params: &[$(Param { name: stringify!($param), ty: Ty::$pty, names: Names::Nothing }),*],
            results: &[
                $(Param { name: stringify!($result), ty: Ty::$rty, names: Names::Nothing }),*
            ],
            errors: &[$($(Code::$error),+)?],
            touches: &[],
        }),*]
    };
}

const HOST: &[Signature] = host! {
    sys.argc() -> (n: Int);
    sys.argv(n: Int) -> (ptr: Str) [EBOUND];
    sys.resv(ptr: Str) -> ();
    sys.alloc(size: Int) -> (ptr: Addr);
    sys.args() -> (arr: Arr);
    sys.why() -> (ptr: Str);
    sys.fail(code: Int, reason: Str) -> () [ETRFM];
    sys.code_name(code: Int) -> (ptr: Str);
    sys.sleep(ms: Int) -> ();
    sys.trap(message: Str, a: Long, b: Long) -> ();
    str.len(s: Str) -> (n: Int);
    str.cat(a: Str, b: Str) -> (ptr: Str) [ENOMEM];
    str.append(s: Any, t: Str, in_place: Bool) -> (ptr: Str) [EBOUND, ENOMEM];
    str.split(s: Str, sep: Str) -> (arr: Arr) [ENOMEM];
    str.join(arr: Arr, sep: Str) -> (ptr: Str) [ENOMEM];
    str.find(s: Str, needle: Str, from: Int) -> (n: Int);
    str.slice(s: Str, start: Int, end: Int) -> (ptr: Str) [EBOUND];
    str.eq(a: Str, b: Str) -> (same: Bool);
    str.contains(s: Str, needle: Str) -> (found: Bool);
    str.from_int(n: Int) -> (ptr: Str);
    str.to_int(s: Str) -> (n: Int) [EPARSE];
    str.chunk(s: Str, n: Int) -> (arr: Arr) [EBOUND];
    str.chars(s: Str) -> (arr: Arr);
    str.repeat(s: Str, n: Int) -> (ptr: Str) [ENOMEM];
    str.trim(s: Str) -> (ptr: Str) [ENOMEM];
    str.to_float(s: Str) -> (x: Float) [EPARSE];
    str.from_float(x: Float, digits: OptInt) -> (ptr: Str);
    str.from_long(n: Long) -> (ptr: Str);
    str.cmp(a: Str, b: Str) -> (n: Int);
    str.match(s: Str, pattern: Str) -> (arr: Arr) [EPARSE];
    math.pow(x: Float, y: Float) -> (x: Float) [EBOUND];
    par.call(program: Str, args: Arr) -> (ptr: Str) [ENOENT];
    arr.new() -> (h: Arr);
    arr.push(h: Arr, ptr: Str) -> () [EBOUND];
    arr.get(h: Arr, i: Int) -> (ptr: Str) [EBOUND];
    arr.len(h: Arr) -> (n: Int);
    arr.set(h: Arr, i: Int, item: Str) -> () [EBOUND];
    arr.sort(h: Arr) -> () [ENOMEM];
    arr.slice(h: Arr, start: Int, end: OptInt) -> (arr: Arr) [EBOUND];
    arr.pop(h: Arr) -> (ptr: Str) [EBOUND];
    arr.has(h: Arr, item: Str) -> (found: Bool);
    map.new() -> (h: Map);
    map.set(h: Map, k: Str, v: Str) -> () [EBOUND];
    map.get(h: Map, k: Str) -> (ptr: Str) [ENOENT];
    map.incr(h: Map, k: Str, n: Int) -> (n: Int);
    map.has(h: Map, k: Str) -> (found: Bool);
    map.keys(h: Map) -> (arr: Arr);
    map.len(h: Map) -> (n: Int);
    kv.get(k: Str) -> (ptr: Str) [ENOENT];
    kv.set(k: Str, v: Str) -> () [EACCESS];
    http.get(url: Str) -> (ptr: Str) [EREMOTE];
    http.post(url: Str, body: Str, content_type: Str) -> (ptr: Str) [EREMOTE];
    fs.read(path: Str) -> (ptr: Str) [ENOENT];
    fs.write(path: Str, data: Str) -> () [EACCESS];
    json.get(doc: Str, path: Str) -> (ptr: Str) [EPARSE, ENOENT];
    ai.assist(text: Str, instruction: Str, options: OptStr) -> (ptr: Str) [EREMOTE];
    dbg.log(ptr: Str) -> ();
};

/// Returns the signatures of the host functions.
pub(crate) fn host() -> Signatures {
    Signatures::new(HOST.iter().copied())
}
