//! Tests of search in the run's files: results, changed files, skipped files and a corrupt index.

mod forged;
mod meaning;

use std::path::Path;
use std::sync::Arc;

use serde_json::Value as Json;
use wattle_capability::files::{Files, OVERLAY_LIMIT};
use wattle_capability::fs::Fs;
use wattle_capability::policy::{Policy, Preflight};
use wattle_capability::search::{Embedder, Search};
use wattle_rt::{Grants, Outcome};

use crate::world::World;

const PROGRAM: &str = "(ret (search.query? (arg 0) (str.to_int? (arg 1))))";

/// A test environment with files, and a grant to search them.
struct Place {
    world: World,
    files: Arc<Files>,
    grants: Grants,
}

impl Place {
    fn new(files: Files, index: Option<&Path>, embedder: Option<Embedder>) -> Place {
        let files = Arc::new(files);
        let search = Search::new(index.map(Path::to_owned), embedder);
        let grants = wattle_capability::pure_grants().with(Fs(Arc::clone(&files))).with(search);
        Place { world: World::new(), files, grants }
    }

    fn of(texts: &[(&str, &str)]) -> Place {
        let place = Place::new(Files::overlay(None, OVERLAY_LIMIT), None, None);
        texts.iter().for_each(|(path, text)| place.files.write(path, text.as_bytes()).unwrap());
        place
    }

    async fn outcome(&self, query: &str, max: i32) -> Outcome {
        let grants = Arc::new(self.grants.clone());
        self.world.run_granted(PROGRAM, &[query, &max.to_string()], &grants).await.unwrap()
    }

    async fn search(&self, query: &str) -> Vec<Json> {
        let outcome = self.outcome(query, 0).await;
        assert!(outcome.success(), "{query}: {:?} {:?}", outcome.exit, outcome.failure);
        serde_json::from_str(&outcome.texts()[0]).unwrap()
    }

    async fn paths(&self, query: &str) -> Vec<String> {
        self.search(query)
            .await
            .iter()
            .map(|hit| hit["path"].as_str().unwrap().to_owned())
            .collect()
    }
}

fn overlay() -> Files {
    Files::overlay(None, OVERLAY_LIMIT)
}

fn over(dir: &Path) -> Files {
    Files::overlay(Some(Files::open_base(dir).unwrap()), OVERLAY_LIMIT)
}

fn corpus() -> Vec<(&'static str, &'static str)> {
    include_str!("../../search/corpus.txt")
        .split("== ")
        .skip(1)
        .map(|file| file.split_once('\n').unwrap())
        .collect()
}

