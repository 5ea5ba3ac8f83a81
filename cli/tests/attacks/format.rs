//! The format of the rows in `tests/attacks/CLASS.toml`. Unknown keys are errors.

use std::collections::BTreeMap;
use std::path::Path;
use std::rc::Rc;

use serde::Deserialize;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Class {
    attack: Vec<Row>,
}

/// A row: the initial files, the actions, and the expected results.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Row {
    name: String,
    /// The attacker's goal.
    about: String,
    /// Lists of values for the row's variables. All have the same length, and the attack runs once
    /// for each index.
    #[serde(default)]
    each: BTreeMap<String, Vec<String>>,
    /// Text files in the workdir.
    #[serde(default)]
    pub(crate) files: BTreeMap<String, String>,
    /// Text files in the home folder.
    #[serde(default)]
    pub(crate) home: BTreeMap<String, String>,
    /// Symbolic links in the workdir, with their targets.
    #[serde(default)]
    pub(crate) links: BTreeMap<String, String>,
    /// Folders in the workdir that only their owner can access.
    #[serde(default)]
    pub(crate) private: Vec<String>,
    /// Pages of a web server on the loopback interface.
    #[serde(default)]
    pub(crate) page: Vec<Page>,
    /// Answers of the model, in order.
    #[serde(default)]
    pub(crate) model: Vec<Model>,
    /// The `wattle serve` process to attack, if any.
    pub(crate) serve: Option<Serve>,
    /// Invocations of the binary, in order.
    #[serde(default)]
    pub(crate) call: Vec<Call>,
    /// Requests to the server, sent after the calls.
    #[serde(default)]
    pub(crate) request: Vec<Request>,
    #[serde(default)]
    pub(crate) after: After,
    #[serde(default)]
    pub(crate) bounds: Bounds,
}

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Page {
    pub(crate) path: String,
    #[serde(default = "ok")]
    pub(crate) status: u16,
    #[serde(rename = "type")]
    pub(crate) kind: Option<String>,
    #[serde(default)]
    pub(crate) headers: Vec<(String, String)>,
    #[serde(default)]
    pub(crate) body: String,
}

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Model {
    /// The text of a message.
    pub(crate) text: Option<String>,
    /// The bytes of the whole response, including the status line and the headers.
    pub(crate) raw: Option<String>,
    /// The status of a response without a body.
    pub(crate) status: Option<u16>,
}

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Serve {
    #[serde(default)]
    pub(crate) args: Vec<String>,
    #[serde(default)]
    pub(crate) env: BTreeMap<String, String>,
}

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Call {
    pub(crate) args: Vec<String>,
    #[serde(default)]
    pub(crate) env: BTreeMap<String, String>,
    #[serde(default)]
    pub(crate) stdin: String,
    /// If true, the standard streams of the call are a terminal.
    #[serde(default)]
    pub(crate) terminal: bool,
    pub(crate) exit: Exit,
    #[serde(default)]
    pub(crate) says: Vec<String>,
    #[serde(default)]
    pub(crate) hides: Vec<String>,
}

#[derive(Clone, Deserialize)]
#[serde(untagged)]
pub(crate) enum Exit {
    One(i32),
    Any(Vec<i32>),
}

impl Exit {
    pub(crate) fn accepts(&self, code: i32) -> bool {
        match self {
            Exit::One(one) => *one == code,
            Exit::Any(all) => all.contains(&code),
        }
    }
}

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Request {
    pub(crate) raw: String,
    /// The expected status of the response. 0 means that the connection is closed without a
    /// response.
    pub(crate) status: u16,
    #[serde(default)]
    pub(crate) says: Vec<String>,
    #[serde(default)]
    pub(crate) hides: Vec<String>,
}

#[derive(Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct After {
    /// Globs of the files in the workdir that may change.
    #[serde(default)]
    pub(crate) changed: Vec<String>,
    /// The expected requests to the web server, in order, as `METHOD PATH`.
    pub(crate) requests: Option<Vec<String>>,
}

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Bounds {
    /// Maximum duration of each call or request, in seconds.
    pub(crate) seconds: u64,
    /// Maximum resident memory of the whole process tree, in MB.
    pub(crate) memory_mb: u64,
    /// Names of the processes that may run in addition to the binary.
    pub(crate) processes: Vec<String>,
}

impl Default for Bounds {
    fn default() -> Bounds {
        Bounds { seconds: 20, memory_mb: 600, processes: Vec::new() }
    }
}

fn ok() -> u16 {
    200
}

/// An attack to run.
pub(crate) struct Attack {
    /// The row's name, with the index into the row's lists.
    pub(crate) label: String,
    /// The values of the row's variables for this attack.
    pub(crate) values: BTreeMap<String, String>,
    pub(crate) row: Rc<Row>,
}

/// Reads the attacks of a class.
pub(crate) fn read(path: &Path) -> Vec<Attack> {
    let text = std::fs::read_to_string(path).unwrap();
    let class: Class =
        toml::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut names: Vec<&str> = class.attack.iter().map(|row| row.name.as_str()).collect();
    names.sort_unstable();
    let twice = names.windows(2).find(|pair| pair[0] == pair[1]);
    assert!(twice.is_none(), "{}: {twice:?}", path.display());
    class.attack.into_iter().flat_map(attacks).collect()
}

/// Returns the attacks of a row, one for each index of its lists.
fn attacks(row: Row) -> Vec<Attack> {
    let row = Rc::new(row);
    let Row { name, about, each, call, request, .. } = &*row;
    assert!(!about.is_empty(), "{name} does not name the attacker's goal");
    assert!(!call.is_empty() || !request.is_empty(), "{name} attacks nothing");
    let Some(count) = each.values().map(Vec::len).next() else {
        return vec![Attack { label: name.clone(), values: BTreeMap::new(), row }];
    };
    assert!(
        count > 0 && each.values().all(|list| list.len() == count),
        "{name}: lists of different lengths"
    );
    let values =
        |at: usize| each.iter().map(|(key, list)| (key.clone(), list[at].clone())).collect();
    (0..count)
        .map(|at| Attack {
            label: format!("{name} [{}]", at + 1),
            values: values(at),
            row: Rc::clone(&row),
        })
        .collect()
}
