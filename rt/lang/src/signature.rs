//! Signatures of host functions.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use crate::{CallEffect, Code, NameMap};

/// A WebAssembly value type that host functions use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ValType {
    /// 32-bit integer, which represents numbers, pointers, handles and codes.
    I32,
    /// 64-bit integer.
    I64,
    /// 64-bit float.
    F64,
}

impl ValType {
    /// Returns the type's name in WAT.
    #[must_use]
    pub const fn wat(self) -> &'static str {
        match self {
            ValType::I32 => "i32",
            ValType::I64 => "i64",
            ValType::F64 => "f64",
        }
    }
}

impl fmt::Display for ValType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.wat())
    }
}

/// The meaning of a parameter or result of a host function. It determines the [`ValType`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Ty {
    /// Pointer to a UTF-8 string in wire format.
    Str,
    /// Like [`Ty::Str`], but optional: 0 represents a missing string.
    OptStr,
    /// Pointer to bytes in wire format, which need not be UTF-8.
    Bytes,
    /// Like [`Ty::Bytes`], but optional: 0 represents missing bytes.
    OptBytes,
    /// A 32-bit integer.
    Int,
    /// Like [`Ty::Int`], but optional: [`i32::MIN`] represents a missing number.
    OptInt,
    /// A 64-bit integer.
    Long,
    /// A 64-bit float.
    Float,
    /// 0 or 1.
    Bool,
    /// Handle to an array on the host.
    Arr,
    /// Handle to a map on the host.
    Map,
    /// Like [`Ty::Map`], but optional: 0 represents a missing map.
    OptMap,
    /// Handle to a value on the host: a null, a boolean, a number, a string, a list or an object.
    Val,
    /// An address in the program's memory.
    Addr,
    /// Any 32-bit value: a number, a pointer or a handle.
    Any,
}

impl Ty {
    /// Returns the value type that represents values of this type on the stack.
    #[must_use]
    pub const fn val(self) -> ValType {
        match self {
            Ty::Long => ValType::I64,
            Ty::Float => ValType::F64,
            _ => ValType::I32,
        }
    }

    /// Returns the type's name in the manual.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Ty::Str => "text",
            Ty::OptStr => "text or 0",
            Ty::Bytes => "bytes",
            Ty::OptBytes => "bytes or 0",
            Ty::Int => "i32",
            Ty::OptInt => "i32 or -2147483648",
            Ty::Long => "i64",
            Ty::Float => "f64",
            Ty::Bool => "0 or 1",
            Ty::Arr => "array",
            Ty::Map => "map",
            Ty::OptMap => "map or 0",
            Ty::Val => "value",
            Ty::Addr => "address",
            Ty::Any => "any",
        }
    }

    /// Returns the number that represents a missing value, or `None` for a type that is not
    /// optional.
    #[must_use]
    pub const fn missing(self) -> Option<i32> {
        match self {
            Ty::OptStr | Ty::OptBytes | Ty::OptMap => Some(0),
            Ty::OptInt => Some(i32::MIN),
            _ => None,
        }
    }

    /// Returns true if the value may be missing.
    #[must_use]
    pub const fn is_optional(self) -> bool {
        self.missing().is_some()
    }
}

/// A kind of resource outside the program. A program's authority lists such resources, and policies
/// allow or deny access to them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Target {
    /// An absolute URL. The host in the URL is contacted.
    Url,
    /// A path that is read. All paths are in the run's file tree.
    Read,
    /// A path that is read, including everything below it.
    ReadTree,
    /// A path that is written, created or removed.
    Write,
    /// A path that is read and written, including everything below it.
    Tree,
    /// A key in the session's state.
    Key,
    /// A key prefix. All keys that start with it are read.
    Keys,
    /// The name of a catalog program that is run. Empty for a program without a name.
    Program,
    /// The name of an agent that is called.
    Agent,
    /// The name of an application tool that is called.
    Tool,
    /// A service that the operator configured. Programs do not name it. The resource's name is
    /// empty or is the service's URL.
    Service(&'static Service),
}

