//! Capabilities: namespaces of host functions, declared as tables of rows.

use wasmtime::Linker;

use crate::{Run, Signature};

/// A namespace of host functions: one row per function, from which follow the imports, the prompt, the manual and the
/// checks of a call.
///
/// Made by the [`capability!`](crate::capability!) macro.
#[derive(Clone, Copy, Debug)]
pub struct Capability {
    /// The namespace: `str` of `str.len`.
    pub name: &'static str,
    /// Raised when a function's meaning changes; a compiled program is never used with another version.
    pub version: u32,
    /// One sentence.
    pub about: &'static str,
    /// The functions in the order of the manual.
    pub functions: &'static [Function],
}

/// One host function: its signature, its description, and how it is linked.
#[derive(Clone, Copy, Debug)]
pub struct Function {
    /// The name that programs use, such as `str.len`.
    pub name: &'static str,
    /// What the text of a program needs to know.
    pub signature: Signature,
    /// One sentence in the third person, without a full stop.
    pub about: &'static str,
    /// A program that uses the function.
    pub example: &'static str,
    /// What the example puts out.
    pub gives: &'static [&'static str],
    /// How much of the row a model's prompt has.
    pub shown: Shown,
    /// Whether the function waits: a program that imports only functions that do not needs no timer.
    pub waits: bool,
    #[doc(hidden)]
    pub link: fn(&mut Linker<Run>, usize) -> wasmtime::Result<()>,
}

/// How much of a row a model's prompt has; the manual has all of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shown {
    /// The name alone: the function is seldom used.
    Name,
    /// How a call is written: names and parameters tell what it does.
    Signature,
    /// That, and the sentence.
    Sentence,
}

