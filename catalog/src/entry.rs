//! A program in the catalog.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value as Json, json};
use wattle_rt::{Diagnostic, NamedProgram, Program, Runtime};

use crate::problem::{Fault, Problem};
use crate::rank::Field;
use crate::schema::ArgumentSchema;
use crate::{Meta, Name, folder, front};

/// The origin of a program.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    /// A file that is compiled into the binary. The value is the file's name.
    BuiltIn(&'static str),
    /// A file on disk.
    File(PathBuf),
    /// The declaration of an agent. The value is the agent's name.
    Agent(String),
    /// A tool of an MCP server. The value is the server's name.
    Server(String),
    /// A script of a skill. The value is its path.
    Skill(PathBuf),
}

impl Origin {
    /// Returns the path of the file that contains the program, or `None` if the program is not from
    /// a file of a catalog folder.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        match self {
            Origin::BuiltIn(_) | Origin::Agent(_) | Origin::Server(_) | Origin::Skill(_) => None,
            Origin::File(path) => Some(path),
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::BuiltIn(file) => write!(f, "built-in {file}"),
            Origin::File(path) | Origin::Skill(path) => write!(f, "{}", path.display()),
            Origin::Agent(name) => write!(f, "agent {name}"),
            Origin::Server(name) => write!(f, "MCP server {name}"),
        }
    }
}

/// A program in the catalog: its name, its front matter and its source.
#[derive(Clone, Debug)]
pub struct Entry {
    pub(crate) name: Name,
    /// The program's name in the catalog, if `name` is an alias for it.
    pub(crate) aliased: Option<Name>,
    pub(crate) meta: Meta,
    source: Arc<str>,
    body: usize,
    origin: Origin,
    /// The values of the parameters that callers cannot set, each with the parameter's index.
    pub(crate) fixed: Vec<(usize, String)>,
    context: Arc<BTreeMap<String, String>>,
    /// The schema of the arguments, if an agent sets one.
    pub(crate) schema: Option<ArgumentSchema>,
}

impl Entry {
    /// Reads a program from the content of a file.
    ///
    /// # Errors
    /// If the front matter is missing, is not valid TOML or breaks a rule. The problem names the
    /// origin and the line.
    pub fn parse(text: &str, origin: Origin) -> Result<Entry, Problem> {
        // A byte order mark would become part of the program.
        let text = wattle_rt::without_bom(text);
        match front::read(text) {
            Ok(front) => Ok(Entry {
                name: front.name,
                aliased: None,
                meta: front.meta,
                body: front.body,
                source: text.into(),
                origin,
                fixed: Vec::new(),
                context: Arc::default(),
                schema: None,
            }),
            Err((line, fault)) => Err(Problem::new(origin.to_string(), Some(line), fault)),
        }
    }

    /// Creates a program that is not in a file: one of an agent's declaration, or a tool.
    #[must_use]
    pub fn declared(origin: Origin, name: Name, meta: Meta, body: String) -> Entry {
        Entry {
            name,
            aliased: None,
            meta,
            source: body.into(),
            body: 0,
            origin,
            fixed: Vec::new(),
            context: Arc::default(),
            schema: None,
        }
    }

    /// Returns a copy of the program with another name.
    pub(crate) fn with_name(self, name: Name) -> Entry {
        Entry { name, ..self }
    }

    /// Returns true if a string contains front matter, valid or not: the first line that is neither
    /// empty nor a plain comment starts with `;;;`.
    #[must_use]
    pub fn has_front_matter(text: &str) -> bool {
        front::is_there(text)
    }

    /// Reads a program from a file.
    ///
    /// # Errors
    /// The same as for [`parse`](Entry::parse). Also fails if the path is not a regular file or
    /// cannot be read.
    pub fn read(path: &Path) -> Result<Entry, Problem> {
        folder::program(path)
    }

    /// Returns the program's name.
    #[must_use]
    pub fn name(&self) -> &Name {
        &self.name
    }

    /// Returns the program's name in the catalog, even if an agent calls it by an alias.
    #[must_use]
    pub fn real_name(&self) -> &Name {
        self.aliased.as_ref().unwrap_or(&self.name)
    }

    /// Returns the front matter.
    #[must_use]
    pub fn meta(&self) -> &Meta {
        &self.meta
    }

    /// Returns the whole source, including the front matter. The runtime treats front matter as a
    /// comment, so positions in diagnostics are positions in the file.
    #[must_use]
    pub fn source(&self) -> &Arc<str> {
        &self.source
    }

    /// Returns the source that follows the front matter.
    #[must_use]
    pub fn body(&self) -> &str {
        self.source.get(self.body..).unwrap_or_default()
    }

    /// Returns the values that an agent passes to the program in addition to its arguments.
    #[must_use]
    pub fn context(&self) -> &Arc<BTreeMap<String, String>> {
        &self.context
    }

    /// Returns the schema of the arguments, if an agent sets one.
    #[must_use]
    pub fn schema(&self) -> Option<&ArgumentSchema> {
        self.schema.as_ref()
    }

