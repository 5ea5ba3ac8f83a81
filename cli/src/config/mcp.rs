//! The setting `mcp`: the MCP servers whose tools programs may call.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::{Value as Json, json};
use wattle_mcp::{ServerSettings, is_server_name};

use super::Value;
use super::value::table;

/// Maximum number of servers.
const MAX_SERVERS: usize = 64;

/// The MCP servers, by name. A file declares one as `[mcp.NAME]`.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct McpServers(pub(crate) BTreeMap<String, ServerSettings>);

/// In an environment variable, the value is written as TOML: `time = { command = "uvx", args =
/// ["mcp-server-time"] }`.
impl Value for McpServers {
    fn from_text(text: &str) -> Result<Self, String> {
        Self::from_toml(&table(text)?, Path::new(""))
    }

    fn from_toml(value: &toml::Value, folder: &Path) -> Result<Self, String> {
        let table = value.as_table().ok_or("expected a table `[mcp.NAME]` for each server")?;
        if table.len() > MAX_SERVERS {
            return Err(format!("expected at most {MAX_SERVERS} servers, found {}", table.len()));
        }
        let servers: Result<_, String> =
            table.iter().map(|(name, entry)| server(name, entry, folder)).collect();
        servers.map(McpServers)
    }

    /// The values of variables and headers are left out, because they may be secrets.
    fn to_json(&self) -> Json {
        let server = |settings: &ServerSettings| {
            let mut shown = json!(settings);
            for key in ["env", "headers"] {
                let values = shown.get_mut(key).and_then(Json::as_object_mut);
                values.into_iter().flatten().for_each(|(_, value)| *value = json!("…"));
            }
            shown
        };
        if self.0.is_empty() {
            return Json::Null;
        }
        Json::Object(self.0.iter().map(|(name, one)| (name.clone(), server(one))).collect())
    }
}

fn server(
    name: &str,
    entry: &toml::Value,
    folder: &Path,
) -> Result<(String, ServerSettings), String> {
    if !is_server_name(name) {
        return Err(format!(
            "the name {name:?} of a server is not a lowercase letter, followed by lowercase letters, \
             digits and `_`, at most 32 characters"
        ));
    }
    let wrong = |why: String| format!("the server `{name}`: {why}");
    let mut settings: ServerSettings = entry
        .clone()
        .try_into()
        .map_err(|error: toml::de::Error| wrong(error.message().to_owned()))?;
    settings.check().map_err(wrong)?;
    let absolute = |path: &mut PathBuf| *path = folder.join(&*path);
    settings.cwd.iter_mut().for_each(absolute);
    settings.read.iter_mut().chain(&mut settings.write).flatten().for_each(absolute);
    Ok((name.to_owned(), settings))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_are_read_and_shown_without_their_secrets() {
        let text = "time = { command = \"uvx\", args = [\"mcp-server-time\"] }\n\
                    gh = { url = \"https://a.example/mcp\", headers = { Authorization = \"Bearer x\" } }";
        let servers = McpServers::from_text(text).unwrap();
        assert_eq!(
            servers.to_json(),
            json!({
                "gh": {"url": "https://a.example/mcp", "headers": {"Authorization": "…"}},
                "time": {"command": "uvx", "args": ["mcp-server-time"]},
            })
        );
        let value: toml::Value =
            toml::from_str("a = { command = \"x\", write = [\"out\"] }").unwrap();
        let servers = McpServers::from_toml(&value, Path::new("/etc/wattle")).unwrap();
        assert_eq!(servers.0["a"].write, Some(vec![PathBuf::from("/etc/wattle/out")]));
        for (text, words) in [
            ("Time = { command = \"x\" }", "lowercase"),
            ("a = 3", "`a`"),
            ("a = { comand = \"x\" }", "unknown field `comand`"),
            ("a = { args = [\"x\"] }", "needs `command` or `url`"),
        ] {
            let why = McpServers::from_text(text).unwrap_err();
            assert!(why.contains(words), "{text}: {why}");
        }
    }
}
