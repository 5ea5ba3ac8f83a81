//! The configuration files of other MCP clients.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value as Json};

use crate::{ServerSettings, is_server_name};

/// A client's configuration cannot be used. The text says where and why.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct UpstreamError(String);

/// The keys under which clients list their servers.
const LISTS: [&str; 3] = ["mcpServers", "servers", "mcp"];

/// A server as clients write it. Keys that this runtime does not need are ignored.
#[derive(Deserialize)]
struct Entry {
    #[serde(default, rename = "type")]
    kind: Option<String>,
    #[serde(default)]
    command: Option<String>,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    env: BTreeMap<String, Json>,
    #[serde(default)]
    cwd: Option<std::path::PathBuf>,
    #[serde(default, alias = "serverUrl", alias = "httpUrl")]
    url: Option<String>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    #[serde(default)]
    disabled: bool,
}

/// Reads the servers from the configuration of another client: `mcpServers`, as Claude Desktop,
/// Claude Code and Cursor write it, or `servers`, as VS Code does. A name that is no server's name
/// here is changed: `my-server` becomes `my_server`. Servers that are disabled are left out,
/// and so is the gateway itself, so that the client's own file can be used.
///
/// ```
/// let text = r#"{"mcpServers": {"time": {"command": "uvx", "args": ["mcp-server-time"]}}}"#;
/// let servers = wattle_mcp::read_upstream(text)?;
/// assert_eq!(servers["time"].command.as_deref(), Some("uvx"));
/// # Ok::<(), wattle_mcp::UpstreamError>(())
/// ```
///
/// # Errors
/// If the text is not JSON, lists no servers, or a server cannot be used.
pub fn read_upstream(text: &str) -> Result<BTreeMap<String, ServerSettings>, UpstreamError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let wrong = |why: String| UpstreamError(why);
    let root: Map<String, Json> = serde_json::from_str(text)
        .map_err(|error| wrong(format!("it is not a JSON object: {error}")))?;
    let list =
        LISTS.iter().find_map(|key| root.get(*key)).and_then(Json::as_object).ok_or_else(|| {
            wrong("it lists no servers: expected an object under `mcpServers` or `servers`".into())
        })?;
    let mut servers = BTreeMap::new();
    for (written, entry) in list {
        let wrong = |why: String| UpstreamError(format!("the server `{written}`: {why}"));
        let entry: Entry =
            serde_json::from_value(entry.clone()).map_err(|error| wrong(error.to_string()))?;
        if entry.disabled || is_gateway(&entry) {
            continue;
        }
        let name = name_of(written).ok_or_else(|| wrong("its name has no letter".to_owned()))?;
        let settings = settings_of(entry).map_err(wrong)?;
        settings.check().map_err(wrong)?;
        if servers.insert(name.clone(), settings).is_some() {
            return Err(wrong(format!("two servers have the name `{name}`")));
        }
    }
    Ok(servers)
}

/// Returns true if the entry starts this gateway: `wattle mcp …`.
fn is_gateway(entry: &Entry) -> bool {
    let command = entry.command.as_deref().map(std::path::Path::new);
    let is_wattle = command.and_then(|path| path.file_stem()).is_some_and(|name| name == "wattle");
    is_wattle && entry.args.first().is_some_and(|arg| arg == "mcp")
}

fn settings_of(entry: Entry) -> Result<ServerSettings, String> {
    if entry.kind.as_deref() == Some("sse") {
        return Err("it uses the old transport `sse`; use its URL for streamable HTTP, with the \
                    type `http`"
            .to_owned());
    }
    let env = entry.env.into_iter().map(|(name, value)| match value {
        Json::String(text) => (name, text),
        other => (name, other.to_string()),
    });
    Ok(ServerSettings {
        command: entry.command,
        args: entry.args,
        env: env.collect(),
        cwd: entry.cwd,
        url: entry.url,
        headers: entry.headers,
        ..ServerSettings::default()
    })
}

/// Returns the name of a server that another client calls `written`.
fn name_of(written: &str) -> Option<String> {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' };
    let name: String = written.chars().map(plain).collect();
    let name = name.trim_start_matches(|c: char| !c.is_ascii_lowercase());
    let name: String = name.chars().take(32).collect();
    is_server_name(&name).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_forms_of_the_common_clients_are_read() {
        let claude = r#"{"mcpServers": {
            "my-files": {"command": "npx", "args": ["-y", "server-filesystem", "/tmp"],
                         "env": {"LEVEL": 3}},
            "Off": {"command": "x", "disabled": true},
            "wattle": {"command": "/bin/wattle", "args": ["mcp", "--upstream", "me.json"]}},
            "theme": "dark"}"#;
        let servers = read_upstream(claude).unwrap();
        assert_eq!(servers.keys().collect::<Vec<_>>(), ["my_files"]);
        assert_eq!(servers["my_files"].env["LEVEL"], "3");
        let code = "\u{feff}{\"servers\": {\"gh\": {\"type\": \"http\", \"url\": \
                    \"https://a.example/mcp\", \"headers\": {\"Authorization\": \
                    \"Bearer ${env:TOKEN}\"}}}, \"inputs\": []}";
        assert_eq!(
            read_upstream(code).unwrap()["gh"].headers["Authorization"],
            "Bearer ${env:TOKEN}"
        );
    }

    #[test]
    fn a_file_that_cannot_be_used_is_an_error_that_says_where() {
        for (text, words) in [
            ("[]", "not a JSON object"),
            ("{}", "lists no servers"),
            (r#"{"mcpServers": {"a": {}}}"#, "`a`: it needs `command` or `url`"),
            (r#"{"mcpServers": {"1": {"command": "x"}}}"#, "no letter"),
            (r#"{"servers": {"a": {"type": "sse", "url": "http://b"}}}"#, "old transport"),
            (r#"{"servers": {"a b": {"command": "x"}, "a-b": {"command": "x"}}}"#, "two servers"),
            (r#"{"servers": {"a": {"command": 3}}}"#, "`a`: invalid type"),
        ] {
            let why = read_upstream(text).unwrap_err().to_string();
            assert!(why.contains(words), "{text}: {why}");
        }
    }
}
