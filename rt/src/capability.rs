//! Capabilities: namespaces of host functions, declared as tables of rows.

use wasmtime::Linker;

use crate::{CallEffect, Run, Signature};

/// A namespace of host functions, with one row per function. The imports, the prompt, the manual
/// and the checks of a call are derived from the rows.
///
/// A capability is declared with the [`capability!`](crate::capability!) macro.
#[derive(Clone, Copy, Debug)]
pub struct Capability {
    /// The namespace, such as `str` in `str.len`.
    pub name: &'static str,
    /// The version, which is increased when the meaning of a function changes. A compiled program
    /// is never used with a different version.
    pub version: u32,
    /// A one-sentence description of the namespace.
    pub about: &'static str,
    /// The classes of effects that are the purpose of the namespace, such as `fs`, besides its
    /// [services](crate::Service). A policy that allows the namespace allows only these effects.
    pub purpose: &'static [&'static str],
    /// The functions, in the same order as in the manual.
    pub functions: &'static [Function],
}

/// A host function: its signature, its documentation, and the code that links it.
#[derive(Clone, Copy, Debug)]
pub struct Function {
    /// The full name, such as `str.len`.
    pub name: &'static str,
    /// The signature.
    pub signature: Signature,
    /// A one-sentence description in the third person, without a full stop.
    pub about: &'static str,
    /// A program that uses the function.
    pub example: &'static str,
    /// The results that the example prints, in order.
    pub output: &'static [&'static str],
    /// The part of the row that a model's prompt contains.
    pub prompt_detail: PromptDetail,
    /// If true, the function is asynchronous, so a call may wait.
    pub waits: bool,
    /// The effect that a call has outside the program.
    pub effect: CallEffect,
    #[doc(hidden)]
    pub link: fn(&mut Linker<Box<Run>>) -> wasmtime::Result<()>,
}

/// The part of a row that a model's prompt contains. The manual contains the whole row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PromptDetail {
    /// Nothing, for a function that has a substitute. Only the manual describes such a function.
    Omitted,
    /// The name only, for a function that is rarely used.
    Name,
    /// The signature only, for a function whose name and parameter names are self-explanatory.
    Signature,
    /// The signature and the sentence that describes the function.
    Sentence,
}