/// A service that the operator configures. Programs use the service but do not choose its location.
///
/// The capability that uses the service declares it beside its table, and a policy knows nothing
/// else about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Service {
    /// The name, such as `engine`.
    pub name: &'static str,
    /// The name that people read, such as `search engine`.
    pub label: &'static str,
    /// The use of the service, as a verb phrase, such as `ask the search engine`.
    pub verb: &'static str,
    /// The capability whose purpose is the use of the service. A rule that allows the capability
    /// allows the use of the service by the capability's functions.
    pub capability: &'static str,
    /// If true, a rule on the capability covers every use of the service, no matter which function
    /// uses it.
    pub is_class: bool,
    /// The words of the classes that the service depends on, such as `http`. A rule that denies a
    /// class, or asks about it, also covers the service. A rule that allows it does not.
    pub depends_on: &'static [&'static str],
    /// If true, the use of the service carries data out of the machine, or hands it to somebody who
    /// may: to a host, a provider, the readers of public files or tickets, or the application that
    /// started the run.
    pub leaves_machine: bool,
    /// The file on the host, and the key of the tenant's state, where the service may keep what it
    /// is given. A rule that denies writing it, or asks about it, also covers the service.
    pub kept_in: Option<&'static str>,
}

/// The resources outside the program that an argument names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Names {
    /// No resource.
    Nothing,
    /// The argument itself is the name of a resource of this kind.
    Itself(Target),
    /// The argument, such as a script or an array, contains names of resources of these kinds. The
    /// names are known only when the function uses them, so the function itself checks each one
    /// with the run's guard.
    Inside(&'static [Target]),
}

/// A resource that every call to a function uses, regardless of the arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Touch {
    /// The kind of resource.
    pub target: Target,
    /// The resource's name, or an empty string.
    pub text: &'static str,
}

/// A named parameter or result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Param {
    /// The name shown in the signature.
    pub name: &'static str,
    /// The meaning of the value.
    pub ty: Ty,
    /// The resources outside the program that the argument names.
    pub names: Names,
}

/// The signature of a host function. It contains everything that is needed to check a call, to
/// import the function and to describe it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signature {
    /// The function's capability, such as `str` in `str.len`.
    pub module: &'static str,
    /// The function's name within its capability, such as `len` in `str.len`. An overload has a
    /// suffix: a form `(arr.sort …)` with two operands calls `sort/2`, and one with a single
    /// operand calls `sort`.
    pub name: &'static str,
    /// The parameters in order.
    pub params: &'static [Param],
    /// The results in the order in which they are pushed, without the `err` of a fallible function.
    pub results: &'static [Param],
    /// The error codes. Empty if the function cannot fail. A fallible function pushes `err` (i32)
    /// last.
    pub errors: &'static [Code],
    /// The resources that every call uses, besides those that its arguments name.
    pub touches: &'static [Touch],
}

impl Signature {
    /// Returns the name with its capability, such as `str.len`.
    pub(crate) fn full_name(&self) -> String {
        [self.module, ".", self.name].concat()
    }

    /// Returns the name that a form uses to call the function: `sort` for the overload `sort/2`.
    #[must_use]
    pub fn form(&self) -> &'static str {
        self.name.split_once('/').map_or(self.name, |(name, _)| name)
    }

    /// Returns true if the function reorders or filters its array or map in place. A form that
    /// calls such a function returns that array or map.
    #[must_use]
    pub fn returns_first(&self) -> bool {
        matches!(
            (self.module, self.form()),
            ("arr", "sort" | "sort_by" | "sort_rows" | "uniq" | "reverse") | ("map", "sort")
        )
    }

    /// Returns true if a call may have this many operands.
    #[must_use]
    pub fn takes(&self, operands: usize) -> bool {
        let missing = self.params.get(operands..);
        missing.is_some_and(|missing| missing.iter().all(|param| param.ty.is_optional()))
    }

    /// Returns true if the function pushes an `err` as its last result.
    #[must_use]
    pub const fn fallible(&self) -> bool {
        !self.errors.is_empty()
    }

    /// Returns true if calls may use resources outside the program.
    #[must_use]
    pub const fn reaches_out(&self) -> bool {
        !self.touches.is_empty() || names_anything(self.params)
    }

    /// Checks a function that waits or has an effect. Panics unless an argument of the function
    /// names a resource, or `declared` lists the resources that every call uses.
    #[doc(hidden)]
    #[must_use]
    pub const fn declared(self, declared: &[&str], waits: bool, effect: CallEffect) -> Signature {
        let acts = waits || !matches!(effect, CallEffect::None);
        assert!(
            !acts || !declared.is_empty() || names_anything(self.params),
            "a row that waits or has an effect says what it touches: `#[touches(…)]`"
        );
        self
    }

    /// Returns the value types of the parameters, in order.
    pub fn pops(&self) -> impl ExactSizeIterator<Item = ValType> + '_ {
        self.params.iter().map(|p| p.ty.val())
    }

    /// Returns the value types of the results, in order, including `err`.
    pub fn pushes(&self) -> impl Iterator<Item = ValType> + '_ {
        self.results.iter().map(|p| p.ty.val()).chain(self.fallible().then_some(ValType::I32))
    }
}

