//! The kinds of parameters and results. A kind combines a [`Form`], the representation of a value
//! in the program's memory, with the resources outside the program that the value names.
//!
//! There are three sorts of kinds. Each sort has its own admission check, so that no value can name
//! a resource without a check:
//!
//! - A [`Plain`] value names nothing.
//! - A [`Named`] string is a name. The adapter asks the guard about the name before it calls the
//!   function.
//! - A [`Holding`] value contains names. The function receives it as an [`Unadmitted`], opens it to
//!   get the value and a [`Gate`], and asks the gate about each name.

use std::marker::PhantomData;

use wasmtime::WasmTy;

use crate::abi::{self, Untyped};
use crate::tape::{Arg, Args};
use crate::{Failure, Gate, Names, Run, Target, Ty};

/// The representation of a value in a program's memory.
pub trait Form {
    /// The type of the value on the stack.
    type Raw: WasmTy;
    /// The type that a synchronous function receives.
    type Borrowed<'m>: Arg;
    /// The type that an asynchronous function receives.
    type Owned: Arg + Send + 'static;
    /// The type that signatures show.
    const TY: Ty;

    /// Reads a value from a program's memory.
    ///
    /// # Errors
    /// `EBOUND` and `EPARSE`, under the same conditions as for [`abi::text`].
    fn read(memory: &[u8], raw: Self::Raw) -> Result<Self::Borrowed<'_>, Failure>;

    /// Copies a value out of the program's memory.
    fn own(value: Self::Borrowed<'_>) -> Self::Owned;

    /// Borrows a copied value.
    fn lend(value: &Self::Owned) -> Self::Borrowed<'_>;
}

macro_rules! forms {
    ($($(#[$doc:meta])* $form:ident: $ty:ident, $wire:ty => $borrowed:ty, $owned:ty,
        |$memory:ident, $raw:ident| $read:expr,
        |$value:ident| $own:expr,
        |$lent:ident| $lend:expr;)*) => {$(
        $(#[$doc])*
        #[derive(Debug)]
        pub struct $form;

        impl Form for $form {
            type Raw = $wire;
            type Borrowed<'m> = $borrowed;
            type Owned = $owned;
            const TY: Ty = Ty::$ty;

            #[inline]
            fn read($memory: &[u8], $raw: $wire) -> Result<Self::Borrowed<'_>, Failure> {
                $read
            }

            #[inline]
            fn own($value: Self::Borrowed<'_>) -> $owned {
                $own
            }

            #[inline]
            fn lend($lent: &$owned) -> Self::Borrowed<'_> {
                $lend
            }
        }
    )*};
}

forms! {
    /// A string.
    Str: Str, i32 => &'m str, String,
        |memory, raw| abi::text(memory, raw), |value| value.to_owned(), |lent| lent;
    /// A string or null.
    OptStr: OptStr, i32 => Option<&'m str>, Option<String>,
        |memory, raw| abi::optional_text(memory, raw),
        |value| value.map(str::to_owned),
        |lent| lent.as_deref();
    /// Bytes.
    Bytes: Bytes, i32 => &'m [u8], Vec<u8>,
        |memory, raw| abi::bytes(memory, raw), |value| value.to_vec(), |lent| lent;
    /// Bytes or null.
    OptBytes: OptBytes, i32 => Option<&'m [u8]>, Option<Vec<u8>>,
        |memory, raw| abi::optional_bytes(memory, raw),
        |value| value.map(<[u8]>::to_vec),
        |lent| lent.as_deref();
    /// A 32-bit integer.
    Int: Int, i32 => i32, i32, |_memory, raw| Ok(raw), |value| value, |lent| *lent;
    /// A 32-bit integer, or -2147483648 if there is no value.
    OptInt: OptInt, i32 => Option<i32>, Option<i32>,
        |_memory, raw| Ok((raw != i32::MIN).then_some(raw)), |value| value, |lent| *lent;
    /// A 64-bit integer.
    Long: Long, i64 => i64, i64, |_memory, raw| Ok(raw), |value| value, |lent| *lent;
    /// A 64-bit float.
    Float: Float, f64 => f64, f64, |_memory, raw| Ok(raw), |value| value, |lent| *lent;
    /// A boolean: 0 is false, and any other number is true.
    Bool: Bool, i32 => bool, bool, |_memory, raw| Ok(raw != 0), |value| value, |lent| *lent;
    /// A handle to an array.
    Arr: Arr, i32 => i32, i32, |_memory, raw| Ok(raw), |value| value, |lent| *lent;
    /// A handle to a map.
    Map: Map, i32 => i32, i32, |_memory, raw| Ok(raw), |value| value, |lent| *lent;
    /// A handle to a map, or 0 if there is no map.
    OptMap: OptMap, i32 => Option<i32>, Option<i32>,
        |_memory, raw| Ok((raw != 0).then_some(raw)), |value| value, |lent| *lent;
    /// A handle to a value.
    Val: Val, i32 => i32, i32, |_memory, raw| Ok(raw), |value| value, |lent| *lent;
    /// A raw address.
    Addr: Addr, i32 => i32, i32, |_memory, raw| Ok(raw), |value| value, |lent| *lent;
    /// A number of unknown meaning. A synchronous function also receives the bytes that the number
    /// points to.
    UntypedForm: Any, i32 => Untyped<'m>, i32,
        |memory, raw| Ok(Untyped::of(memory, raw)),
        |value| value.number,
        |lent| Untyped { number: *lent, bytes: None };
}

mod sealed {
    pub trait Sealed {}
}

/// A kind of parameter or result: a [`Form`], the resources that its values name, and their
/// admission check. Only this module implements it.
pub trait Kind: sealed::Sealed {
    /// The type of the value on the stack.
    type Raw: WasmTy;
    /// The type that a synchronous function receives.
    type Borrowed<'m>: Arg;
    /// The type that an asynchronous function receives.
    type Owned: Arg + Send + 'static;
    /// The type that signatures show.
    const TY: Ty;
    /// The resources outside the program that a value names, directly or in its content.
    const NAMES: Names;