    /// Adds values to the program's context. A parameter with the same name as a value is fixed to
    /// that value, and callers can no longer set it.
    pub(crate) fn bind(&mut self, context: &BTreeMap<String, String>) {
        let mut fixed = Vec::new();
        let mut at = 0;
        self.meta.args.retain(|arg| {
            let value = context.get(&arg.name);
            fixed.extend(value.map(|value| (at, value.clone())));
            at += 1;
            value.is_none()
        });
        self.fixed = fixed;
        Arc::make_mut(&mut self.context).extend(context.clone());
    }

    /// Returns a copy of the program with additional context values. The program's existing values
    /// take precedence.
    pub(crate) fn with_values(&self, values: &BTreeMap<String, String>) -> Entry {
        let mut context = values.clone();
        context.extend(self.context.iter().map(|(key, value)| (key.clone(), value.clone())));
        Entry { context: Arc::new(context), ..self.clone() }
    }

    /// Returns the program's origin.
    #[must_use]
    pub fn origin(&self) -> &Origin {
        &self.origin
    }

    /// Returns the program's name, description, usage, arguments and the rest of its front matter as
    /// a JSON object. The examples and the source are left out.
    #[must_use]
    pub fn to_json(&self) -> Json {
        let meta = &self.meta;
        let args = meta.args.iter();
        let timeout = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        json!({
            "name": self.name.as_str(),
            "description": meta.description,
            "usage": self.usage(),
            "args": args.map(|arg| json!({
                "name": arg.name, "type_hint": arg.type_hint.to_string(), "format": arg.format,
                "description": arg.description, "default": arg.default,
            })).collect::<Vec<_>>(),
            "returns": meta.returns,
            "uses": meta.uses,
            "grants": meta.grants,
            "version": meta.version,
            "replaces": meta.replaces,
            "tags": meta.tags,
            "exclusive": meta.exclusive,
            "silent": meta.silent,
            "whole": meta.whole,
            "timeout_ms": meta.timeout.map(timeout),
            "origin": self.origin.to_string(),
        })
    }

    /// Returns the program's search fields with their weights.
    #[must_use]
    pub fn fields(&self) -> Vec<Field<'_>> {
        let meta = &self.meta;
        let tags = meta.tags.iter().map(|tag| (3.0, tag.as_str()));
        let args = meta
            .args
            .iter()
            .flat_map(|arg| [(1.0, arg.name.as_str()), (0.5, arg.description.as_str())]);
        let returns = meta.returns.iter().map(|returns| (0.5, returns.as_str()));
        [(4.0, self.name.as_str()), (2.0, meta.description.as_str())]
            .into_iter()
            .chain(tags)
            .chain(args)
            .chain(returns)
            .collect()
    }

    /// Returns the problem that reports a compile error in the program.
    #[must_use]
    pub fn refused(&self, diagnostic: &Diagnostic) -> Problem {
        let line = usize::try_from(diagnostic.position.line).ok();
        let fault =
            Fault::Program { message: diagnostic.message.clone(), hint: diagnostic.hint.clone() };
        Problem::new(self.origin.to_string(), line, fault)
    }

    /// Marks the program, which the runtime prepared from this entry's source, as one that is
    /// started by its name, so that it has what the operator gives to it. The caller passes the
    /// arguments that [`arguments`](Entry::arguments) returned.
    ///
    /// Returns the program unchanged if it has another source, or if the entry is not from a file: an
    /// agent's declaration need not be the operator's.
    #[must_use]
    pub fn start(&self, program: Program) -> Program {
        let is_own = program.source() == self.source.as_ref();
        if !is_own || !matches!(self.origin, Origin::BuiltIn(_) | Origin::File(_)) {
            return program;
        }
        let (name, asks) = (self.real_name().to_string(), self.meta.grants.clone());
        program.named(Arc::new(NamedProgram { name, asks }))
    }

    /// Checks `uses` against the compiled program. Capabilities that only compute do not matter, nor
    /// does `sys`, which every run has. If the front matter does not contain `uses`, the check
    /// succeeds.
    ///
    /// # Errors
    /// If the body reaches outside the program by a capability that `uses` does not list, or `uses`
    /// lists a capability by which it does not.
    pub fn check_uses(&self, runtime: &Runtime, program: &Program) -> Result<(), Problem> {
        let Some(declared) = &self.meta.uses else { return Ok(()) };
        let called = program.uses();
        let matters = |name: &str| name != "sys" && !runtime.is_pure(name);
        let problem = |fault| Err(Problem::new(self.origin.to_string(), None, fault));
        let is_declared = |name: &str| declared.iter().any(|declared| declared == name);
        if let Some(undeclared) = called.iter().find(|name| matters(name) && !is_declared(name)) {
            return problem(Fault::Undeclared((*undeclared).to_owned()));
        }
        match declared.iter().find(|name| matters(name) && !called.contains(&name.as_str())) {
            Some(unused) => problem(Fault::Unused(unused.clone())),
            None => Ok(()),
        }
    }

    /// Checks that `parse` accepts each entry of `grants`.
    ///
    /// # Errors
    /// If `parse` rejects one, for the reason that it returns.
    pub fn check_grants<E: fmt::Display>(
        &self,
        parse: impl Fn(&str) -> Result<(), E>,
    ) -> Result<(), Problem> {
        self.meta.grants.iter().try_for_each(|grant| {
            parse(grant).map_err(|why| {
                let fault = Fault::Grant { grant: grant.clone(), why: why.to_string() };
                Problem::new(self.origin.to_string(), None, fault)
            })
        })
    }
}
