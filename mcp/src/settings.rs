//! The settings of an MCP server.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::ToolPattern;

/// The settings `[mcp.NAME]` of a server, as they are written.
///
/// A server is either a command, which speaks over its standard input and output, or a URL.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ServerSettings {
    /// The program to start: a name on the search path, or a path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// The program's arguments.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// Environment variables of the program, in addition to a few harmless ones such as `PATH` and
    /// `HOME`. `${env:NAME}` and `${secret:NAME}` are replaced.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// The program's working folder. By default, the workdir.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<PathBuf>,
    /// The files and folders that the program may read. If neither `read`, `write` nor `network` is
    /// set, the program has no walls: it may do what the user may do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read: Option<Vec<PathBuf>>,
    /// The files and folders that the program may read and write.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub write: Option<Vec<PathBuf>>,
    /// If true, the program may open connections.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<bool>,
    /// The URL of a server that speaks streamable HTTP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// HTTP headers of each request, such as `Authorization`. `${env:NAME}` and `${secret:NAME}` are
    /// replaced.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// The client id with which `wattle mcp login` signs in: the one that the authorization server
    /// gave, or the `https` URL of a client metadata document. By default, `wattle mcp login`
    /// registers a client.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_id: Option<String>,
    /// The tools that are offered. By default, all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<ToolPattern>>,
    /// Maximum time for the start, and between two signs of life of a call, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout: Option<u64>,
    /// If true, the hints of the server about its tools also relax the policy: a tool that says that
    /// it only reads needs no approval for that alone. Otherwise hints only tighten it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub trust_hints: bool,
    /// If true, all tenants of a server may use the tools. Otherwise they belong to the configured
    /// tenant.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub shared: bool,
}

/// The way in which a server is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// A process.
    Process,
    /// Streamable HTTP.
    Http,
}

/// Default of [`ServerSettings::timeout`].
const TIMEOUT: Duration = Duration::from_secs(60);

/// Maximum of [`ServerSettings::timeout`], in seconds.
const MAX_TIMEOUT: u64 = 3_600;

/// Maximum length of a server's name, in bytes.
const MAX_NAME: usize = 32;

/// Returns true if a server may have this name: a lowercase letter, followed by lowercase letters,
/// digits and `_`, at most 32 characters.
#[must_use]
pub fn is_server_name(name: &str) -> bool {
    let is_allowed = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_';
    name.len() <= MAX_NAME
        && name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.bytes().all(is_allowed)
}

impl ServerSettings {
    /// Checks that the settings describe one server.
    ///
    /// # Errors
    /// If they do not. The error states the rule.
    pub fn check(&self) -> Result<Transport, String> {
        let blank = |text: &str| text.trim().is_empty() || text.contains('\0');
        if self.timeout.is_some_and(|seconds| seconds == 0 || seconds > MAX_TIMEOUT) {
            return Err(format!("`timeout` is a number of seconds from 1 to {MAX_TIMEOUT}"));
        }
        match (&self.command, &self.url) {
            (Some(command), None) => {
                if blank(command) {
                    return Err("`command` is empty".to_owned());
                }
                if self.args.iter().chain(self.env.values()).any(|text| text.contains('\0')) {
                    return Err("an argument or a variable contains a NUL character".to_owned());
                }
                if self.env.keys().any(|name| blank(name) || name.contains('=')) {
                    return Err("`env` has an invalid name of a variable".to_owned());
                }
                if !self.headers.is_empty() || self.client_id.is_some() {
                    return Err(
                        "`headers` and `client_id` belong to a server with `url`".to_owned()
                    );
                }
                Ok(Transport::Process)
            }
            (None, Some(url)) => {
                if !url.starts_with("http://") && !url.starts_with("https://") {
                    return Err("`url` must begin with `http://` or `https://`".to_owned());
                }
                let of_process = !self.args.is_empty()
                    || !self.env.is_empty()
                    || self.cwd.is_some()
                    || self.has_walls();
                if of_process {
                    return Err("`args`, `env`, `cwd`, `read`, `write` and `network` belong to a \
                                server with `command`"
                        .to_owned());
                }
                Ok(Transport::Http)
            }
            (None, None) => Err("it needs `command` or `url`".to_owned()),
            (Some(_), Some(_)) => Err("it has both `command` and `url`".to_owned()),
        }
    }

    /// Returns true if the process is confined.
    #[must_use]
    pub fn has_walls(&self) -> bool {
        self.read.is_some() || self.write.is_some() || self.network.is_some()
    }

    /// Returns the variables of the process in `env`, with references replaced. `get` returns the
    /// value of a variable, or of a secret if its second argument is true.
    ///
    /// # Errors
    /// If a variable or secret is not set.
    pub fn filled_env(
        &self,
        get: &dyn Fn(&str, bool) -> Option<String>,
    ) -> Result<Vec<(String, String)>, String> {
        let filled = |(name, value): (&String, &String)| Ok((name.clone(), filled(value, get)?));
        self.env.iter().map(filled).collect()
    }

    /// Returns the arguments of the process, with references replaced as in
    /// [`filled_env`](ServerSettings::filled_env).
    ///
    /// # Errors
    /// If a variable or secret is not set.
    pub fn filled_args(
        &self,
        get: &dyn Fn(&str, bool) -> Option<String>,
    ) -> Result<Vec<String>, String> {
        self.args.iter().map(|text| filled(text, get)).collect()
    }