    /// Reads an argument of the given function from a program's memory.
    ///
    /// # Errors
    /// The same as for [`Form::read`].
    fn read<'m>(
        memory: &'m [u8],
        raw: Self::Raw,
        function: &'static str,
    ) -> Result<Self::Borrowed<'m>, Failure>;

    /// Copies a value out of the program's memory.
    fn own(value: Self::Borrowed<'_>) -> Self::Owned;

    /// Borrows a copied value.
    fn lend(value: &Self::Owned) -> Self::Borrowed<'_>;

    /// Asks the run's guard for access to the resource that the value itself names.
    ///
    /// # Errors
    /// `EACCESS` if the guard denies access.
    fn admit(run: &Run, function: &'static str, value: &Self::Borrowed<'_>) -> Result<(), Failure>;
}

/// The type of a kind's values on the stack.
pub type Raw<K> = <K as Kind>::Raw;

/// The kinds of the parameters of a row, as a tuple.
pub trait Params {
    /// The types of the arguments on the stack.
    type Raw;
    /// The types that a synchronous function receives.
    type Borrowed<'m>;
    /// The types that an asynchronous function receives.
    type Owned: Send;

    /// Reads the arguments of the given function from a program's memory.
    ///
    /// # Errors
    /// The same as for [`Form::read`].
    fn read<'m>(
        memory: &'m [u8],
        raw: Self::Raw,
        function: &'static str,
    ) -> Result<Self::Borrowed<'m>, Failure>;

    /// Copies the arguments out of the program's memory.
    fn own(args: Self::Borrowed<'_>) -> Self::Owned;

    /// Borrows copied arguments.
    fn lend(args: &Self::Owned) -> Self::Borrowed<'_>;

    /// Asks the run's guard for access to the resources that the arguments themselves name.
    ///
    /// # Errors
    /// The same as for [`Kind::admit`].
    fn admit(run: &Run, function: &'static str, args: &Self::Borrowed<'_>) -> Result<(), Failure>;

    /// Adds the arguments to a call's identity on the tape.
    fn feed(args: &Self::Borrowed<'_>, all: &mut Args);
}

macro_rules! params {
    ($($kind:ident $arg:ident),*) => {
        #[allow(unused_variables, clippy::unused_unit, reason = "a row may have no parameters")]
        impl<$($kind: Kind),*> Params for ($($kind,)*) {
            type Raw = ($($kind::Raw,)*);
            type Borrowed<'m> = ($($kind::Borrowed<'m>,)*);
            type Owned = ($($kind::Owned,)*);

            #[inline]
            fn read<'m>(
                memory: &'m [u8],
                ($($arg,)*): Self::Raw,
                function: &'static str,
            ) -> Result<Self::Borrowed<'m>, Failure> {
                Ok(($($kind::read(memory, $arg, function)?,)*))
            }

            #[inline]
            fn own(($($arg,)*): Self::Borrowed<'_>) -> Self::Owned {
                ($($kind::own($arg),)*)
            }