/// Declares a capability as a table: a `const` [`Capability`] of the given name, from rows of the form
///
/// ```text
/// /// Sentence for prompt and manual, on one line or several.
/// #[example = "a program that uses it" => "what it puts out", …]
/// #[prompt(signature)]
/// fn name(param: type, …) -> result: type ! CODE CODE = rust_function;
/// ```
///
/// `#[prompt(…)]` may be left out: a model's prompt then has the sentence, else the `signature` alone, or the `name` ([`Shown`](crate::Shown)).
/// `fn` rows are synchronous, `async` rows may wait. A row with codes after `!` is fallible: it pushes `err` last. A row without
/// codes traps where its function fails. Types: `str`, `opt_str`, `bytes`, `opt_bytes`, `int`, `long`, `float`, `bool`, `arr`, `map`,
/// `addr`, `any` (a number of unknown meaning, with the bytes that it points to, for rows that may not fail); and texts that name something outside the program, which authority and policy go by: `url`, `read_path`, `write_path`,
/// `tree_path` (with everything below), `key`, `key_prefix`, `program`, `agent` ([`Target`](crate::Target)), each `str` in all else. Where an argument holds such names and is none itself, the function has each of them
/// [admitted](Run::admit): `urls` and `programs`, handles of arrays, and the texts `script`, which may touch any file, `sought`, for which any file may be read, and `plan`, which may
/// name any program.
/// The Rust function takes [`&mut Run`](Run) and the arguments (`&str`, `Option<&str>`, `&[u8]`, `Option<&[u8]>`, `i32`, `i64`, `f64`, `wire::Any`;
/// owned in `async` rows) and gives `Result<value, Failure>`, where a value is anything that is [`Value`](crate::Value).
///
/// ```
/// use wattle_rt::{Failure, Run};
///
/// wattle_rt::capability! {
///     /// Greets.
///     pub const GREET: "greet" 1;
///
///     /// Gives a greeting
///     #[example = "(call $greet.hello \"you\") (drop) (call $sys.resv) (i32.const 0)" => "hello you"]
///     fn hello(name: str) -> ptr: str ! ENOMEM = hello;
/// }
///
/// fn hello(_run: &mut Run, name: &str) -> Result<String, Failure> {
///     Ok(format!("hello {name}"))
/// }
///
/// assert_eq!(GREET.functions[0].signature.to_string(), "greet.hello (name) → (ptr, err)");
/// ```
#[macro_export]
macro_rules! capability {
    (
        #[doc = $about:literal]
        $vis:vis const $constant:ident : $module:literal $version:literal;
        $(
            $(#[doc = $sentence:literal])+
            #[example = $example:literal $(=> $($gives:literal),+)?]
            $(#[prompt($shown:ident)])?
            $kind:ident $name:ident ( $($param:ident : $ty:ident),* $(,)? ) $(-> $result:ident : $rty:ident)? $(! $($code:ident)+)? = $function:path;
        )*
    ) => {
        #[doc = $about]
        $vis const $constant: $crate::Capability = $crate::Capability {
            name: $module,
            version: $version,
            about: $about.trim_ascii(),
            functions: &[$(
                $crate::Function {
                    name: concat!($module, ".", stringify!($name)),
                    signature: $crate::Signature {
                        module: $module,
                        name: stringify!($name),
                        params: &[$($crate::Param {
                            name: stringify!($param),
                            ty: $crate::__ty!($ty),
                            target: $crate::__target!($ty),
                            inside: $crate::__inside!($ty),
                        }),*],
                        results: &[$($crate::Param {
                            name: stringify!($result),
                            ty: $crate::__ty!($rty),
                            target: None,
                            inside: false,
                        })?],
                        errors: &[$($($crate::Code::$code),+)?],
                    },
                    about: concat!($($sentence),+).trim_ascii(),
                    example: $example,
                    gives: &[$($($gives),+)?],
                    shown: $crate::__shown!($($shown)?),
                    waits: $crate::__waits!($kind),
                    link: |linker, id| $crate::__link!(
                        $kind, linker, id, $module, stringify!($name), ($($param : $ty),*), [$($rty)?], [$($($code)+)?], $function
                    ),
                },
            )*],
        };
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __shown {
    () => {
        $crate::Shown::Sentence
    };
    (signature) => {
        $crate::Shown::Signature
    };
    (name) => {
        $crate::Shown::Name
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __ty {
    (str) => {
        $crate::Ty::Str
    };
    (opt_str) => {
        $crate::Ty::OptStr
    };
    (bytes) => {
        $crate::Ty::Bytes
    };
    (opt_bytes) => {
        $crate::Ty::OptBytes
    };
    (int) => {
        $crate::Ty::Int
    };
    (long) => {
        $crate::Ty::Long
    };
    (float) => {
        $crate::Ty::Float
    };
    (bool) => {
        $crate::Ty::Bool
    };
    (arr) => {
        $crate::Ty::Arr
    };
    (map) => {
        $crate::Ty::Map
    };
    (addr) => {
        $crate::Ty::Addr
    };
    (urls) => {
        $crate::Ty::Arr
    };
    (programs) => {
        $crate::Ty::Arr
    };
    (any) => {
        $crate::Ty::Any
    };
    ($target:ident) => {
        $crate::__text!($target => $crate::Ty::Str)
    };
}

// The types that are texts and name something outside the program; no other names may follow `str` on the wire.
#[doc(hidden)]
#[macro_export]
macro_rules! __text {
    (url => $then:expr) => {
        $then
    };
    (read_path => $then:expr) => {
        $then
    };
    (write_path => $then:expr) => {
        $then
    };
    (tree_path => $then:expr) => {
        $then
    };
    (key => $then:expr) => {
        $then
    };
    (key_prefix => $then:expr) => {
        $then
    };
    (program => $then:expr) => {
        $then
    };
    (agent => $then:expr) => {
        $then
    };
    (script => $then:expr) => {
        $then
    };
    (sought => $then:expr) => {
        $then
    };
    (plan => $then:expr) => {
        $then
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __inside {
    (urls) => {
        true
    };
    (programs) => {
        true
    };
    (script) => {
        true
    };
    (sought) => {
        true
    };
    (plan) => {
        true
    };
    ($plain:ident) => {
        false
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __target {
    (url) => {
        Some($crate::Target::Url)
    };
    (read_path) => {
        Some($crate::Target::Read)
    };
    (write_path) => {
        Some($crate::Target::Write)
    };
    (tree_path) => {
        Some($crate::Target::Tree)
    };
    (key) => {
        Some($crate::Target::Key)
    };
    (key_prefix) => {
        Some($crate::Target::Keys)
    };
    (program) => {
        Some($crate::Target::Program)
    };
    (agent) => {
        Some($crate::Target::Agent)
    };
    (urls) => {
        Some($crate::Target::Url)
    };
    (programs) => {
        Some($crate::Target::Program)
    };
    (script) => {
        Some($crate::Target::Tree)
    };
    (sought) => {
        Some($crate::Target::Read)
    };
    (plan) => {
        Some($crate::Target::Program)
    };
    ($plain:ident) => {
        None
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __wire {
    (long) => {
        i64
    };
    (float) => {
        f64
    };
    ($other:ident) => {
        i32
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __waits {
    (fn) => {
        false
    };
    (async) => {
        true
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __read {
    ($memory:ident, $raw:ident, str) => {
        $crate::wire::text($memory, $raw)?
    };
    ($memory:ident, $raw:ident, opt_str) => {
        $crate::wire::optional_text($memory, $raw)?
    };
    ($memory:ident, $raw:ident, bytes) => {
        $crate::wire::bytes($memory, $raw)?
    };
    ($memory:ident, $raw:ident, opt_bytes) => {
        $crate::wire::optional_bytes($memory, $raw)?
    };
    ($memory:ident, $raw:ident, any) => {
        $crate::wire::Any::of($memory, $raw)
    };
    ($memory:ident, $raw:ident, bool) => {
        $raw != 0
    };
    ($memory:ident, $raw:ident, int) => {
        $raw
    };
    ($memory:ident, $raw:ident, long) => {
        $raw
    };
    ($memory:ident, $raw:ident, float) => {
        $raw
    };
    ($memory:ident, $raw:ident, arr) => {
        $raw
    };
    ($memory:ident, $raw:ident, map) => {
        $raw
    };
    ($memory:ident, $raw:ident, addr) => {
        $raw
    };
    ($memory:ident, $raw:ident, urls) => {
        $raw
    };
    ($memory:ident, $raw:ident, programs) => {
        $raw
    };
    ($memory:ident, $raw:ident, $target:ident) => {
        $crate::__text!($target => $crate::__read!($memory, $raw, str))
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __own {
    ($memory:ident, $raw:ident, str) => {
        $crate::wire::text($memory, $raw)?.to_owned()
    };
    ($memory:ident, $raw:ident, opt_str) => {
        $crate::wire::optional_text($memory, $raw)?.map(str::to_owned)
    };
    ($memory:ident, $raw:ident, bytes) => {
        $crate::wire::bytes($memory, $raw)?.to_vec()
    };
    ($memory:ident, $raw:ident, opt_bytes) => {
        $crate::wire::optional_bytes($memory, $raw)?.map(<[u8]>::to_vec)
    };
    ($memory:ident, $raw:ident, bool) => {
        $raw != 0
    };
    ($memory:ident, $raw:ident, int) => {
        $raw
    };
    ($memory:ident, $raw:ident, long) => {
        $raw
    };
    ($memory:ident, $raw:ident, float) => {
        $raw
    };
    ($memory:ident, $raw:ident, arr) => {
        $raw
    };
    ($memory:ident, $raw:ident, map) => {
        $raw
    };
    ($memory:ident, $raw:ident, addr) => {
        $raw
    };
    ($memory:ident, $raw:ident, urls) => {
        $raw
    };
    ($memory:ident, $raw:ident, programs) => {
        $raw
    };
    ($memory:ident, $raw:ident, $target:ident) => {
        $crate::__text!($target => $crate::__own!($memory, $raw, str))
    };
}

// Asks the run's guard about an argument that names something outside the program.
#[doc(hidden)]
#[macro_export]
macro_rules! __admit {
    ($run:expr, $module:literal, $name:expr, $p:ident, url) => {
        $run.admit(concat!($module, ".", $name), $crate::Target::Url, &$p)?
    };
    ($run:expr, $module:literal, $name:expr, $p:ident, read_path) => {
        $run.admit(concat!($module, ".", $name), $crate::Target::Read, &$p)?
    };
    ($run:expr, $module:literal, $name:expr, $p:ident, write_path) => {
        $run.admit(concat!($module, ".", $name), $crate::Target::Write, &$p)?
    };
    ($run:expr, $module:literal, $name:expr, $p:ident, tree_path) => {
        $run.admit(concat!($module, ".", $name), $crate::Target::Tree, &$p)?
    };
    ($run:expr, $module:literal, $name:expr, $p:ident, key) => {
        $run.admit(concat!($module, ".", $name), $crate::Target::Key, &$p)?
    };
    ($run:expr, $module:literal, $name:expr, $p:ident, key_prefix) => {
        $run.admit(concat!($module, ".", $name), $crate::Target::Keys, &$p)?
    };
    ($run:expr, $module:literal, $name:expr, $p:ident, program) => {
        $run.admit(concat!($module, ".", $name), $crate::Target::Program, &$p)?
    };
    ($run:expr, $module:literal, $name:expr, $p:ident, agent) => {
        $run.admit(concat!($module, ".", $name), $crate::Target::Agent, &$p)?
    };
    ($run:expr, $module:literal, $name:expr, $p:ident, $plain:ident) => {};
}

// One arm per kind of row; what they share is in `crate::host`. The result's shape on the stack follows from whether the row
// has a value and whether it has codes.
#[doc(hidden)]
#[macro_export]
macro_rules! __link {
    (fn, $linker:ident, $id:ident, $module:literal, $name:expr, ($($p:ident : $ty:ident),*), [$($rty:ident)?], [$($code:ident)*], $function:path) => {
        $linker
            .func_wrap($module, $name, move |mut caller: $crate::host::Caller<'_>, $($p: $crate::__wire!($ty)),*| {
                let outcome = $crate::host::call(&mut caller, $id, |memory, run| {
                    let _ = memory;
                    $(let $p = $crate::__read!(memory, $p, $ty);)*
                    $($crate::__admit!(run, $module, $name, $p, $ty);)*
                    $function(run, $($p),*)
                });
                $crate::__push!(caller, $id, outcome, [$($rty)?], [$($code)*])
            })
            .map(drop)
    };
    (async, $linker:ident, $id:ident, $module:literal, $name:expr, ($($p:ident : $ty:ident),*), [$($rty:ident)?], [$($code:ident)*], $function:path) => {
        $linker
            .func_wrap_async($module, $name, move |mut caller: $crate::host::Caller<'_>, ($($p,)*): ($($crate::__wire!($ty),)*)| {
                Box::new(async move {
                    let read = $crate::host::begin(&mut caller, $id, |memory| {
                        let _ = memory;
                        Ok(($($crate::__own!(memory, $p, $ty),)*))
                    });
                    let admitted = read.and_then(|($($p,)*)| {
                        $($crate::__admit!(caller.data(), $module, $name, $p, $ty);)*
                        Ok(($($p,)*))
                    });
                    let outcome = match admitted {
                        Ok(($($p,)*)) => $function(caller.data_mut(), $($p),*).await,
                        Err(failure) => Err(failure),
                    };
                    $crate::host::end(&mut caller);
                    $crate::__push!(caller, $id, outcome, [$($rty)?], [$($code)*])
                })
            })
            .map(drop)
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __push {
    ($caller:ident, $id:ident, $outcome:ident, [], []) => {
        $crate::host::unit_or_trap(&mut $caller, $id, $outcome)
    };
    ($caller:ident, $id:ident, $outcome:ident, [$rty:ident], []) => {
        $crate::host::value_or_trap(&mut $caller, $id, $outcome)
    };
    ($caller:ident, $id:ident, $outcome:ident, [], [$($code:ident)+]) => {
        $crate::host::unit_and_err(&mut $caller, $id, $outcome)
    };
    ($caller:ident, $id:ident, $outcome:ident, [$rty:ident], [$($code:ident)+]) => {
        $crate::host::value_and_err(&mut $caller, $id, $outcome)
    };
}
