//! Signatures: what the text of a program needs to know about a host function.

use std::collections::HashMap;
use std::fmt;

use crate::{CallEffect, Code};

/// A WebAssembly value type, as far as host functions and program locals use it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ValType {
    /// 32-bit integer: numbers, pointers, handles, codes.
    I32,
    /// 64-bit integer.
    I64,
    /// 32-bit float; no host function takes one, a program's locals may.
    F32,
    /// 64-bit float.
    F64,
}

impl ValType {
    /// The type's name in WAT.
    #[must_use]
    pub const fn wat(self) -> &'static str {
        match self {
            ValType::I32 => "i32",
            ValType::I64 => "i64",
            ValType::F32 => "f32",
            ValType::F64 => "f64",
        }
    }

    /// The type that a WAT name stands for.
    #[must_use]
    pub fn from_wat(name: &str) -> Option<ValType> {
        Some(match name {
            "i32" => ValType::I32,
            "i64" => ValType::I64,
            "f32" => ValType::F32,
            "f64" => ValType::F64,
            _ => return None,
        })
    }
}

impl fmt::Display for ValType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.wat())
    }
}

/// What a parameter or result of a host function means; its [`ValType`] follows from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Ty {
    /// Pointer to UTF-8 text in wire format.
    Str,
    /// Like [`Ty::Str`], or 0 for none.
    OptStr,
    /// Pointer to bytes in wire format; need not be UTF-8.
    Bytes,
    /// Like [`Ty::Bytes`], or 0 for none.
    OptBytes,
    /// A plain 32-bit integer.
    Int,
    /// A 64-bit integer.
    Long,
    /// A 64-bit float.
    Float,
    /// 0 or 1.
    Bool,
    /// Handle of a host-side array.
    Arr,
    /// Handle of a host-side map.
    Map,
    /// A raw address in the program's memory.
    Addr,
    /// Any of the 32-bit ones: a number, a pointer or a handle.
    Any,
}

impl Ty {
    /// The value type on the wire.
    #[must_use]
    pub const fn val(self) -> ValType {
        match self {
            Ty::Long => ValType::I64,
            Ty::Float => ValType::F64,
            _ => ValType::I32,
        }
    }

    /// The type in one word, as the manual writes it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Ty::Str => "text",
            Ty::OptStr => "text or 0",
            Ty::Bytes => "bytes",
            Ty::OptBytes => "bytes or 0",
            Ty::Int => "i32",
            Ty::Long => "i64",
            Ty::Float => "f64",
            Ty::Bool => "0 or 1",
            Ty::Arr => "array",
            Ty::Map => "map",
            Ty::Addr => "address",
            Ty::Any => "any",
        }
    }

    /// Whether 0 stands for none.
    #[must_use]
    pub const fn is_optional(self) -> bool {
        matches!(self, Ty::OptStr | Ty::OptBytes)
    }
}

/// A kind of thing outside the program: what authority and policy are about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Target {
    /// An absolute URL, whose host is reached.
    Url,
    /// A path of the run's files that is read.
    Read,
    /// A path that is read with everything below it.
    ReadTree,
    /// A path that is written, made or removed.
    Write,
    /// A path that is read and written with everything below it.
    Tree,
    /// A key of the session's state.
    Key,
    /// The beginning of keys, all of which are read.
    Keys,
    /// The name of a catalog program that is run; empty for a program without a name.
    Program,
    /// The name of an agent that is asked.
    Agent,
    /// Something that the operator set up, which no program names. Its text is empty, or the URL that the host reaches it by.
    Service(Service),
}

/// Something that the operator set up for programs to use, at a place that they do not choose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Service {
    /// A language model, or a model for embeddings.
    Model,
    /// A web search engine.
    Engine,
    /// A model that makes pictures.
    Images,
    /// The remote of the workdir's repository.
    Remote,
    /// The public folder.
    Public,
    /// Where tickets go: a file of the host, or the tenant's state.
    Tickets,
}

/// What an argument names outside the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Names {
    /// Nothing.
    Nothing,
    /// Its text is the name of such a thing.
    Itself(Target),
    /// It holds names of such things, as a script or an array does, and is none itself: what it names is known only when the
    /// function comes to touch it, and the function asks the guard about each.
    Inside(&'static [Target]),
}

/// Something that every call of a function touches, whatever its arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Touch {
    /// What kind of thing it is.
    pub target: Target,
    /// Its name; empty where it has none.
    pub text: &'static str,
}

/// A named parameter or result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Param {
    /// The name shown in signatures.
    pub name: &'static str,
    /// What it means.
    pub ty: Ty,
    /// What it names outside the program.
    pub names: Names,
}