            #[inline]
            fn lend(($($arg,)*): &Self::Owned) -> Self::Borrowed<'_> {
                ($($kind::lend($arg),)*)
            }

            #[inline]
            fn admit(
                run: &Run,
                function: &'static str,
                ($($arg,)*): &Self::Borrowed<'_>,
            ) -> Result<(), Failure> {
                $($kind::admit(run, function, $arg)?;)*
                Ok(())
            }

            #[inline]
            fn feed(($($arg,)*): &Self::Borrowed<'_>, all: &mut Args) {
                $(all.add($arg);)*
            }
        }
    };
}
params!();
params!(A a);
params!(A a, B b);
params!(A a, B b, C c);
params!(A a, B b, C c, D d);
params!(A a, B b, C c, D d, E e);
params!(A a, B b, C c, D d, E e, F f);

/// The kind of a value that does not name a resource outside the program.
#[derive(Debug)]
pub struct Plain<F>(PhantomData<F>);

impl<F> sealed::Sealed for Plain<F> {}

impl<F: Form> Kind for Plain<F> {
    type Raw = F::Raw;
    type Borrowed<'m> = F::Borrowed<'m>;
    type Owned = F::Owned;
    const TY: Ty = F::TY;
    const NAMES: Names = Names::Nothing;

    #[inline]
    fn read<'m>(
        memory: &'m [u8],
        raw: F::Raw,
        _: &'static str,
    ) -> Result<F::Borrowed<'m>, Failure> {
        F::read(memory, raw)
    }

    #[inline]
    fn own(value: Self::Borrowed<'_>) -> F::Owned {
        F::own(value)
    }

    #[inline]
    fn lend(value: &F::Owned) -> Self::Borrowed<'_> {
        F::lend(value)
    }

    #[inline]
    fn admit(_: &Run, _: &'static str, _: &Self::Borrowed<'_>) -> Result<(), Failure> {
        Ok(())
    }
}

/// A type that specifies the kind of resource that a name refers to.
pub trait Name {
    /// The kind of resource.
    const TARGET: Target;
}

/// The kind of a string that is the name of a resource outside the program.
#[derive(Debug)]
pub struct Named<N>(PhantomData<N>);

impl<N> sealed::Sealed for Named<N> {}

impl<N: Name> Kind for Named<N> {
    type Raw = i32;
    type Borrowed<'m> = &'m str;
    type Owned = String;
    const TY: Ty = Ty::Str;
    const NAMES: Names = Names::Itself(N::TARGET);

    fn read<'m>(memory: &'m [u8], raw: i32, _: &'static str) -> Result<&'m str, Failure> {
        abi::text(memory, raw)
    }

    fn own(value: &str) -> String {
        value.to_owned()
    }

    fn lend(value: &String) -> &str {
        value
    }

    fn admit(run: &Run, function: &'static str, value: &&str) -> Result<(), Failure> {
        run.admit(function, N::TARGET, value)
    }
}

/// A type that specifies the kinds of resources that the names in a value refer to.
pub trait Holds {
    /// The kinds of resources that a name in the value may refer to.
    const TARGETS: &'static [Target];
}

/// The kind of a value that is not itself a name but may contain names of resources.
#[derive(Debug)]
pub struct Holding<F, H>(PhantomData<(F, H)>);

impl<F, H> sealed::Sealed for Holding<F, H> {}

impl<F: Form, H: Holds> Kind for Holding<F, H> {
    type Raw = F::Raw;
    type Borrowed<'m> = Unadmitted<F::Borrowed<'m>>;
    type Owned = Unadmitted<F::Owned>;
    const TY: Ty = F::TY;
    const NAMES: Names = Names::Inside(H::TARGETS);

    fn read<'m>(
        memory: &'m [u8],
        raw: F::Raw,
        function: &'static str,
    ) -> Result<Self::Borrowed<'m>, Failure> {
        Ok(Unadmitted { value: F::read(memory, raw)?, function })
    }

    fn own(Unadmitted { value, function }: Self::Borrowed<'_>) -> Self::Owned {
        Unadmitted { value: F::own(value), function }
    }

    fn lend(Unadmitted { value, function }: &Self::Owned) -> Self::Borrowed<'_> {
        Unadmitted { value: F::lend(value), function }
    }

    /// Returns `Ok`. The names are known only when the function reads them, and the function then
    /// asks the gate about each of them.
    fn admit(_: &Run, _: &'static str, _: &Self::Borrowed<'_>) -> Result<(), Failure> {
        Ok(())
    }
}

