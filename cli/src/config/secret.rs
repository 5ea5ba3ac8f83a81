//! The setting `secrets`: each secret has a name, an environment variable that contains it, the
//! hosts that may receive it, and whether all tenants may use it.

use std::path::Path;

use serde_json::{Map, Value as Json, json};
use wattle_agent::host::capability::secrets::{Secret, SecretHost};

use super::value::Value;

/// The hint for a user who gives a key where a setting is expected.
pub(crate) const KEPT_ELSEWHERE: &str = "settings contain no keys: `wattle init` asks for the key of the model and keeps it in a file \
     that only you can read; or put the key into a variable, such as `OPENAI_API_KEY`";

/// The prefixes of well-known keys.
const KEY_PREFIXES: &[&str] = &[
    "sk-",
    "sk_",
    "gsk_",
    "csk-",
    "xai-",
    "AIza",
    "hf_",
    "ghp_",
    "github_pat_",
    "pplx-",
    "tgp_",
    "Bearer ",
];

/// Minimum length of a well-known key, in bytes.
const SHORTEST_KEY: usize = 20;

/// Returns true if the text looks like a well-known provider's key.
pub(crate) fn looks_like_key(text: &str) -> bool {
    let text = text.trim();
    text.len() >= SHORTEST_KEY && KEY_PREFIXES.iter().any(|prefix| text.starts_with(prefix))
}

/// The secrets that the settings declare.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SecretList(pub(crate) Vec<SecretEntry>);

/// A secret, which a file declares as `[secrets.NAME]` with `env`, `hosts` and optionally `shared`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SecretEntry {
    /// The name by which programs refer to the secret.
    pub(crate) name: String,
    /// The environment variable that contains the secret.
    pub(crate) variable: String,
    /// The hosts that may receive the secret.
    pub(crate) hosts: Vec<SecretHost>,
    /// If true, the programs of all tenants of a server may send the secret. Otherwise it belongs
    /// to the configured tenant.
    pub(crate) shared: bool,
}

const FORM: &str = "expected `{ env = \"VARIABLE\", hosts = [\"api.example.com\"] }`";

impl Value for SecretList {
    /// Parses secrets that are written on one line, in the format of a settings file:
    /// `{ github = { env = "GITHUB_TOKEN", hosts = ["api.github.com"] } }`.
    fn from_text(text: &str) -> Result<Self, String> {
        let table: toml::Table =
            format!("secrets = {text}").parse().map_err(|_| format!("{FORM} for each name"))?;
        table
            .get("secrets")
            .map_or(Ok(SecretList::default()), |value| SecretList::from_toml(value, Path::new("")))
    }

    fn from_toml(value: &toml::Value, folder: &Path) -> Result<Self, String> {
        let table = value.as_table().ok_or_else(|| format!("{FORM} for each name"))?;
        table
            .iter()
            .map(|(name, entry)| entry_of(name, entry, folder))
            .collect::<Result<_, _>>()
            .map(SecretList)
    }

    fn to_json(&self) -> Json {
        let entry = |entry: &SecretEntry| {
            let hosts: Vec<String> = entry.hosts.iter().map(ToString::to_string).collect();
            let mut json = json!({"env": entry.variable, "hosts": hosts});
            if let (true, Some(json)) = (entry.shared, json.as_object_mut()) {
                json.insert("shared".to_owned(), true.into());
            }
            (entry.name.clone(), json)
        };
        Json::Object(self.0.iter().map(entry).collect::<Map<_, _>>())
    }
}

fn entry_of(name: &str, entry: &toml::Value, folder: &Path) -> Result<SecretEntry, String> {
    if !Secret::is_name(name) {
        return Err(format!(
            "the name {name:?} of a secret has other characters than letters, digits, `_` and `-`"
        ));
    }
    let wrong = |why: String| format!("the secret `{name}`: {why}");
    let table = entry.as_table().ok_or_else(|| wrong(FORM.to_owned()))?;
    if let Some(key) = table.keys().find(|key| !matches!(key.as_str(), "env" | "hosts" | "shared"))
    {
        return Err(wrong(format!("unknown key `{key}`; {FORM}")));
    }
    let (Some(variable), Some(hosts)) = (table.get("env"), table.get("hosts")) else {
        return Err(wrong(FORM.to_owned()));
    };
    let variable = String::from_toml(variable, folder).map_err(wrong)?;
    if !super::is_variable_name(&variable) {
        return Err(wrong(
            "`env` is not the name of a variable; put the secret into a variable, and give that \
             one's name"
                .to_owned(),
        ));
    }
    let hosts = Vec::<SecretHost>::from_toml(hosts, folder).map_err(wrong)?;
    let shared = table.get("shared").map(|shared| bool::from_toml(shared, folder));
    let shared = shared.transpose().map_err(|why| wrong(format!("`shared`: {why}")))?;
    if hosts.is_empty() {
        Err(wrong("`hosts` names no host, so the secret could go nowhere".to_owned()))
    } else {
        Ok(SecretEntry { name: name.to_owned(), variable, hosts, shared: shared.unwrap_or(false) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_read_and_shown_without_their_values() {
        let text = "{ api = { env = \"API_KEY\", hosts = [\"api.example.com\", \
                    \"*.example.org:8443\"] } }";
        let list = SecretList::from_text(text).unwrap();
        assert_eq!(
            list.to_json(),
            json!({"api": {"env": "API_KEY", "hosts": ["api.example.com", "*.example.org:8443"]}})
        );
        let text = "{ api = { env = \"API_KEY\", hosts = [\"api.example.com\"], shared = true } }";
        assert_eq!(
            SecretList::from_text(text).unwrap().to_json(),
            json!({"api": {"env": "API_KEY", "hosts": ["api.example.com"], "shared": true}})
        );
        for (text, words) in [
            ("{ a = { env = \"K\", hosts = [\"a.example\"], shared = \"all\" } }", "`shared`: "),
            ("x", "expected `{ env"),
            ("{ a = \"K\" }", "the secret `a`: expected"),
            ("{ a = { env = \"K\" } }", "expected `{ env"),
            ("{ a = { env = \"K\", hosts = [] } }", "could go nowhere"),
            ("{ a = { env = \"K\", hosts = [\"*\"] } }", "the secret `a`: invalid"),
            ("{ a = { env = \"sk-123\", hosts = [\"a.example\"] } }", "not the name of a variable"),
            (
                "{ a = { env = \"K\", hosts = [\"a.example\"], value = \"v\" } }",
                "unknown key `value`",
            ),
            ("{ \"a b\" = { env = \"K\", hosts = [\"a.example\"] } }", "other characters"),
        ] {
            let why = SecretList::from_text(text).unwrap_err();
            assert!(why.contains(words) && !why.contains("sk-123"), "{text}: {why}");
        }
    }
}