/// The signature of one host function: enough to check a call, to import it and to describe it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signature {
    /// The capability it belongs to: `str` of `str.len`.
    pub module: &'static str,
    /// Its own name: `len` of `str.len`.
    pub name: &'static str,
    /// Parameters in order.
    pub params: &'static [Param],
    /// Results in the order they are pushed, without the `err` of a fallible function.
    pub results: &'static [Param],
    /// The codes that it may fail with; empty where it cannot fail. A fallible function pushes `err` (i32) last.
    pub errors: &'static [Code],
    /// What every call touches outside the program besides what its arguments name.
    pub touches: &'static [Touch],
}

impl Signature {
    /// Whether the function pushes an `err` as its last result.
    #[must_use]
    pub const fn fallible(&self) -> bool {
        !self.errors.is_empty()
    }

    /// Whether a call touches anything outside the program.
    #[must_use]
    pub const fn reaches_out(&self) -> bool {
        !self.touches.is_empty() || names_anything(self.params)
    }

    /// Holds a row to saying what its calls touch: one that waits or has an effect declares it, or names something.
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

    /// The value types it pops, in order.
    pub fn pops(&self) -> impl ExactSizeIterator<Item = ValType> + '_ {
        self.params.iter().map(|p| p.ty.val())
    }

    /// The value types it pushes, in order, `err` included.
    pub fn pushes(&self) -> impl Iterator<Item = ValType> + '_ {
        self.results.iter().map(|p| p.ty.val()).chain(self.fallible().then_some(ValType::I32))
    }
}

/// Whether any of the parameters names something outside the program.
const fn names_anything(params: &[Param]) -> bool {
    match params {
        [] => false,
        [Param { names: Names::Nothing, .. }, rest @ ..] => names_anything(rest),
        [_, ..] => true,
    }
}

impl Signature {
    /// How a call is written in a program: `(str.find s needle from) → n`, with `?` where it may fail and brackets around what may be
    /// left out. What gives a text or bytes shows no result.
    ///
    /// ```
    /// # use wattle_lang::{Code, Names, Param, Signature, Ty};
    /// const GET: Signature = Signature {
    ///     module: "kv",
    ///     name: "get",
    ///     params: &[Param { name: "k", ty: Ty::Str, names: Names::Nothing }],
    ///     results: &[Param { name: "ptr", ty: Ty::Str, names: Names::Nothing }],
    ///     errors: &[Code::ENOENT],
    ///     touches: &[],
    /// };
    /// assert_eq!(GET.usage(), "(kv.get? k)");
    /// ```
    #[must_use]
    pub fn usage(&self) -> String {
        let mut text = format!("({}.{}{}", self.module, self.name, if self.fallible() { "?" } else { "" });
        for param in self.params {
            let (open, close) = if param.ty == Ty::OptStr { ("[", "]") } else { ("", "") };
            let ty = match param.ty.val() {
                ValType::I32 => String::new(),
                other => format!(":{other}"),
            };
            text.push_str(&format!(" {open}{}{ty}{close}", param.name));
        }
        text.push(')');
        for result in self.results.iter().filter(|result| !matches!(result.ty, Ty::Str | Ty::Bytes)) {
            text.push_str(&format!(" → {}", result.name));
            if result.ty.val() != ValType::I32 {
                text.push_str(&format!(":{}", result.ty.val()));
            }
        }
        text
    }
}

/// Shows the signature as the manual and diagnostics write it: `http.post (url, body, content_type) → (ptr, err)`.
/// Types other than i32 follow the name: `str.from_float (x f64, digits) → ptr`.
impl fmt::Display for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let show = |p: &Param| match p.ty.val() {
            ValType::I32 => p.name.to_owned(),
            other => format!("{} {other}", p.name),
        };
        let params: Vec<String> = self.params.iter().map(show).collect();
        write!(f, "{}.{} ({})", self.module, self.name, params.join(", "))?;
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

/// Every host function that programs may name, by full name (`str.len`), in the order they were declared.
#[derive(Clone, Debug, Default)]
pub struct Signatures {
    list: Vec<Signature>,
    by_name: HashMap<String, usize>,
}

impl Signatures {
    /// Builds the index. Where a name occurs twice, the first one counts.
    #[must_use]
    pub fn new(list: impl IntoIterator<Item = Signature>) -> Self {
        let mut index = Signatures::default();
        for signature in list {
            let at = index.list.len();
            index.by_name.entry(format!("{}.{}", signature.module, signature.name)).or_insert(at);
            index.list.push(signature);
        }
        index
    }

    /// The function of that full name, such as `http.get` (without `$`).
    #[must_use]
    pub fn get(&self, full_name: &str) -> Option<&Signature> {
        self.list.get(*self.by_name.get(full_name)?)
    }

    /// All functions in the order they were declared.
    pub fn iter(&self) -> impl Iterator<Item = &Signature> {
        self.list.iter()
    }
}
