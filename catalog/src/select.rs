//! The programs that an agent may call: a selection from a catalog, with changes made by the agent.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value as Json;

use crate::argument::{excerpt, with_article};
use crate::schema::ArgumentSchema;
use crate::{Catalog, Entry, Name};

/// A reference to one program in a catalog, or to all programs whose names have a given prefix.
///
/// In a file, a reference is written as a string, or as a table if it changes the program:
///
/// ```
/// use wattle_catalog::{Catalog, ToolRef};
///
/// #[derive(serde::Deserialize)]
/// struct File { tools: Vec<ToolRef> }
/// let file: File = toml::from_str(r#"
///     tools = [
///         "text.*",
///         { id = "file_read", alias = "read_rules", context = { path = "rules.md" } },
///     ]
/// "#).unwrap();
/// let catalog = Catalog::built_in().select(&file.tools).unwrap();
/// assert!(catalog.get("text_count").is_some() && catalog.get("http_get").is_none());
/// assert_eq!(catalog.get("read_rules").unwrap().arguments(&[]).unwrap()[0], "rules.md");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "ToolForm", into = "ToolForm")]
pub struct ToolRef {
    /// The program's name, or a prefix followed by `*`: `text.*`, `text_*` or `*`.
    pub id: String,
    /// The name by which the model calls the program. Allowed only for a single program.
    pub alias: Option<String>,
    /// The description that the model reads instead of the program's own.
    pub description: Option<String>,
    /// Named values that the model can neither see nor set. A parameter with the same name as a
    /// value is set to that value. The program can read all of the values.
    pub context: BTreeMap<String, String>,
    /// The JSON Schema of the arguments. It describes an object whose properties are the program's
    /// parameters. Calls that do not match the schema are refused. Allowed only for a single
    /// program.
    pub schema: Option<Json>,
}

impl ToolRef {
    /// Creates a reference that does not change the program.
    #[must_use]
    pub fn new(id: impl Into<String>) -> ToolRef {
        ToolRef { id: id.into(), ..ToolRef::default() }
    }

    /// Returns true if calls are restricted by a schema or by fixed values.
    #[must_use]
    pub fn restricts(&self) -> bool {
        self.schema.is_some() || !self.context.is_empty()
    }

    /// Returns the prefix of a reference to several programs, or `None` for a single program.
    fn prefix(&self) -> Option<String> {
        self.id.strip_suffix('*').map(unified)
    }
}

/// Replaces the dots in a name with `_`, so that `text.` and `text_` are the same prefix.
fn unified(name: &str) -> String {
    name.replace('.', "_")
}

/// A reference in its serialized form.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum ToolForm {
    Id(String),
    Table(ToolTable),
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ToolTable {
    id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    alias: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    #[serde(default, deserialize_with = "scalar_map", skip_serializing_if = "BTreeMap::is_empty")]
    context: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    schema: Option<Json>,
}

/// Deserializes a map whose values are strings, numbers or booleans. Returns all values as strings.
///
/// # Errors
/// If a value is a list, a table or a date.
pub fn scalar_map<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<BTreeMap<String, String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "expected a text, a number, `true` or `false`")]
    enum Scalar {
        Text(String),
        Int(i64),
        Float(f64),
        Bool(bool),
    }
    let map = BTreeMap::<String, Scalar>::deserialize(deserializer)?;
    let text = |scalar| match scalar {
        Scalar::Text(text) => text,
        Scalar::Int(number) => number.to_string(),
        // Debug formatting keeps `1.0` as `1.0`.
        Scalar::Float(number) => format!("{number:?}"),
        Scalar::Bool(value) => value.to_string(),
    };
    Ok(map.into_iter().map(|(key, value)| (key, text(value))).collect())
}

impl From<ToolForm> for ToolRef {
    fn from(form: ToolForm) -> ToolRef {
        match form {
            ToolForm::Id(id) => ToolRef::new(id),
            ToolForm::Table(ToolTable { id, alias, description, context, schema }) => {
                ToolRef { id, alias, description, context, schema }
            }
        }
    }
}

impl From<ToolRef> for ToolForm {
    fn from(tool: ToolRef) -> ToolForm {
        let ToolRef { id, alias, description, context, schema } = tool;
        let is_plain = alias.is_none() && description.is_none() && schema.is_none();
        if is_plain && context.is_empty() {
            ToolForm::Id(id)
        } else {
            ToolForm::Table(ToolTable { id, alias, description, context, schema })
        }
    }
}

/// The reason why a selection failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SelectError {
    /// The reference names a program that does not exist. The message lists similar names.
    Unknown {
        /// The reference's id.
        id: String,
        /// The names of similar programs, most similar first.
        nearest: Vec<String>,
    },
    /// No program's name starts with the reference's prefix. The string is the reference's id.
    NothingMatches(String),
    /// A reference that selects several programs has an alias, which is not allowed. The string is
    /// the reference's id.
    AliasOfSeveral(String),
    /// A reference that selects several programs has a schema, which is not allowed. The string is
    /// the reference's id.
    SchemaOfSeveral(String),
    /// The schema of a program's arguments is invalid.
    BadSchema {
        /// The reference's id.
        id: String,
        /// The reason why the schema is invalid.
        why: String,
    },
    /// An alias is not a valid program name. The string is the alias.
    BadAlias(String),
    /// Two references result in the same program name. The string is that name.
    SameName(String),
    /// A context value does not match the type of its parameter.
    BadValue {
        /// The reference's id.
        id: String,
        /// The name of the parameter.
        parameter: String,
        /// A description of the expected and the actual value.
        why: String,
    },
}