/// Returns true if a parameter names a resource outside the program.
const fn names_anything(params: &[Param]) -> bool {
    match params {
        [] => false,
        [Param { names: Names::Nothing, .. }, rest @ ..] => names_anything(rest),
        [_, ..] => true,
    }
}

impl Signature {
    /// Returns the usage as a form, such as `(str.find s needle from) → int`. Optional parameters
    /// are in brackets. An array or map parameter `h` is shown as `arr` or `map`, and long and
    /// float parameters are shown with their type. Results that are strings or bytes are omitted.
    ///
    /// ```
    /// # use wattle_lang::{Code, Names, Param, Signature, Ty};
    /// const PUSH: Signature = Signature {
    ///     module: "arr",
    ///     name: "push",
    ///     params: &[
    ///         Param { name: "h", ty: Ty::Arr, names: Names::Nothing },
    ///         Param { name: "item", ty: Ty::Str, names: Names::Nothing },
    ///     ],
    ///     results: &[],
    ///     errors: &[Code::ENOMEM],
    ///     touches: &[],
    /// };
    /// assert_eq!(PUSH.usage(), "(arr.push arr item)");
    /// ```
    #[must_use]
    pub fn usage(&self) -> String {
        let mut text = format!("({}.{}", self.module, self.form());
        for param in self.params {
            let (open, close) = if param.ty.is_optional() { ("[", "]") } else { ("", "") };
            let shown = match param.ty {
                Ty::Arr if param.name == "h" => "arr".to_owned(),
                Ty::Map | Ty::OptMap if param.name == "h" => "map".to_owned(),
                Ty::Long => format!("{}:long", param.name),
                Ty::Float => format!("{}:float", param.name),
                _ => param.name.to_owned(),
            };
            text.push_str(&format!(" {open}{shown}{close}"));
        }
        text.push(')');
        let shown = |ty: Ty| match ty {
            Ty::Str | Ty::OptStr | Ty::Bytes | Ty::OptBytes => None,
            Ty::Int | Ty::OptInt => Some("int"),
            Ty::Bool => Some("bool"),
            Ty::Long => Some("long"),
            Ty::Float => Some("float"),
            Ty::Arr => Some("arr"),
            Ty::Map | Ty::OptMap => Some("map"),
            Ty::Val => Some("val"),
            Ty::Addr => Some("address"),
            Ty::Any => Some("any"),
        };
        for ty in self.results.iter().filter_map(|result| shown(result.ty)) {
            text.push_str(&format!(" → {ty}"));
        }
        text
    }
}

/// Formats the signature as in the manual and in diagnostics: `http.post (url, body, content_type)
/// → (ptr, err)`. A type other than i32 follows the name: `str.from_float (x f64, digits) → ptr`.
impl fmt::Display for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let show = |p: &Param| match p.ty.val() {
            ValType::I32 => p.name.to_owned(),
            other => format!("{} {other}", p.name),
        };
        let params: Vec<String> = self.params.iter().map(show).collect();
        write!(f, "{} ({})", self.full_name(), params.join(", "))?;
        let mut results: Vec<String> = self.results.iter().map(show).collect();
        if self.fallible() {
            results.push("err".to_owned());
        }
        match results.as_slice() {
            [] => Ok(()),
            [one] => write!(f, " → {one}"),
            many => write!(f, " → ({})", many.join(", ")),
        }
    }
}

/// A program that another program may call by its name, as in `(file_read "a.txt")`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Callable {
    /// The name.
    pub name: String,
    /// The parameters, in order.
    pub params: Vec<CallableParam>,
    /// If true, the result is JSON, which the call reads. Otherwise, the result is a string.
    pub is_typed: bool,
}