    /// Returns the maximum time for the start, and between two signs of life of a call.
    #[must_use]
    pub fn timeout(&self) -> Duration {
        self.timeout.map_or(TIMEOUT, Duration::from_secs)
    }

    /// Returns true if a tool with this name is offered.
    #[must_use]
    pub fn offers(&self, tool: &str) -> bool {
        self.tools.as_ref().is_none_or(|tools| tools.iter().any(|pattern| pattern.matches(tool)))
    }

    /// Returns what the pinned tools belong to: the command with its arguments, or the URL. If it
    /// changes, the operator has chosen another server.
    #[must_use]
    pub fn identity(&self) -> String {
        match &self.url {
            Some(url) => url.clone(),
            None => {
                let words = self.command.iter().chain(&self.args);
                words.map(String::as_str).collect::<Vec<_>>().join(" ")
            }
        }
    }
}

/// Replaces `${env:NAME}`, `${secret:NAME}`, `${NAME}` and `${NAME:-DEFAULT}` in a value.
/// `get` returns the value of a variable (`is_secret` is false) or of a secret.
///
/// # Errors
/// If a variable or a secret is not set. The error names it.
pub(crate) fn filled(
    text: &str,
    get: &dyn Fn(&str, bool) -> Option<String>,
) -> Result<String, String> {
    let (mut out, mut rest) = (String::new(), text);
    while let Some((before, after)) = rest.split_once("${") {
        out.push_str(before);
        let Some((name, after)) = after.split_once('}') else {
            out.push_str("${");
            rest = after;
            continue;
        };
        let (kind, name) = name.split_once(':').filter(|(kind, _)| !kind.is_empty()).map_or(
            ("env", name),
            |(kind, rest)| match rest.strip_prefix('-') {
                Some(_) => ("env", name),
                None => (kind, rest),
            },
        );
        let (name, default) = match name.split_once(":-") {
            Some((name, default)) => (name, Some(default.to_owned())),
            None => (name, None),
        };
        let value = match kind {
            "env" => {
                get(name, false).filter(|value| !value.is_empty()).or(default).ok_or_else(|| {
                    format!("the variable `{name}` is not set; set it, or remove `${{{name}}}`")
                })?
            }
            "secret" => get(name, true).ok_or_else(|| {
                format!(
                    "there is no secret `{name}`; `[secrets.{name}]` in the settings declares it"
                )
            })?,
            kind => {
                return Err(format!(
                    "`${{{kind}:{name}}}` is not supported; use `${{env:NAME}}` or \
                     `${{secret:NAME}}`"
                ));
            }
        };
        out.push_str(&value);
        rest = after;
    }
    out.push_str(rest);
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_describe_one_server() {
        let of = |json: serde_json::Value| {
            serde_json::from_value::<ServerSettings>(json)
                .map_err(|error| error.to_string())
                .and_then(|settings| settings.check())
        };
        use serde_json::json;
        assert_eq!(of(json!({"command": "npx", "args": ["-y", "x"]})), Ok(Transport::Process));
        assert_eq!(of(json!({"url": "https://a.example/mcp"})), Ok(Transport::Http));
        for (json, words) in [
            (json!({}), "needs `command` or `url`"),
            (json!({"command": "a", "url": "http://b"}), "both"),
            (json!({"command": " "}), "empty"),
            (json!({"url": "ftp://a"}), "must begin"),
            (json!({"url": "http://a", "args": ["x"]}), "belong to a server with `command`"),
            (json!({"command": "a", "headers": {"x": "y"}}), "belong to a server with `url`"),
            (json!({"command": "a", "timeout": 0}), "seconds from 1"),
            (json!({"command": "a", "comand": 1}), "unknown field"),
            (json!({"command": "a", "env": {"A=B": "c"}}), "invalid name"),
        ] {
            let why = of(json.clone()).unwrap_err();
            assert!(why.contains(words), "{json}: {why}");
        }
    }

    #[test]
    fn values_are_filled_from_variables_and_secrets() {
        let get = |name: &str, is_secret: bool| match (name, is_secret) {
            ("A", false) => Some("one".to_owned()),
            ("S", true) => Some("hidden".to_owned()),
            _ => None,
        };
        for (text, value) in [
            ("x", "x"),
            ("${env:A}${A}", "oneone"),
            ("Bearer ${secret:S}!", "Bearer hidden!"),
            ("${B:-two}", "two"),
            ("$A ${", "$A ${"),
        ] {
            assert_eq!(filled(text, &get).as_deref(), Ok(value), "{text}");
        }
        for (text, words) in
            [("${B}", "`B` is not set"), ("${secret:A}", "no secret `A`"), ("${input:x}", "input")]
        {
            assert!(filled(text, &get).unwrap_err().contains(words), "{text}");
        }
    }

    #[test]
    fn names_of_servers_are_parts_of_names_of_programs() {
        for name in ["a", "github", "my_server2"] {
            assert!(is_server_name(name), "{name}");
        }
        for name in ["", "A", "2a", "a.b", "a-b", "_a", &"a".repeat(33)] {
            assert!(!is_server_name(name), "{name}");
        }
    }
}
