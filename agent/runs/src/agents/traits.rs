//! Traits: text, tools and programs that several agents share.
//!
//! A trait contributes text for the prompt, tools, and up to three programs. The `build` program
//! runs once, before the first step of a run, and may add text, tools and delegates. The `step`
//! program runs before each step, and its result is ignored. The `prompt` program also runs before
//! each step, and returns text for the model.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize, de};
use serde_json::Value as Json;
use wattle_catalog::{Catalog, Entry, Name, ToolRef, scalar_map};
use wattle_machine::{TraitProgram, TraitPurpose};

use super::context;
use super::parts::AgentError;
use super::spec::AgentSpec;

/// The name of the parameter through which a trait's program receives the recent conversation.
const CONVERSATION: &str = "conversation";

/// A trait. Every field except the name is optional.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TraitSpec {
    /// The trait's name, which may contain lowercase letters, digits, `_` and `.`.
    pub name: String,
    /// The purpose of the trait.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// Text for the agent's prompt. `${key}` stands for the value of `key` in the trait's or the
    /// agent's context.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub prompt: String,
    /// Programs that are offered in addition to the agent's own tools.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<ToolRef>,
    /// Default values for the trait's programs and its prompt. `${key}` stands for the value of
    /// `key` in the agent's context.
    #[serde(default, deserialize_with = "scalar_map", skip_serializing_if = "BTreeMap::is_empty")]
    pub context: BTreeMap<String, String>,
    /// The programs that the host runs for the trait.
    #[serde(default, skip_serializing_if = "TraitPrograms::is_empty")]
    pub programs: TraitPrograms,
}

/// The names of the catalog programs that a trait runs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TraitPrograms {
    /// The program that runs once, before the first step. It returns text for the prompt, or a JSON
    /// object with `prompt`, `tools` and `delegates`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub build: Option<String>,
    /// If true, the result of `build` may add tools and delegates, although the program reads text
    /// that its author did not write: a page, a file, the state, the conversation. Without it, such
    /// a result is text for the prompt only.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub build_may_add: bool,
    /// The program that runs before each step. Its result is ignored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
    /// The program that runs before each step and returns text. The model sees the text only when
    /// it changes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
}

impl TraitPrograms {
    /// Returns true if there are no programs.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == TraitPrograms::default()
    }

    /// Returns the programs in the order in which they run. Each item consists of the purpose, the
    /// name of the field, and the name of the program.
    fn each(&self) -> impl Iterator<Item = (TraitPurpose, &'static str, &str)> {
        let all = [
            (TraitPurpose::Build, "build", &self.build),
            (TraitPurpose::Step, "step", &self.step),
            (TraitPurpose::Prompt, "prompt", &self.prompt),
        ];
        all.into_iter()
            .filter_map(|(purpose, name, program)| Some((purpose, name, program.as_deref()?)))
    }
}

/// A reference to a trait by name, or an inline trait.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum TraitRef {
    /// The name of a declared trait.
    Named(NamedTrait),
    /// An inline trait.
    Inline(Box<TraitSpec>),
}

/// The name of a trait, with values that override those in its context.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NamedTrait {
    /// The trait's name.
    pub id: String,
    /// The values that override those in the trait's context.
    #[serde(default, deserialize_with = "scalar_map", skip_serializing_if = "BTreeMap::is_empty")]
    pub context: BTreeMap<String, String>,
}

impl<'de> Deserialize<'de> for TraitRef {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let form = Json::deserialize(deserializer)?;
        let is_named = form.get("id").is_some();
        match form {
            Json::String(id) => Ok(TraitRef::Named(NamedTrait { id, context: BTreeMap::new() })),
            form if is_named => {
                serde_json::from_value(form).map(TraitRef::Named).map_err(de::Error::custom)
            }
            form => {
                let inline: TraitSpec = serde_json::from_value(form).map_err(de::Error::custom)?;
                inline.check().map_err(de::Error::custom)?;
                Ok(TraitRef::Inline(Box::new(inline)))
            }
        }
    }
}

impl TraitSpec {
    /// Returns the built-in traits.
    pub(super) fn built_in() -> Vec<TraitSpec> {
        vec![TraitSpec {
            name: "time_aware".to_owned(),
            description: "The agent knows the date and the time. `timezone` is a name of the IANA \
                          database, and `time_interval` a number of minutes to which the time is \
                          rounded down, so that the prompt rarely changes."
                .to_owned(),
            context: [("timezone", "UTC"), ("time_interval", "15")]
                .map(|(key, value)| (key.to_owned(), value.to_owned()))
                .into(),
            programs: TraitPrograms {
                prompt: Some("current_time".to_owned()),
                ..TraitPrograms::default()
            },
            ..TraitSpec::default()
        }]
    }

    /// Checks that the name is valid.
    pub(super) fn check(&self) -> Result<(), String> {
        match self.name.parse::<Name>() {
            Ok(_) => Ok(()),
            Err(why) => Err(format!("the trait `{}`: {why}", wattle_rt::truncate(&self.name, 80))),
        }
    }

    /// Returns a copy of the trait with `values` added to its context. They override existing
    /// values with the same key.
    fn with_context(&self, values: &BTreeMap<String, String>) -> TraitSpec {
        let mut own = self.clone();
        own.context.extend(values.clone());
        own
    }

