//! Privileges: what the operator gives to single programs of the catalog, beyond the rules of a run.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use sha2::{Digest as _, Sha256};
use wattle_rt::NamedProgram;

use super::{Policy, Rule, RuleError, Verdict};
use crate::secrets::Secret;

/// Something that a program asks for in its front matter, and that the operator may give to it. Its
/// text form is a rule, such as `host:api.example.com`, or `secret:NAME`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Grant {
    /// The effects that the rule covers are allowed, unless an equally specific rule denies them.
    Effects(Rule),
    /// The program may send the secret with this name. Programs without this grant may not.
    Secret(String),
}

/// The prefix of the text form of [`Grant::Secret`].
const SECRET: &str = "secret:";

impl FromStr for Grant {
    type Err = RuleError;

    fn from_str(text: &str) -> Result<Grant, RuleError> {
        match text.trim().strip_prefix(SECRET) {
            Some(name) if Secret::is_name(name) => Ok(Grant::Secret(name.to_owned())),
            Some(_) => Err(RuleError::new(format!(
                "invalid grant `{text}`: the name of a secret must follow `{SECRET}`"
            ))),
            None => text.parse().map(Grant::Effects),
        }
    }
}

impl fmt::Display for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Grant::Effects(rule) => rule.fmt(f),
            Grant::Secret(name) => write!(f, "{SECRET}{name}"),
        }
    }
}

/// The SHA-256 hash of a program's whole text, with its front matter. Its text form has 64
/// hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SourceHash([u8; 32]);

impl SourceHash {
    /// Returns the hash of a text.
    #[must_use]
    pub fn of(source: &str) -> SourceHash {
        SourceHash(Sha256::digest(source.as_bytes()).into())
    }
}

impl FromStr for SourceHash {
    type Err = String;

    fn from_str(text: &str) -> Result<SourceHash, String> {
        let digit = |digit: &u8| char::from(*digit).to_digit(16).and_then(|d| u8::try_from(d).ok());
        let byte = |pair: &[u8]| match pair {
            [high, low] => Some(digit(high)? << 4 | digit(low)?),
            _ => None,
        };
        let bytes: Option<Vec<u8>> = text.as_bytes().chunks(2).map(byte).collect();
        let hash = bytes.and_then(|bytes| bytes.try_into().ok()).map(SourceHash);
        hash.ok_or_else(|| "expected the 64 hexadecimal digits of a SHA-256 hash".to_owned())
    }
}

impl fmt::Display for SourceHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// What the operator gives to one text of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Privilege {
    /// The hash of the text. Any other text of the program has no privilege.
    pub sha256: SourceHash,
    /// What the text gets.
    pub grants: Vec<Grant>,
}

impl Privilege {
    /// Returns the three lines of a settings file that give the privilege to the program `name`.
    ///
    /// ```
    /// use wattle_capability::policy::{Privilege, SourceHash};
    /// let grants = vec!["host:api.example.com".parse().unwrap()];
    /// let lines = Privilege { sha256: SourceHash::of("(ret 1)"), grants }.lines("pay");
    /// assert_eq!(lines[0], "[programs.pay]");
    /// assert!(lines[1].starts_with("sha256 = \""));
    /// assert_eq!(lines[2], "grants = [\"host:api.example.com\"]");
    /// ```
    #[must_use]
    pub fn lines(&self, name: &str) -> [String; 3] {
        let bare = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        let key = if name.chars().all(bare) { name.to_owned() } else { format!("{name:?}") };
        let grants: Vec<String> =
            self.grants.iter().map(|grant| format!("{:?}", grant.to_string())).collect();
        [
            format!("[programs.{key}]"),
            format!("sha256 = \"{}\"", self.sha256),
            format!("grants = [{}]", grants.join(", ")),
        ]
    }
}

/// The privileges of programs, by the programs' names in the catalog.
///
/// Only a program that is started by its name has a privilege, not its text in another place, and no
/// program that it starts inherits it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Privileges(pub BTreeMap<String, Privilege>);

impl Privileges {
    /// Returns what the operator gives to this text of a program.
    #[must_use]
    pub fn given(&self, name: &str, sha256: SourceHash) -> &[Grant] {
        match self.0.get(name) {
            Some(privilege) if privilege.sha256 == sha256 => &privilege.grants,
            _ => &[],
        }
    }

    /// Returns the names of the programs that may send a secret.
    fn owners(&self, secret: &str) -> impl Iterator<Item = &str> {
        let owns = move |grant: &Grant| matches!(grant, Grant::Secret(name) if name == secret);
        let programs = self.0.iter().filter(move |(_, one)| one.grants.iter().any(owns));
        programs.map(|(name, _)| name.as_str())
    }
}

/// The name and the text of a program that is started by its name.
#[derive(Debug)]
pub(super) struct Identity {
    name: String,
    sha256: SourceHash,
}

