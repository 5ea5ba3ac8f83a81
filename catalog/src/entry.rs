//! One program of the catalog.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use wattle_rt::{Diagnostic, Signature};

use crate::problem::{Fault, Problem};
use crate::rank::Field;
use crate::{Meta, Name, folder, front};

/// Where a program comes from.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    /// Compiled into the binary, from the file of that name.
    BuiltIn(&'static str),
    /// Read from that file.
    File(PathBuf),
}

impl Origin {
    /// The file that the program was read from; `None` for a built-in one.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        match self {
            Origin::BuiltIn(_) => None,
            Origin::File(path) => Some(path),
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::BuiltIn(file) => write!(f, "built-in {file}"),
            Origin::File(path) => write!(f, "{}", path.display()),
        }
    }
}

/// One program of the catalog: its name, what its front matter says, and its text. Cheap to clone through the catalog's
/// [`Arc`].
#[derive(Clone, Debug)]
pub struct Entry {
    name: Name,
    meta: Meta,
    source: Arc<str>,
    body: usize,
    origin: Origin,
}

impl Entry {
    /// Reads a program from the text of a file.
    ///
    /// # Errors
    /// Where the front matter is missing, is no TOML, or breaks a rule: the problem names the origin and the line.
    pub fn parse(text: &str, origin: Origin) -> Result<Entry, Problem> {
        // A byte order mark would be a character of the program.
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        match front::read(text) {
            Ok(front) => {
                Ok(Entry { name: front.name, meta: front.meta, body: front.body, source: text.into(), origin })
            }
            Err((line, fault)) => Err(Problem::new(origin.to_string(), Some(line), fault)),
        }
    }

    /// Whether a text is that of a catalog program, in order or not: its first line that is not blank and no plain comment
    /// begins with `;;;`.
    #[must_use]
    pub fn has_front_matter(text: &str) -> bool {
        front::is_there(text)
    }

    /// Reads the program of a file.
    ///
    /// # Errors
    /// Where it is no plain file, cannot be read, or as with [`parse`](Entry::parse).
    pub fn read(path: &Path) -> Result<Entry, Problem> {
        folder::program(path)
    }

    /// The name that the program is called by.
    #[must_use]
    pub fn name(&self) -> &Name {
        &self.name
    }

    /// What the front matter says.
    #[must_use]
    pub fn meta(&self) -> &Meta {
        &self.meta
    }

    /// The whole text of the file. Front matter is comment to the runtime, so the positions in diagnostics are the file's.
    #[must_use]
    pub fn source(&self) -> &Arc<str> {
        &self.source
    }

    /// The text behind the front matter.
    #[must_use]
    pub fn body(&self) -> &str {
        self.source.get(self.body..).unwrap_or_default()
    }

    /// Where the program comes from.
    #[must_use]
    pub fn origin(&self) -> &Origin {
        &self.origin
    }

    /// What searches look at, each part with its weight.
    #[must_use]
    pub fn fields(&self) -> Vec<Field<'_>> {
        let meta = &self.meta;
        let tags = meta.tags.iter().map(|tag| (3.0, tag.as_str()));
        let args = meta.args.iter().flat_map(|arg| [(1.0, arg.name.as_str()), (0.5, arg.description.as_str())]);
        let returns = meta.returns.iter().map(|returns| (0.5, returns.as_str()));
        [(4.0, self.name.as_str()), (2.0, meta.description.as_str())]
            .into_iter()
            .chain(tags)
            .chain(args)
            .chain(returns)
            .collect()
    }

    /// That the program does not compile, as a problem of its file.
    #[must_use]
    pub fn refused(&self, diagnostic: &Diagnostic) -> Problem {
        let line = usize::try_from(diagnostic.position.line).ok();
        let fault = Fault::Program { message: diagnostic.message.clone(), hint: diagnostic.hint.clone() };
        Problem::new(self.origin.to_string(), line, fault)
    }

    /// Holds `uses` against the host functions that the compiled program imports. `sys` needs no mention. Without `uses` in
    /// the front matter everything is in order.
    ///
    /// # Errors
    /// Where the body calls a capability that `uses` lacks, or `uses` names one that the body does not call.
    pub fn check_uses(&self, imports: &[Signature]) -> Result<(), Problem> {
        let Some(declared) = &self.meta.uses else { return Ok(()) };
        let called: Vec<&str> = imports.iter().map(|import| import.module).filter(|module| *module != "sys").collect();
        let problem = |fault| Err(Problem::new(self.origin.to_string(), None, fault));
        if let Some(undeclared) = called.iter().find(|c| !declared.iter().any(|d| d == *c)) {
            return problem(Fault::Undeclared((*undeclared).to_owned()));
        }
        match declared.iter().find(|d| *d != "sys" && !called.contains(&d.as_str())) {
            Some(unused) => problem(Fault::Unused(unused.clone())),
            None => Ok(()),
        }
    }
}