#[tokio::test]
async fn the_best_passage_comes_first() {
    let place = Place::of(&corpus());
    let mut wrong = Vec::new();
    for line in include_str!("../../search/queries.txt").lines() {
        let (query, expected) = line.split_once(" | ").unwrap();
        let found = place.paths(query).await;
        if found.first().map(String::as_str) != Some(expected) {
            wrong.push(format!("{query}: found {found:?}, expected {expected}"));
        }
        assert!(found.len() <= 5);
        assert!(!found.iter().any(|path| path.starts_with('.')
            || path.contains("node_modules")
            || path.starts_with("target")));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[tokio::test]
async fn a_result_is_a_path_lines_a_passage_and_a_score() {
    let place = Place::of(&corpus());
    let found = place.search("compression brotli").await;
    assert_eq!(found[0]["path"], "docs/configuration.md");
    assert_eq!(found[0]["lines"], "9-11");
    assert!(found[0]["passage"].as_str().unwrap().starts_with("## Compression\n"), "{found:?}");
    let scores: Vec<f64> = found.iter().map(|hit| hit["score"].as_f64().unwrap()).collect();
    assert!(scores[0] == 1.0 && scores.is_sorted_by(|a, b| a >= b), "{scores:?}");
    assert!(place.search("nothingofthesort").await.is_empty());
    for (query, max) in [("", 0), ("?!", 0), ("cat", 21), ("cat", -1), (&*"word ".repeat(300), 0)] {
        let outcome = place.outcome(query, max).await;
        assert!(!outcome.success() && outcome.failure.is_some(), "{query} {max}");
    }
    assert_eq!(
        serde_json::from_str::<Vec<Json>>(&place.outcome("the harbour", 1).await.texts()[0])
            .unwrap()
            .len(),
        1
    );
}

#[tokio::test]
async fn changes_are_seen_in_the_base_and_in_the_overlay() {
    let (dir, cache) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let index = cache.path().join("deep/er/index.db");
    std::fs::write(dir.path().join("a.txt"), "the walrus sings").unwrap();
    std::fs::write(dir.path().join("_steps.jsonl"), "{\"tool\":\"walrus\"}").unwrap();
    let place = Place::new(over(dir.path()), Some(&index), None);
    assert_eq!(place.paths("walrus").await, ["a.txt"]);
    assert!(index.is_file());

    place.files.write("b.txt", b"another walrus dances").unwrap();
    place.files.write("a.txt", b"the otter sings").unwrap();
    assert_eq!(place.paths("walrus").await, ["b.txt"]);
    assert_eq!(place.paths("otter").await, ["a.txt"]);
    place.files.remove("b.txt").unwrap();
    assert!(place.paths("walrus").await.is_empty());

    // Another run over the same workdir and index sees the base, but nothing from the first run's
    // overlay.
    let other = Place::new(over(dir.path()), Some(&index), None);
    assert_eq!(other.paths("walrus").await, ["a.txt"]);
    assert!(other.paths("otter").await.is_empty());
    // The file is written again immediately, with the same size.
    std::fs::write(dir.path().join("a.txt"), "the badger sings").unwrap();
    assert_eq!(other.paths("badger").await, ["a.txt"]);
    assert!(other.paths("walrus").await.is_empty());
    std::fs::remove_file(dir.path().join("a.txt")).unwrap();
    assert!(other.paths("sings").await.is_empty());
    assert_eq!(place.paths("otter").await, ["a.txt"]);
}

#[tokio::test]
async fn binary_and_large_files_are_skipped() {
    let place =
        Place::of(&[("good.txt", "walrus \u{feff}"), ("nul.bin", "walrus\0"), ("empty.txt", "")]);
    place.files.write("latin.txt", b"walrus \xe9").unwrap();
    place.files.write("large.txt", "walrus\n".repeat(400_000).as_bytes()).unwrap();
    place.files.write("long.txt", format!("{}walrus", "x".repeat(1 << 20)).as_bytes()).unwrap();
    assert_eq!(place.paths("walrus").await, ["good.txt"]);
    assert_eq!(place.search("walrus").await[0]["lines"], "1");
}

#[tokio::test]
async fn a_broken_or_foreign_index_is_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let cache = tempfile::tempdir().unwrap();
    let index = cache.path().join("index.db");
    std::fs::write(dir.path().join("a.txt"), "the walrus sings").unwrap();
    let found = || async { Place::new(over(dir.path()), Some(&index), None).paths("walrus").await };
    std::fs::write(&index, "this is no database, but something else that lies here".repeat(100))
        .unwrap();
    assert_eq!(found().await, ["a.txt"]);
    std::fs::remove_file(&index).unwrap();
    let foreign = rusqlite::Connection::open(&index).unwrap();
    foreign.execute_batch("CREATE TABLE file (x); INSERT INTO file VALUES (1)").unwrap();
    drop(foreign);
    assert_eq!(found().await, ["a.txt"]);
    // Some of the index file's pages are overwritten, and then the file is truncated.
    let mut bytes = std::fs::read(&index).unwrap();
    let from = bytes.len() / 4;
    bytes[from..].fill(0x5a);
    std::fs::write(&index, &bytes).unwrap();
    assert_eq!(found().await, ["a.txt"]);
    std::fs::write(&index, &bytes[..from]).unwrap();
    assert_eq!(found().await, ["a.txt"]);
    assert_eq!(found().await, ["a.txt"]);
    // The index file cannot be created.
    let place = Place::new(over(dir.path()), Some(Path::new("/dev/null/index.db")), None);
    let outcome = place.outcome("walrus", 0).await;
    assert!(outcome.success() && outcome.log[0].contains("in memory"), "{:?}", outcome.log);
}

#[tokio::test(flavor = "multi_thread")]
async fn many_searches_share_one_index() {
    let dir = tempfile::tempdir().unwrap();
    let cache = tempfile::tempdir().unwrap();
    for n in 0..300 {
        std::fs::write(dir.path().join(format!("{n}.txt")), format!("the walrus number{n} sings"))
            .unwrap();
    }
    let searches = (0..8).map(|n| {
        let place = Place::new(over(dir.path()), Some(&cache.path().join("index.db")), None);
        tokio::spawn(async move { (n, place.paths(&format!("number{}", n * 30)).await) })
    });
    for search in searches.collect::<Vec<_>>() {
        let (n, found) = search.await.unwrap();
        assert_eq!(found.first(), Some(&format!("{}.txt", n * 30)));
    }
}

#[tokio::test]
async fn ten_thousand_files_are_searched() {
    let place = Place::new(overlay(), None, None);
    for n in 0..10_000 {
        place
            .files
            .write(&format!("{}/{n}.txt", n / 100), format!("walrus number{n}").as_bytes())
            .unwrap();
    }
    assert_eq!(place.paths("number7777").await[0], "77/7777.txt");
    assert_eq!(place.paths("walrus").await.len(), 5);
}

#[tokio::test]
async fn files_that_the_guard_denies_are_not_found() {
    let (dir, cache) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let index = cache.path().join("index.db");
    std::fs::create_dir(dir.path().join("secret")).unwrap();
    std::fs::write(dir.path().join("secret/a.txt"), "the walrus sings").unwrap();
    std::fs::write(dir.path().join("b.txt"), "the walrus dances").unwrap();
    let open = Place::new(over(dir.path()), Some(&index), None);
    assert_eq!(open.paths("walrus").await.len(), 2);
    let rules = |list: &[&str]| list.iter().map(|rule| rule.parse().unwrap()).collect::<Vec<_>>();
    for (allow, deny, expected) in [
        (&[][..], &["read:secret"][..], &["b.txt"][..]),
        (&["read:secret"], &["read:/"], &["secret/a.txt"]),
        (&[], &["path:b.txt"], &["secret/a.txt"]),
    ] {
        let place = Place::new(over(dir.path()), Some(&index), None);
        let policy = Policy::new(rules(allow), Vec::new(), rules(deny));
        let grants = place.grants.clone().guarded(Arc::new(Preflight::new(policy, None)));
        let place = Place { grants, ..place };
        assert_eq!(place.paths("walrus").await, expected, "{allow:?} {deny:?}");
    }
    // No file may be read, so the program does not run.
    let place = Place::new(over(dir.path()), Some(&index), None);
    let policy = Policy::new(Vec::new(), Vec::new(), rules(&["read:/"]));
    let grants = Arc::new(place.grants.clone().guarded(Arc::new(Preflight::new(policy, None))));
    let refused = place.world.run_granted(PROGRAM, &["walrus", "0"], &grants).await.unwrap_err();
    assert!(refused.contains("read any file"), "{refused}");
}