/// Declares a capability as a table: a `const` [`Capability`] with rows of the form
///
/// ```text
/// /// Sentence for prompt and manual, on one line or several.
/// #[example = "a program that uses it" => "what it prints", …]
/// #[prompt(signature)]
/// #[effect(reads)]
/// fn name(param: type, …) with State -> result: type ! CODE CODE = rust_function;
/// ```
///
/// A namespace whose functions have effects of a class, such as requests, names the class:
/// `pub const NAME: "name" 1 for "http";` ([`Capability::purpose`]).
///
/// The attributes of a row:
///
/// - `#[prompt(signature)]`, `#[prompt(name)]` or `#[prompt(omitted)]` selects the part of the row
///   that a model's prompt contains ([`PromptDetail`](crate::PromptDetail)). Without it, the prompt
///   also contains the sentence.
/// - `#[effect(…)]` states the effect that a call has outside the program
///   ([`CallEffect`](crate::CallEffect)): `none`, `reads`, `repeatable`, `once`, `writes` or
///   `changes`. Without it, a call to an `fn` row has no effect, and a call to an `async` row must
///   not be performed twice.
/// - `#[touches(…)]` lists the resources that every call accesses besides those that its arguments
///   name ([`Touch`](crate::Touch)). An item is the name of a constant [`Service`](crate::Service),
///   `reads "folder"` (including everything below it) or `writes "path"`. The run's guard is asked
///   about each item before the function is called. A row that waits or has an effect, and whose
///   arguments name nothing, must say `#[touches(nothing)]` if it accesses nothing. Otherwise the
///   table does not compile.
///
/// A row whose name has a suffix, such as `sort/2`, is an overload of `sort` with different
/// parameters ([`Signature::form`](crate::Signature::form)).
///
/// `fn` rows are synchronous; `async` rows may wait. A function with codes after `!` can fail, and
/// pushes `err` last. If a function without codes fails, the program traps.
///
/// Types are [kinds](crate::kind):
///
/// - Values: `str`, `opt_str`, `bytes`, `opt_bytes`, `int`, `opt_int`, `long`, `float`, `bool`,
///   `arr`, `map`, `opt_map`, `val`, `addr`, and `any` (a number of unknown meaning, with the bytes that
///   it points to).
/// - Strings that name a resource outside the program: `url`, `read_path`, `write_path`,
///   `tree_path` (including everything below it), `key`, `key_prefix`, `program`, `agent` and
///   `tool` ([`Target`](crate::Target)). Otherwise they are like `str`.
/// - Values that contain such names: `urls` and `programs` (handles to arrays), `script` (may
///   access any file), `file_query` (may read any file), `plan` (may name any program) and
///   `command` (may name any program and any key). The function gets an
///   [`Unadmitted`](crate::Unadmitted), opens it to get the value and a [`Gate`](crate::Gate), and
///   asks the gate about each name.
///
/// A row names the [state](crate::Config) that its function works on, of one type or several. The
/// function is called with each as an `Arc` before the run, so it does not compile without.
///
/// The Rust function takes [`&mut Run`](Run) and the arguments (`&str`, `Option<&str>`, `&[u8]`,
/// `Option<&[u8]>`, `i32`, `Option<i32>`, `i64`, `f64`, `abi::Untyped`; owned in `async` rows) and
/// returns `Result<V, Failure>`, where `V` implements [`Value`](crate::Value).
///
/// ```
/// use wattle_rt::{Failure, Run};
///
/// wattle_rt::capability! {
///     /// Greets.
///     pub const GREET: "greet" 1;
///
///     /// Returns a greeting
///     #[example = "(call $greet.hello \"you\") (drop) (call $sys.resv) (i32.const 0)"
///         => "hello you"]
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
        $vis:vis const $constant:ident : $module:literal $version:literal $(for $purpose:literal)?;
        $(
            $(#[doc = $sentence:literal])+
            #[example = $example:literal $(=> $($output:literal),+)?]
            $(#[prompt($detail:ident)])?
            $(#[effect($effect:ident)])?
            $(#[touches($($touch:ident $($at:literal)?),+)])?
            $kind:ident $name:ident $(/ $suffix:tt)? ( $($param:ident : $ty:ident),* $(,)? )
                $(with $($state:ident),+)? $(-> $result:ident : $rty:ident)? $(! $($code:ident)+)? = $function:path;
        )*
    ) => {
        $(#[doc = $about])+
        $vis const $constant: $crate::Capability = $crate::Capability {
            name: $module,
            version: $version,
            about: concat!($($about),+).trim_ascii(),
            purpose: &[$($purpose)?],
            functions: &[$(
                $crate::Function {
                    name: concat!($module, ".", stringify!($name) $(, "/", stringify!($suffix))?),
                    signature: $crate::Signature {
                        module: $module,
                        name: concat!(stringify!($name) $(, "/", stringify!($suffix))?),
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
                    link: |linker| {
                        static ROW: $crate::host::Row = $crate::host::Row {
                            module: $module,
                            name: concat!(stringify!($name) $(, "/", stringify!($suffix))?),
                            function: concat!($module, ".", stringify!($name) $(, "/", stringify!($suffix))?),
                            effect: $crate::__effect!($kind $($effect)?),
                            touches: $crate::__touches!($($($touch $($at)?),+)?),
                        };
                        $crate::__link!(
                            $kind [$($effect)?], linker, ROW, ($($param : $ty),*),
                            [$($($state),+)?], [$($rty)?], [$($($code)+)?], $function
                        )
                    },
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
    (omitted) => {
        $crate::PromptDetail::Omitted
    };
}

// The resources that every call to a row's function accesses. A row that waits or has an effect,
// but accesses nothing, is marked `nothing`.
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
    (reads $at:literal) => {
        $crate::Touch { target: $crate::Target::ReadTree, text: $at }
    };
    (writes $at:literal) => {
        $crate::Touch { target: $crate::Target::Write, text: $at }
    };
    ($service:ident) => {
        $crate::Touch { target: $crate::Target::Service(&$service), text: "" }
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

// Expands to the code that links one row. A synchronous row without an effect has an arm of its own,
// because such calls are frequent and cost the least if nothing is generic. `host` does the work of
// all other calls.
#[doc(hidden)]
#[macro_export]
macro_rules! __link {
    (fn [none], $($rest:tt)*) => {
        $crate::__link!(fn [], $($rest)*)
    };
    (
        fn [], $linker:ident, $row:ident, ($($p:ident : $ty:ident),*), [$($state:ident),*],
        [$($rty:ident)?], [$($code:ident)*], $function:path
    ) => {
        $linker
            .func_wrap($row.module, $row.name, move |
                mut caller: $crate::host::Caller<'_>,
                $($p: $crate::kind::Raw<$crate::kind::word::$ty>),*
            | {
                let outcome = $crate::host::call(&mut caller, $row.function, |memory, run| {
                    let _ = memory;
                    $(let $p = <$crate::kind::word::$ty as $crate::kind::Kind>::read(
                        memory, $p, $row.function,
                    )?;)*
                    $(<$crate::kind::word::$ty as $crate::kind::Kind>::admit(
                        run, $row.function, &$p,
                    )?;)*
                    $crate::host::touch(run, $row.function, $row.touches)?;
                    $function($(run.config::<$state>()?,)* run, $($p),*)
                });
                $crate::__push!(caller, $row.function, outcome, [$($rty)?], [$($code)*])
            })
            .map(drop)
    };
    (
        fn [$effect:ident], $linker:ident, $row:ident, ($($p:ident : $ty:ident),*),
        [$($state:ident),*], [$($rty:ident)?], [$($code:ident)*], $function:path
    ) => {
        $linker
            .func_wrap($row.module, $row.name, move |
                mut caller: $crate::host::Caller<'_>,
                $($p: $crate::kind::Raw<$crate::kind::word::$ty>),*
            | {
                let outcome = $crate::host::taped_call::<($($crate::kind::word::$ty,)*), _>(
                    &mut caller,
                    &$row,
                    ($($p,)*),
                    |run, ($($p,)*)| $function($(run.config::<$state>()?,)* run, $($p),*),
                )?;
                $crate::__push!(caller, $row.function, outcome, [$($rty)?], [$($code)*])
            })
            .map(drop)
    };
    (
        async [$($effect:ident)?], $linker:ident, $row:ident, ($($p:ident : $ty:ident),*),
        [$($state:ident),*], [$($rty:ident)?], [$($code:ident)*], $function:path
    ) => {
        $linker
            .func_wrap_async($row.module, $row.name, move |
                mut caller: $crate::host::Caller<'_>,
                ($($p,)*): ($($crate::kind::Raw<$crate::kind::word::$ty>,)*)
            | {
                let time = $crate::host::CallTime::of(&caller, $row.function);
                Box::new(time.limit(async move {
                    let (call, args) = $crate::host::start::<($($crate::kind::word::$ty,)*)>(
                        &mut caller,
                        &$row,
                        ($($p,)*),
                    )
                    .await?;
                    let outcome = async {
                        let ($($p,)*) = args?;
                        $function(
                            $(caller.data().config::<$state>()?,)*
                            caller.data_mut(),
                            $($p),*
                        )
                        .await
                    };
                    let outcome = outcome.await;
                    let outcome = call.finish_and_flush(&mut caller, outcome).await?;
                    $crate::__push!(caller, $row.function, outcome, [$($rty)?], [$($code)*])
                }))
            })
            .map(drop)
    };
}

// Pushes the result of a call. It depends on whether the row has a value and whether it has codes.
#[doc(hidden)]
#[macro_export]
macro_rules! __push {
    ($caller:ident, $called:expr, $outcome:ident, [], []) => {
        $crate::host::unit_or_trap(&mut $caller, $called, $outcome)
    };
    ($caller:ident, $called:expr, $outcome:ident, [$rty:ident], []) => {
        $crate::host::value_or_trap(&mut $caller, $called, $outcome)
    };
    ($caller:ident, $called:expr, $outcome:ident, [], [$($code:ident)+]) => {
        $crate::host::unit_and_err(&mut $caller, $called, $outcome)
    };
    ($caller:ident, $called:expr, $outcome:ident, [$rty:ident], [$($code:ident)+]) => {
        $crate::host::value_and_err(&mut $caller, $called, $outcome)
    };
}