    /// Returns the text for the agent's prompt.
    fn text(&self, agent: &AgentSpec) -> Result<String, AgentError> {
        let mut values = agent.context.clone();
        values.extend(self.values(agent)?);
        context::fill(self.prompt.trim(), &values)
            .map_err(|key| AgentError::context(agent, format!("the trait `{}`", self.name), key))
    }

    /// Returns the trait's context, with each reference to a value of the agent's context replaced
    /// by that value.
    fn values(&self, agent: &AgentSpec) -> Result<BTreeMap<String, String>, AgentError> {
        let place = || format!("the context of the trait `{}`", self.name);
        context::filled(&self.context, &agent.context)
            .map_err(|key| AgentError::context(agent, place(), key))
    }

    /// Returns the trait's programs as catalog entries, under the names by which the host calls
    /// them.
    fn entries(
        &self,
        agent: &AgentSpec,
        catalog: &Catalog,
    ) -> Result<Vec<(TraitProgram, Entry)>, AgentError> {
        let values = self.values(agent)?;
        let entry = |(purpose, kind, program): (TraitPurpose, &str, &str)| {
            let name = format!("{}.{kind}", self.name);
            let tool = ToolRef {
                alias: Some(name.clone()),
                context: values.clone(),
                ..ToolRef::new(program)
            };
            let refused = |why: String| AgentError::TraitProgram {
                agent: agent.name.clone(),
                name: name.clone(),
                why,
            };
            let selected = catalog.select(&[tool]).map_err(|error| refused(error.to_string()))?;
            let entry = selected.get(&name).ok_or_else(|| refused("no such program".to_owned()))?;
            let mut open = entry.meta().args.iter().filter(|arg| arg.default.is_none()).peekable();
            let reads_conversation = open.next_if(|arg| arg.name == CONVERSATION).is_some();
            if let Some(missing) = open.next() {
                let why = format!(
                    "the context has no value for the argument `{}` of `{program}`",
                    missing.name
                );
                return Err(refused(why));
            }
            let may_add = purpose == TraitPurpose::Build && self.programs.build_may_add;
            let program = TraitProgram { program: name, purpose, reads_conversation, may_add };
            Ok((program, entry.as_ref().clone()))
        };
        self.programs.each().map(entry).collect()
    }
}

/// The text, tools and programs that an agent's traits add to its runs.
pub(super) struct TraitParts {
    /// Text for the prompt.
    pub(super) prompt: Vec<String>,
    /// Tools in addition to the agent's own.
    pub(super) tools: Vec<ToolRef>,
    /// The programs that the host runs, each with its catalog entry.
    pub(super) programs: Vec<(TraitProgram, Entry)>,
}

impl TraitParts {
    /// Collects the parts that the agent's traits add. `catalog` contains all programs.
    pub(super) fn of(agent: &AgentSpec, catalog: &Catalog) -> Result<TraitParts, AgentError> {
        let mut parts = TraitParts { prompt: Vec::new(), tools: Vec::new(), programs: Vec::new() };
        for own in &agent.traits {
            let TraitRef::Inline(own) = own else {
                return Err(unknown(agent, own, None));
            };
            let text = own.text(agent)?;
            parts.prompt.extend(Some(text).filter(|text| !text.is_empty()));
            parts.tools.extend(own.tools.iter().cloned());
            parts.programs.extend(own.entries(agent, catalog)?);
        }
        let mut names: Vec<&str> =
            parts.programs.iter().map(|(program, _)| program.program.as_str()).collect();
        names.sort_unstable();
        match names.iter().zip(names.iter().skip(1)).find(|(name, next)| name == next) {
            Some((name, _)) => Err(AgentError::TraitProgram {
                agent: agent.name.clone(),
                name: (*name).to_owned(),
                why: "the agent has the trait twice".to_owned(),
            }),
            None => Ok(parts),
        }
    }
}

/// Traits, keyed by name.
pub(super) type Traits = BTreeMap<String, TraitSpec>;

impl AgentSpec {
    /// Returns the agent with its named traits inlined, so that a run keeps the traits that it
    /// started with.
    pub(super) fn with_traits(&self, known: &Traits) -> Result<AgentSpec, AgentError> {
        let inline = |one: &TraitRef| match one {
            TraitRef::Inline(_) => Ok(one.clone()),
            TraitRef::Named(named) => match known.get(&named.id) {
                Some(found) => Ok(TraitRef::Inline(Box::new(found.with_context(&named.context)))),
                None => {
                    let names = known.keys().map(String::as_str);
                    let nearest = wattle_catalog::nearest_name(&named.id, names);
                    Err(unknown(self, one, nearest.map(str::to_owned)))
                }
            },
        };
        let traits = self.traits.iter().map(inline).collect::<Result<_, _>>()?;
        Ok(AgentSpec { traits, ..self.clone() })
    }
}

fn unknown(agent: &AgentSpec, of: &TraitRef, nearest: Option<String>) -> AgentError {
    let id = match of {
        TraitRef::Named(named) => named.id.clone(),
        TraitRef::Inline(inline) => inline.name.clone(),
    };
    AgentError::UnknownTrait { agent: agent.name.clone(), id, nearest }
}
