//! Generation of `docs/configuration.md` from the table of settings. `UPDATE=1` rewrites the page.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use serde_json::Value as Json;

use super::{Kind, Places, table};
use crate::args;

/// A setting in the manual.
pub(super) struct Row {
    /// The name of the field. The flag's name is derived from it.
    pub(super) field: &'static str,
    /// The key in a file.
    pub(super) key: &'static str,
    /// The environment variable.
    pub(super) variable: &'static str,
    /// The default, or null if there is none.
    pub(super) default: Json,
    /// The class, which determines whether a project file may set the setting.
    pub(super) kind: Kind,
    /// If true, an option of the command line sets the setting.
    pub(super) has_flag: bool,
    /// The meaning, in full sentences.
    pub(super) meaning: &'static str,
}

const HEAD: &str = "\
# Configuration

After reading this page you can set every setting of Wattle, and you know which value wins and \
                    what a
project file may change.

```sh
wattle config show --origin             # every setting, its value and its source
wattle config set max_steps 20          # in the user file; `unset`, `get` and `edit`, too
wattle run \"count the words\" --max-steps 5
WATTLE_MAX_STEPS=5 wattle run \"count the words\"
```

A setting takes its value from the first of these layers that has one:

1. a flag, behind the command or in front of it;
2. an environment variable; an empty variable counts as absent;
3. the project file, `wattle.toml` in the workdir or in the nearest folder above it, up to the \
                    root of
   the repository or your home folder;
4. the user file, `wattle/wattle.toml` in the XDG config directory (usually `~/.config`);
5. the default.

Files are TOML. A dot in a key denotes a table:

```toml
max_steps = 20
timeout = \"2m\"
deny = [\"http\"]

[ai]
calls = 10
```

Relative paths in a file start from the folder of the file, all others from the current folder. In \
                    a
variable, the items of a list are separated by commas. Times are written like `90s`, `2m` or \
                    `1h30m`.
`NO_COLOR` removes colours and other styles. Progress, wrapping and the layout of Markdown stay. \
                    Only a
pipe, a file or a terminal with `TERM=dumb` gets the answer's text as it is.

`wattle run` adds stdin to the request if it is a pipe or a file of at most 16 MiB. If the request \
                    is `-`,
stdin is the request. With `--no-stdin`, the command does not read stdin, which a loop may need that \
                    reads
its lines from there. Words without quotes are joined: `wattle run count the words`.

`wattle config set KEY VALUE` checks the value as in a variable and keeps the comments of the \
                    file.
With `--project`, the command changes the project file. `wattle config path` prints the path of a \
                    file, and
`wattle config edit` opens it in your editor and then checks it. Settings contain no keys.

## Keys

`wattle init` asks for the provider, the key and the model, tries them with a first message, and saves \
                    them:
the provider and the model in the user file, and the key in `wattle/api-keys.toml` in the XDG state \
                    directory
(usually `~/.local/state`), which only you can read. No program can read that file. It contains \
                    variables, such
as `OPENAI_API_KEY = \"…\"`; a variable of the environment takes precedence.

The rules of `allow`, `ask` and `deny` add up over all layers; [security.md](security.md) \
                    describes them.

## Project files

Whoever can write a project's files can write its project file, so the class of a setting decides \
                    what
that file may set:

- *presentation*: it changes only the form of the output or of a run. Any project file may set it.
- *narrows*: any project file may set a value that permits no more than the value without the \
                    file. Any
  other value needs trust.
- *needs trust*: a project file may set it only in a folder that you trust by `wattle trust`. The \
                    folder is
  that of the file.
- *never from a project*: no project file may set it.

`wattle status` shows what a project file sets, and which of it takes effect.

## Settings

| key | flag | variable | default | class |
|---|---|---|---|---|
";

const TAIL: &str = "
## Variables without a key

| variable | meaning |
|---|---|
| `WATTLE_API_KEY` | The API key, if `api_key_env` and `provider` name no other variable. |
| `WATTLE_TOKEN` | The token of `wattle serve`; see [http.md](http.md). |
| `WATTLE_AGENT_EXEC` | If true, requests to `wattle serve` may ask for trusted runs. |
| `OTEL_EXPORTER_OTLP_ENDPOINT`, `OTEL_EXPORTER_OTLP_HEADERS`, `OTEL_SERVICE_NAME` | The collector \
                    that receives telemetry; see [traces.md](traces.md). |
";

fn page() -> String {
    let store = PathBuf::from("~/.local/share/wattle/wattle.db");
    let rows = table::manual(&Places { store: Some(store), ..Places::default() });
    let mut text = HEAD.to_owned();
    for row in &rows {
        let name = row.has_flag.then(|| format!("`--{}`", row.field.replace('_', "-")));
        let flag = name.unwrap_or_default();
        let default = match &row.default {
            Json::Null => String::new(),
            value => format!("`{value}`"),
        };
        let Row { key, variable, kind, .. } = row;
        let _ = writeln!(text, "| `{key}` | {flag} | `{variable}` | {default} | {} |", kind.word());
    }
    text.push_str("\n## Meanings\n\n");
    for Row { key, meaning, .. } in &rows {
        let _ = writeln!(text, "- `{key}`: {meaning}");
    }
    text + TAIL
}

#[test]
fn the_manual_has_every_setting() {
    wattle_cases::compare("../docs/configuration.md", &page());
}

/// A setting has one row, in `table.rs`: nothing else declares its variable or its option.
#[test]
fn a_setting_is_declared_in_the_table_alone() {
    fn sources(folder: &Path) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        entries.flat_map(|path| if path.is_dir() { sources(&path) } else { vec![path] }).collect()
    }
    // Options of a command's own that have the name of a setting, which they replace.
    let own = ["init provider", "init base-url", "init api-key-env", "init model"];
    let own =
        [&own[..], &["eval model", "eval dialect", "eval record", "agents test model"]].concat();
    let rows = table::manual(&Places::default());
    let flags: Vec<String> = rows.iter().map(|row| row.field.replace('_', "-")).collect();
    for (name, command) in args::leaves(&args::command(), "") {
        for option in command.get_arguments().filter(|option| option.get_long().is_some()) {
            let long = option.get_long().unwrap();
            let is_setting = option.get_help_heading() == Some("Settings");
            let is_declared = rows.iter().any(|row| row.has_flag && row.field == option.get_id());
            assert!(!is_setting || is_declared, "{name} --{long}");
            let is_own = own.contains(&format!("{name} {long}").as_str());
            assert!(
                is_setting || is_own || flags.iter().all(|flag| flag != long),
                "{name} --{long}"
            );
        }
    }
    for path in sources(Path::new("src")).into_iter().filter(|path| !path.ends_with("table.rs")) {
        let text = std::fs::read_to_string(&path).unwrap();
        for row in &rows {
            let literal = format!("\"{}\"", row.variable);
            assert!(!text.contains(&literal), "{} has {literal}", path.display());
        }
    }
}
