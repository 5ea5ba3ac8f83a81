//! Capabilities: namespaces of host functions, declared as tables of rows.

use wasmtime::Linker;

use crate::{CallEffect, Run, Signature};

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
    pub output: &'static [&'static str],
    /// How much of the row a model's prompt has.
    pub prompt_detail: PromptDetail,
    /// Whether the function waits: a program that imports only functions that do not needs no timer.
    pub waits: bool,
    /// What a call does outside the program.
    pub effect: CallEffect,
    #[doc(hidden)]
    pub link: fn(&mut Linker<Run>, usize) -> wasmtime::Result<()>,
}

/// How much of a row a model's prompt has; the manual has all of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PromptDetail {
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
/// #[effect(reads)]
/// fn name(param: type, …) -> result: type ! CODE CODE = rust_function;
/// ```
///
/// `#[prompt(…)]` may be left out: a model's prompt then has the sentence, else the `signature` alone, or the `name` ([`PromptDetail`](crate::PromptDetail)).
/// `#[effect(…)]` says what a call does outside the program ([`CallEffect`](crate::CallEffect)): `none`, `reads`, `repeatable`, `once`, `writes`, `changes`. Where
/// it is left out an `fn` row does nothing and an `async` row is taken for one that must not be done twice.
/// `#[touches(…)]` says what every call touches outside the program besides what its arguments name ([`Touch`](crate::Touch)): `model`,
/// `engine`, `images`, `remote`, `public`, `tickets` ([`Service`](crate::Service)), `reads "folder"` with everything below it, `writes "path"`; the run's
/// guard is asked about each before the function is called. A row that waits or has an effect, and names nothing, has to say so:
/// `#[touches(nothing)]`; without it the table does not compile.
///
/// `fn` rows are synchronous, `async` rows may wait. A row with codes after `!` is fallible: it pushes `err` last. A row without
/// codes traps where its function fails. Types are [kinds](crate::kind): `str`, `opt_str`, `bytes`, `opt_bytes`, `int`, `long`, `float`, `bool`, `arr`,
/// `map`, `addr`, `any` (a number of unknown meaning, with the bytes that it points to); and texts that name something outside the
/// program, which authority and policy go by: `url`, `read_path`, `write_path`, `tree_path` (with everything below), `key`, `key_prefix`,
/// `program`, `agent` ([`Target`](crate::Target)), each `str` in all else. What only holds such names the function gets as an
/// [`Unadmitted`](crate::Unadmitted), and has each name admitted by the [`Gate`](crate::Gate) that it opens with: `urls` and `programs`, handles of arrays,
/// and the texts `script`, which may touch any file, `file_query`, for which any file may be read, `plan`, which may name any program, and
/// `command`, which may name any program and any key.
/// The Rust function takes [`&mut Run`](Run) and the arguments (`&str`, `Option<&str>`, `&[u8]`, `Option<&[u8]>`, `i32`, `i64`, `f64`, `abi::Untyped`;
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
        $(#[doc = $about:literal])+
        $vis:vis const $constant:ident : $module:literal $version:literal;
        $(
            $(#[doc = $sentence:literal])+
            #[example = $example:literal $(=> $($output:literal),+)?]
            $(#[prompt($detail:ident)])?
            $(#[effect($effect:ident)])?
            $(#[touches($($touch:ident $($at:literal)?),+)])?
            $kind:ident $name:ident ( $($param:ident : $ty:ident),* $(,)? ) $(-> $result:ident : $rty:ident)? $(! $($code:ident)+)? = $function:path;
        )*
    ) => {
        $(#[doc = $about])+
        $vis const $constant: $crate::Capability = $crate::Capability {
            name: $module,
            version: $version,
            about: concat!($($about),+).trim_ascii(),
            functions: &[$(
                $crate::Function {
                    name: concat!($module, ".", stringify!($name)),
                    signature: $crate::Signature {
                        module: $module,
                        name: stringify!($name),
                        params: &[$($crate::Param {
                            name: stringify!($param),
                            ty: <$crate::kind::word::$ty as $crate::kind::Kind>::TY,
                            names: <$crate::kind::word::$ty as $crate::kind::Kind>::NAMES,
                        }),*],
                        results: &[$($crate::Param {
                            name: stringify!($result),
                            ty: <$crate::kind::word::$rty as $crate::kind::Kind>::TY,
                            names: $crate::Names::Nothing,
                        })?],
                        errors: &[$($($crate::Code::$code),+)?],
                        touches: $crate::__touches!($($($touch $($at)?),+)?),
                    }
                    .declared(
                        &[$($(stringify!($touch)),+)?],
                        $crate::__waits!($kind),
                        $crate::__effect!($kind $($effect)?),
                    ),
                    about: concat!($($sentence),+).trim_ascii(),
                    example: $example,
                    output: &[$($($output),+)?],
                    prompt_detail: $crate::__prompt_detail!($($detail)?),
                    waits: $crate::__waits!($kind),
                    effect: $crate::__effect!($kind $($effect)?),
                    link: |linker, id| $crate::__link!(
                        $kind [$($effect)?], linker, id, $module, stringify!($name), ($($param : $ty),*), [$($rty)?], [$($($code)+)?],
                        $crate::__touches!($($($touch $($at)?),+)?), $function
                    ),
                },
            )*],
        };
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __effect {
    (fn) => {
        $crate::CallEffect::None
    };
    (async) => {
        $crate::CallEffect::Once
    };
    ($kind:ident none) => {
        $crate::CallEffect::None
    };
    ($kind:ident reads) => {
        $crate::CallEffect::Reads
    };
    ($kind:ident repeatable) => {
        $crate::CallEffect::Repeatable
    };
    ($kind:ident once) => {
        $crate::CallEffect::Once
    };
    ($kind:ident writes) => {
        $crate::CallEffect::Writes
    };
    ($kind:ident changes) => {
        $crate::CallEffect::Changes
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __prompt_detail {
    () => {
        $crate::PromptDetail::Sentence
    };
    (signature) => {
        $crate::PromptDetail::Signature
    };
    (name) => {
        $crate::PromptDetail::Name
    };
}

// What a row says that its calls touch; `nothing` is for rows that wait or have an effect and touch nothing all the same.
#[doc(hidden)]
#[macro_export]
macro_rules! __touches {
    () => {
        &[]
    };
    (nothing) => {
        &[]
    };
    ($($touch:ident $($at:literal)?),+) => {
        &[$($crate::__touch!($touch $($at)?)),+]
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __touch {
    (model) => {
        $crate::Touch { target: $crate::Target::Service($crate::Service::Model), text: "" }
    };
    (engine) => {
        $crate::Touch { target: $crate::Target::Service($crate::Service::Engine), text: "" }
    };
    (images) => {
        $crate::Touch { target: $crate::Target::Service($crate::Service::Images), text: "" }
    };
    (remote) => {
        $crate::Touch { target: $crate::Target::Service($crate::Service::Remote), text: "" }
    };
    (public) => {
        $crate::Touch { target: $crate::Target::Service($crate::Service::Public), text: "" }
    };
    (tickets) => {
        $crate::Touch { target: $crate::Target::Service($crate::Service::Tickets), text: "" }
    };
    (reads $at:literal) => {
        $crate::Touch { target: $crate::Target::ReadTree, text: $at }
    };
    (writes $at:literal) => {
        $crate::Touch { target: $crate::Target::Write, text: $at }
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

// One arm per kind of row, with and without an effect; what they share is in `crate::host`. The result's shape on the stack follows
// from whether the row has a value and whether it has codes.
#[doc(hidden)]
#[macro_export]
macro_rules! __link {
    ($kind:ident [none], $($rest:tt)*) => {
        $crate::__linked!($kind [], $($rest)*)
    };
    (fn [], $($rest:tt)*) => {
        $crate::__linked!(fn [], $($rest)*)
    };
    ($kind:ident [$($effect:ident)?], $($rest:tt)*) => {
        $crate::__linked!($kind [$kind $($effect)?], $($rest)*)
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __linked {
    (fn [], $linker:ident, $id:ident, $module:literal, $name:expr, ($($p:ident : $ty:ident),*), [$($rty:ident)?], [$($code:ident)*], $touches:expr, $function:path) => {
        $linker
            .func_wrap($module, $name, move |mut caller: $crate::host::Caller<'_>, $($p: $crate::kind::Raw<$crate::kind::word::$ty>),*| {
                let outcome = $crate::host::call::<_, $crate::Failure>(&mut caller, $id, |memory, run| {
                    let _ = memory;
                    $(let $p = $crate::kind::read::<$crate::kind::word::$ty>(memory, $p, concat!($module, ".", $name))?;)*
                    $($crate::kind::admit::<$crate::kind::word::$ty>(run, concat!($module, ".", $name), &$p)?;)*
                    $crate::host::touch(run, concat!($module, ".", $name), $touches)?;
                    $function(run, $($p),*)
                });
                $crate::__push!(caller, $id, outcome, [$($rty)?], [$($code)*])
            })
            .map(drop)
    };
    (fn [$($effect:ident)+], $linker:ident, $id:ident, $module:literal, $name:expr, ($($p:ident : $ty:ident),*), [$($rty:ident)?], [$($code:ident)*], $touches:expr, $function:path) => {
        $linker
            .func_wrap($module, $name, move |mut caller: $crate::host::Caller<'_>, $($p: $crate::kind::Raw<$crate::kind::word::$ty>),*| {
                let outcome = $crate::host::call::<_, $crate::host::Stop>(&mut caller, $id, |memory, run| {
                    let _ = memory;
                    $(let $p = $crate::kind::read::<$crate::kind::word::$ty>(memory, $p, concat!($module, ".", $name))?;)*
                    let start = $crate::host::Start::new(run, concat!($module, ".", $name), $crate::__effect!($($effect)+), |args| {
                        let _ = args;
                        $($crate::host::add(args, &$p);)*
                    });
                    let start = start.map_err($crate::host::Stop::Halt)?;
                    let admitted = match start.performs() {
                        true => $crate::host::admitted(|| {
                            $($crate::kind::admit::<$crate::kind::word::$ty>(run, concat!($module, ".", $name), &$p)?;)*
                            $crate::host::touch(run, concat!($module, ".", $name), $touches)?;
                            Ok(())
                        }),
                        false => $crate::host::unmade(),
                    };
                    let outcome = match admitted {
                        Ok(()) => $function(run, $($p),*),
                        Err(failure) => Err(failure),
                    };
                    Ok(start.done(run, outcome)?)
                });
                let outcome = $crate::host::split(outcome)?;
                $crate::__push!(caller, $id, outcome, [$($rty)?], [$($code)*])
            })
            .map(drop)
    };
    (async [], $linker:ident, $id:ident, $module:literal, $name:expr, ($($p:ident : $ty:ident),*), [$($rty:ident)?], [$($code:ident)*], $touches:expr, $function:path) => {
        $linker
            .func_wrap_async($module, $name, move |mut caller: $crate::host::Caller<'_>, ($($p,)*): ($($crate::kind::Raw<$crate::kind::word::$ty>,)*)| {
                Box::new(async move {
                    let read = $crate::host::begin(&mut caller, $id, |memory| {
                        let _ = memory;
                        Ok(($($crate::kind::own::<$crate::kind::word::$ty>(memory, $p, concat!($module, ".", $name))?,)*))
                    });
                    let admitted = read.and_then(|($($p,)*)| {
                        $($crate::kind::admit_owned::<$crate::kind::word::$ty>(caller.data(), concat!($module, ".", $name), &$p)?;)*
                        $crate::host::touch(caller.data(), concat!($module, ".", $name), $touches)?;
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
    (async [$($effect:ident)+], $linker:ident, $id:ident, $module:literal, $name:expr, ($($p:ident : $ty:ident),*), [$($rty:ident)?], [$($code:ident)*], $touches:expr, $function:path) => {
        $linker
            .func_wrap_async($module, $name, move |mut caller: $crate::host::Caller<'_>, ($($p,)*): ($($crate::kind::Raw<$crate::kind::word::$ty>,)*)| {
                Box::new(async move {
                    let read = $crate::host::begin(&mut caller, $id, |memory| {
                        let _ = memory;
                        Ok(($($crate::kind::own::<$crate::kind::word::$ty>(memory, $p, concat!($module, ".", $name))?,)*))
                    });
                    let outcome = match read {
                        Err(failure) => Err(failure),
                        Ok(($($p,)*)) => {
                            let start = $crate::host::Start::new(
                                caller.data_mut(),
                                concat!($module, ".", $name),
                                $crate::__effect!($($effect)+),
                                |args| {
                                    let _ = args;
                                    $($crate::host::add(args, &$p);)*
                                },
                            );
                            let start = start.map_err($crate::host::halted)?;
                            let admitted = match start.performs() {
                                true => {
                                    start.keep().await.map_err($crate::host::halted)?;
                                    $crate::host::admitted(|| {
                                        $($crate::kind::admit_owned::<$crate::kind::word::$ty>(caller.data(), concat!($module, ".", $name), &$p)?;)*
                                        $crate::host::touch(caller.data(), concat!($module, ".", $name), $touches)?;
                                        Ok(())
                                    })
                                }
                                false => $crate::host::unmade(),
                            };
                            let outcome = match admitted {
                                Ok(()) => $function(caller.data_mut(), $($p),*).await,
                                Err(failure) => Err(failure),
                            };
                            start.ended(&mut caller, outcome).await.map_err($crate::host::halted)?
                        }
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
