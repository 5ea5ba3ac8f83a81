//! A fixture with a separate suite for each test.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use wattle_agent::Host;
use wattle_agent::model::Model;
use wattle_eval::{
    Answers, Approach, Attempt, Contender, Earlier, Evaluation, Plan, Results, Suite, evaluate,
};
use wattle_rt::Limits;
use wattle_tests::built_in_host;

/// A temporary folder with tasks, and a host that runs them.
pub(crate) struct Place {
    dir: tempfile::TempDir,
    pub(crate) host: Host,
}

impl Place {
    /// Creates a suite with the given files.
    pub(crate) fn new(files: &[(&str, &str)]) -> Place {
        let host = built_in_host(Limits::default());
        let place = Place { dir: tempfile::tempdir().unwrap(), host };
        files.iter().for_each(|(path, content)| place.write(path, content));
        place
    }

    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.dir.path().join(path)
    }

    pub(crate) fn write(&self, path: &str, content: &str) {
        let path = self.path(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    /// Writes a recording with the given replies, which are text or JSON objects.
    pub(crate) fn record(&self, path: &str, replies: &[&str]) {
        let reply = |reply: &&str| match reply.starts_with('{') {
            true => format!("{{\"reply\":{reply}}}\n"),
            false => serde_json::json!({"reply": reply}).to_string() + "\n",
        };
        let turns: String = replies.iter().map(reply).collect();
        self.write(&format!("recordings/{path}"), &format!("{{\"wattle_cassette\":1}}\n{turns}"));
    }

    pub(crate) fn suite(&self) -> Suite {
        Suite::load(self.dir.path()).unwrap_or_else(|errors| panic!("{errors:?}"))
    }

    pub(crate) fn results(&self, name: &str) -> Results {
        Results::open(&self.path(name), Earlier::Resume).unwrap()
    }

    /// Runs the suite once with the recordings of the model `m`.
    pub(crate) async fn play(&self, approach: Approach) -> Vec<Attempt> {
        self.evaluate(&[recorded(approach)], None).await.attempts
    }

    pub(crate) async fn evaluate(
        &self,
        contenders: &[Contender],
        results: Option<&Results>,
    ) -> Evaluation {
        evaluate(&self.host, &self.suite(), contenders, &Plan::default(), results, &|_| {})
            .await
            .unwrap()
    }
}

pub(crate) fn recorded(approach: Approach) -> Contender {
    Contender { model: "m".to_owned(), approach, answers: Answers::Recorded }
}

pub(crate) fn live(model: impl Model + 'static) -> Contender {
    let answers = Answers::Live { model: Arc::new(model), record: false };
    Contender { model: "m".to_owned(), approach: Approach::Programs, answers }
}

/// Returns the files in a folder and its subfolders.
pub(crate) fn files(folder: &Path) -> Vec<PathBuf> {
    let (mut folders, mut files) = (vec![folder.to_owned()], Vec::new());
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { folders.push(path) } else { files.push(path) }
        }
    }
    files.sort();
    files
}