/// What a program asks for and does not have.
#[derive(Debug)]
pub(super) struct Lacking {
    /// The policy with everything that the program asks for.
    wider: Policy,
    /// The secrets that the program asks for.
    secrets: Vec<String>,
    /// A sentence that says how the operator can give it.
    remedy: String,
}

impl Lacking {
    /// Returns the sentence that says how the operator can permit an effect, if the program asks
    /// for it. `permits` is true for a policy that allows the effect.
    pub(super) fn remedy(&self, permits: impl Fn(&Policy) -> bool) -> Option<String> {
        permits(&self.wider).then(|| self.remedy.clone())
    }
}

impl Policy {
    /// Gives privileges to programs. They overrule the rules that this policy has now, where they are
    /// more specific, and no rules of a policy that is [combined](Policy::and) with this one.
    #[must_use]
    pub fn giving(mut self, privileges: Privileges) -> Policy {
        if privileges.0.is_empty() {
            return self;
        }
        if self.sets.is_empty() {
            self.sets.push(super::Set::default());
        }
        for set in &mut self.sets {
            set.privileges = privileges.clone();
        }
        self
    }

    /// Returns the identity of a program, or `None` if the policy does not depend on it.
    pub(super) fn identity(&self, named: Option<&NamedProgram>, source: &str) -> Option<Identity> {
        let gives = |set: &super::Set| !set.privileges.0.is_empty();
        let named = named.filter(|named| !named.asks.is_empty() || self.sets.iter().any(gives))?;
        Some(Identity { name: named.name.clone(), sha256: SourceHash::of(source) })
    }

    /// Returns the policy for one program, which has what the operator gives to it.
    pub(super) fn of_program(&self, program: &Identity) -> Policy {
        let mut own = self.clone();
        for set in &mut own.sets {
            let given = set.privileges.given(&program.name, program.sha256);
            let given: Vec<Rule> = effects(given).collect();
            set.rules.extend(given.into_iter().map(|rule| (rule, Verdict::Allow)));
        }
        own
    }

    /// Returns what a program asks for and does not have under this policy, which is its own. Returns
    /// `None` if it asks for nothing.
    pub(super) fn lacking(&self, asks: &[String], program: &Identity) -> Option<Lacking> {
        let grants: Vec<Grant> = asks.iter().filter_map(|ask| ask.parse().ok()).collect();
        if grants.is_empty() {
            return None;
        }
        let mut wider = self.clone();
        if let Some(set) = wider.sets.first_mut() {
            set.rules.extend(effects(&grants).map(|rule| (rule, Verdict::Allow)));
        }
        let name = &program.name;
        let secrets = grants.iter().filter_map(|grant| match grant {
            Grant::Secret(secret) => Some(secret.clone()),
            Grant::Effects(_) => None,
        });
        let secrets = secrets.collect();
        let mut settings = self.sets.iter().filter_map(|set| set.privileges.0.get(name));
        let note = match settings.next() {
            Some(other) if other.sha256 != program.sha256 => "; now it names another text",
            _ => "",
        };
        let [setting, sha256, grants] = Privilege { sha256: program.sha256, grants }.lines(name);
        let remedy = format!(
            "the program `{name}` asks for this, and the operator's setting `{setting}` with \
             `{sha256}` and `{grants}` would give it{note}"
        );
        Some(Lacking { wider, secrets, remedy })
    }

    /// Decides whether a program may send a secret.
    ///
    /// # Errors
    /// If the secret is for other programs only.
    pub(super) fn secret(
        &self,
        name: &str,
        program: Option<&Identity>,
        lacking: Option<&Lacking>,
    ) -> Result<(), String> {
        let is_given = |set: &super::Set| {
            program.is_some_and(|program| {
                let given = set.privileges.given(&program.name, program.sha256);
                given.iter().any(|grant| matches!(grant, Grant::Secret(own) if own == name))
            })
        };
        let held = self.sets.iter().filter(|set| !is_given(set));
        let owners: Vec<String> = held
            .flat_map(|set| set.privileges.owners(name))
            .map(|own| format!("`{own}`"))
            .collect();
        if owners.is_empty() {
            return Ok(());
        }
        let remedy = lacking
            .filter(|lacking| lacking.secrets.iter().any(|own| own == name))
            .map(|lacking| format!("; {}", lacking.remedy))
            .unwrap_or_default();
        let owners = owners.join(", ");
        Err(format!(
            "by the setting `programs`, only {owners} may send the secret `{name}`{remedy}"
        ))
    }
}

/// Returns the rules of the effects among some grants.
fn effects(grants: &[Grant]) -> impl Iterator<Item = Rule> {
    grants.iter().filter_map(|grant| match grant {
        Grant::Effects(rule) => Some(rule.clone()),
        Grant::Secret(_) => None,
    })
}
