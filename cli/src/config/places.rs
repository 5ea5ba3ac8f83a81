//! The default paths of the user's own files.

use std::path::PathBuf;

use etcetera::BaseStrategy as _;

/// The default paths of the user's own files. A path is `None` if the user has no home directory.
#[derive(Clone, Debug, Default)]
pub(crate) struct Places {
    /// The user file, which contains the user's own settings.
    pub(crate) user_file: Option<PathBuf>,
    /// The store.
    pub(crate) store: Option<PathBuf>,
    /// The file that lists the trusted folders.
    pub(crate) trust: Option<PathBuf>,
    /// The folder of the accepted tools of MCP servers.
    pub(crate) mcp: Option<PathBuf>,
    /// The folder that contains histories and the server's token.
    pub(crate) state: Option<PathBuf>,
    /// The cache folder.
    pub(crate) cache: Option<PathBuf>,
}

impl Places {
    /// Returns the paths in the XDG base directories.
    pub(crate) fn of_user() -> Places {
        match etcetera::base_strategy::Xdg::new() {
            Ok(xdg) => Places {
                user_file: Some(xdg.config_dir().join("wattle/wattle.toml")),
                store: Some(xdg.data_dir().join("wattle/wattle.db")),
                trust: Some(xdg.data_dir().join("wattle/trust.json")),
                mcp: Some(xdg.data_dir().join("wattle/mcp")),
                state: xdg.state_dir().map(|folder| folder.join("wattle")),
                cache: Some(xdg.cache_dir().join("wattle")),
            },
            Err(_) => Places::default(),
        }
    }
}