/// An argument that may contain names of resources that the guard has not admitted yet.
#[derive(Debug)]
pub struct Unadmitted<T> {
    value: T,
    function: &'static str,
}

impl<T> Unadmitted<T> {
    /// Returns the value, and the gate that must admit each name in it before the name is used.
    pub fn open(self, run: &Run) -> (T, Gate) {
        (self.value, Gate::of(run, self.function))
    }
}

impl<T: Arg> Arg for Unadmitted<T> {
    fn feed(&self, args: &mut Args) {
        self.value.feed(args);
    }
}

macro_rules! names {
    ($($name:ident),*) => {$(
        #[doc(hidden)]
        #[derive(Debug)]
        pub struct $name;

        impl Name for $name {
            const TARGET: Target = Target::$name;
        }
    )*};
}
names!(Url, Read, Write, Tree, Key, Keys, Program, Agent, Tool);

macro_rules! holds {
    ($($(#[$doc:meta])* $name:ident: $($target:ident)*;)*) => {$(
        $(#[$doc])*
        #[derive(Debug)]
        pub struct $name;

        impl Holds for $name {
            const TARGETS: &'static [Target] = &[$(Target::$target),*];
        }
    )*};
}
holds! {
    /// The resources that an array of URLs names.
    Urls: Url;
    /// The resources that an array of program calls names.
    Programs: Program;
    /// The resources that a shell script may access: any file.
    Script: Tree;
    /// The resources that a file query may read: any file.
    FileQuery: Read;
    /// The resources that a workbook may name: any program.
    Plan: Program;
    /// The resources that a `wattle` command may name: any program and any key.
    Command: Program Keys;
}

/// The names of the kinds, as used in the rows of a capability's table.
#[expect(non_camel_case_types, reason = "rows use these names")]
pub mod word {
    use super::{Holding, Named, Plain};

    /// A string.
    pub type str = Plain<super::Str>;
    /// A string, or 0 (null) if there is no value.
    pub type opt_str = Plain<super::OptStr>;
    /// Bytes.
    pub type bytes = Plain<super::Bytes>;
    /// Bytes, or 0 (null) if there is no value.
    pub type opt_bytes = Plain<super::OptBytes>;
    /// A 32-bit integer.
    pub type int = Plain<super::Int>;
    /// A 32-bit integer, or -2147483648 if there is no value.
    pub type opt_int = Plain<super::OptInt>;
    /// A 64-bit integer.
    pub type long = Plain<super::Long>;
    /// A 64-bit float.
    pub type float = Plain<super::Float>;
    /// A boolean: 0 is false, and any other number is true.
    pub type bool = Plain<super::Bool>;
    /// A handle to an array.
    pub type arr = Plain<super::Arr>;
    /// A handle to a map.
    pub type map = Plain<super::Map>;
    /// A handle to a map, or 0 if there is no map.
    pub type opt_map = Plain<super::OptMap>;
    /// A handle to a value of any shape.
    pub type val = Plain<super::Val>;
    /// A raw address.
    pub type addr = Plain<super::Addr>;
    /// A number of unknown meaning, with the bytes that it points to.
    pub type any = Plain<super::UntypedForm>;
    /// A URL.
    pub type url = Named<super::Url>;
    /// The path of a file or folder to read.
    pub type read_path = Named<super::Read>;
    /// The path of a file or folder to write.
    pub type write_path = Named<super::Write>;
    /// A path to read and write, including everything below it.
    pub type tree_path = Named<super::Tree>;
    /// A key in the session's state.
    pub type key = Named<super::Key>;
    /// A prefix of keys in the session's state.
    pub type key_prefix = Named<super::Keys>;
    /// The name of a catalog program.
    pub type program = Named<super::Program>;
    /// The name of an agent.
    pub type agent = Named<super::Agent>;
    /// The name of an application tool.
    pub type tool = Named<super::Tool>;
    /// An array of URLs.
    pub type urls = Holding<super::Arr, super::Urls>;
    /// An array of calls to programs.
    pub type programs = Holding<super::Arr, super::Programs>;
    /// A shell script.
    pub type script = Holding<super::Str, super::Script>;
    /// A file search query.
    pub type file_query = Holding<super::Str, super::FileQuery>;
    /// A workbook, which may name any program.
    pub type plan = Holding<super::Str, super::Plan>;
    /// A `wattle` command line.
    pub type command = Holding<super::Str, super::Command>;
}