impl fmt::Display for SelectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SelectError::Unknown { id, nearest } if nearest.is_empty() => {
                write!(f, "there is no program `{id}`")
            }
            SelectError::Unknown { id, nearest } => {
                write!(f, "there is no program `{id}`; did you mean `{}`?", nearest.join("`, `"))
            }
            SelectError::NothingMatches(id) => write!(f, "no program's name matches `{id}`"),
            SelectError::AliasOfSeveral(id) => {
                write!(f, "`{id}` stands for several programs, which cannot share an alias")
            }
            SelectError::SchemaOfSeveral(id) => {
                write!(f, "`{id}` stands for several programs, which cannot share a schema")
            }
            SelectError::BadSchema { id, why } => write!(f, "the schema of `{id}`: {why}"),
            SelectError::BadAlias(alias) => {
                write!(f, "the alias {} is not a program's name", excerpt(alias))
            }
            SelectError::SameName(name) => write!(f, "two tools have the name `{name}`"),
            SelectError::BadValue { id, parameter, why } => {
                write!(f, "the context of `{id}` sets `{parameter}`: {why}")
            }
        }
    }
}

impl std::error::Error for SelectError {}

impl Catalog {
    /// Returns a catalog of the programs that the references select. A reference to a single
    /// program takes precedence over a reference to several programs.
    ///
    /// # Errors
    /// If a reference selects nothing, two references result in the same name, or a change that a
    /// reference makes to a program is invalid.
    pub fn select(&self, tools: &[ToolRef]) -> Result<Catalog, SelectError> {
        let mut selected: BTreeMap<Name, Arc<Entry>> = BTreeMap::new();
        let (several, single): (Vec<&ToolRef>, Vec<&ToolRef>) =
            tools.iter().partition(|tool| tool.prefix().is_some());
        for tool in single {
            let entry = self.get(&tool.id).ok_or_else(|| SelectError::Unknown {
                id: tool.id.clone(),
                nearest: self.nearest(&tool.id).into_iter().map(ToString::to_string).collect(),
            })?;
            let entry = entry.as_tool(tool)?;
            let name = entry.name().clone();
            if selected.insert(name.clone(), Arc::new(entry)).is_some() {
                return Err(SelectError::SameName(name.to_string()));
            }
        }
        for tool in several {
            if tool.alias.is_some() {
                return Err(SelectError::AliasOfSeveral(tool.id.clone()));
            }
            if tool.schema.is_some() {
                return Err(SelectError::SchemaOfSeveral(tool.id.clone()));
            }
            let prefix = tool.prefix().unwrap_or_default();
            let mut matching = self
                .iter()
                .filter(|entry| unified(entry.name().as_str()).starts_with(&prefix))
                .peekable();
            if matching.peek().is_none() {
                return Err(SelectError::NothingMatches(tool.id.clone()));
            }
            for entry in matching {
                if !selected.contains_key(entry.name()) {
                    selected.insert(entry.name().clone(), Arc::new(entry.as_tool(tool)?));
                }
            }
        }
        Ok(Catalog::of_entries(selected))
    }

    /// Returns the catalog with additional programs, which replace programs of the same name.
    #[must_use]
    pub fn with(&self, entries: impl IntoIterator<Item = Entry>) -> Catalog {
        let known = self.iter().map(|entry| (entry.name().clone(), Arc::clone(entry)));
        let new = entries.into_iter().map(|entry| (entry.name().clone(), Arc::new(entry)));
        Catalog::of_entries(known.chain(new).collect())
    }
}

impl Catalog {
    /// Returns the catalog with context values that all programs can read. Values in a program's
    /// own context take precedence. The values do not set parameters.
    #[must_use]
    pub fn with_context(&self, values: &BTreeMap<String, String>) -> Catalog {
        if values.is_empty() {
            return self.clone();
        }
        let with = |entry: &Arc<Entry>| {
            let entry = Entry::with_values(entry, values);
            (entry.name().clone(), Arc::new(entry))
        };
        Catalog::of_entries(self.iter().map(with).collect())
    }
}

impl Entry {
    /// Returns the program with the changes that a reference makes to it.
    fn as_tool(&self, tool: &ToolRef) -> Result<Entry, SelectError> {
        let mut entry = self.clone();
        if let Some(alias) = &tool.alias {
            let alias: Name = alias.parse().map_err(|_| SelectError::BadAlias(alias.clone()))?;
            let name = std::mem::replace(&mut entry.name, alias);
            entry.aliased = entry.aliased.or(Some(name));
        }
        if let Some(description) = &tool.description {
            entry.meta.description.clone_from(description);
        }
        for arg in &entry.meta.args {
            if let Some(value) = tool.context.get(&arg.name)
                && arg.type_hint.accept(value).is_none()
            {
                let why =
                    format!("expected {}, found {}", with_article(arg.type_hint), excerpt(value));
                let (id, parameter) = (tool.id.clone(), arg.name.clone());
                return Err(SelectError::BadValue { id, parameter, why });
            }
        }
        entry.bind(&tool.context);
        if let Some(document) = &tool.schema {
            let bad = |why| SelectError::BadSchema { id: tool.id.clone(), why };
            let schema = ArgumentSchema::compile(document, &entry.meta.args).map_err(bad)?;
            entry.meta.args.iter_mut().for_each(|arg| schema.describe(arg));
            entry.schema = Some(schema);
        }
        Ok(entry)
    }
}