/// A parameter of a [`Callable`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallableParam {
    /// The name.
    pub name: String,
    /// If true, a call may leave the argument out.
    pub is_optional: bool,
}

/// The host functions that programs may call, in declaration order, the programs that they may call
/// by name, and the variables that earlier programs kept. Functions can be looked up by full name,
/// such as `str.len`. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Signatures {
    functions: Arc<Functions>,
    programs: Arc<BTreeMap<String, Callable>>,
    kept: Arc<BTreeSet<String>>,
}

#[derive(Debug, Default)]
struct Functions {
    list: Vec<Signature>,
    by_name: NameMap<String, usize>,
}

impl Signatures {
    /// Indexes the signatures by full name. If a name occurs twice, lookups return the first
    /// signature.
    #[must_use]
    pub fn new(list: impl IntoIterator<Item = Signature>) -> Self {
        let mut index = Functions::default();
        for signature in list {
            let at = index.list.len();
            index.by_name.entry(signature.full_name()).or_insert(at);
            index.list.push(signature);
        }
        Signatures { functions: Arc::new(index), ..Signatures::default() }
    }

    /// Adds the programs that programs may call by name. Functions and forms take precedence.
    #[must_use]
    pub fn with_programs(&self, programs: Arc<BTreeMap<String, Callable>>) -> Signatures {
        Signatures { programs, ..self.clone() }
    }

    /// Adds the names of the variables that earlier programs kept, without their `$`. A program that
    /// declares no variable of such a name reads the kept value.
    #[must_use]
    pub fn with_kept<'n>(&self, names: impl IntoIterator<Item = &'n str>) -> Signatures {
        let kept = names.into_iter().map(|name| format!("${name}")).collect();
        Signatures { kept: Arc::new(kept), ..self.clone() }
    }

    /// Returns true if an earlier program kept a variable of this name, which includes its `$`.
    pub(crate) fn is_kept(&self, name: &str) -> bool {
        self.kept.contains(name)
    }

    /// Returns the names of the kept variables, with their `$`.
    pub(crate) fn kept(&self) -> impl Iterator<Item = &str> {
        self.kept.iter().map(String::as_str)
    }

    /// Returns the program that programs may call by this name.
    #[must_use]
    pub fn program(&self, name: &str) -> Option<&Callable> {
        self.programs.get(name)
    }

    /// Returns the function with this full name, such as `http.get` (without `$`), or `None` if the
    /// name is unknown.
    #[must_use]
    pub fn get(&self, full_name: &str) -> Option<&Signature> {
        self.functions.list.get(*self.functions.by_name.get(full_name)?)
    }

    /// Returns the function that a form with this many operands calls: the named function or, if it
    /// does not take this many operands, an overload that does. If there is no such overload,
    /// returns the named function. Returns `None` if the name is unknown.
    ///
    /// ```
    /// # use wattle_lang::{Names, Param, Signature, Signatures, Ty};
    /// # const ARR: Param = Param { name: "h", ty: Ty::Arr, names: Names::Nothing };
    /// # const BY: Param = Param { name: "by", ty: Ty::OptStr, names: Names::Nothing };
    /// # let row = |name, params| Signature {
    /// #     module: "arr", name, params, results: &[], errors: &[], touches: &[],
    /// # };
    /// let host = Signatures::new([row("sort", &[ARR]), row("sort/2", &[ARR, BY])]);
    /// assert_eq!(host.called("arr.sort", 1).unwrap().name, "sort");
    /// assert_eq!(host.called("arr.sort", 2).unwrap().name, "sort/2");
    /// assert_eq!(host.called("arr.sort", 3).unwrap().name, "sort");
    /// ```
    #[must_use]
    pub fn called(&self, full_name: &str, operands: usize) -> Option<&Signature> {
        let named = self.get(full_name)?;
        let is_overload = |other: &&Signature| {
            other.module == named.module
                && other.name != named.name
                && other.form() == named.name
                && other.takes(operands)
        };
        let overload = || self.functions.list.iter().find(is_overload);
        if named.takes(operands) { Some(named) } else { overload().or(Some(named)) }
    }

    /// Returns all functions in declaration order.
    pub fn iter(&self) -> impl Iterator<Item = &Signature> {
        self.functions.list.iter()
    }
}
