//! Tests of parsing front matter: each problem is reported with exactly the expected message, and
//! valid front matter is read completely.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use wattle_catalog::{
    AiAnswer, Entry, Example, Expected, Fixtures, HttpAnswer, Origin, Problem, Results,
    ShellAnswer, TypeHint,
};
use wattle_rt::Code;

fn parse(text: &str) -> Result<Entry, Problem> {
    Entry::parse(text, Origin::File(PathBuf::from("x.wat")))
}

#[test]
fn every_problem_has_its_message() {
    let path = "tests/data/front.txt";
    let data = wattle_cases::read(path);
    let (head, cases) = wattle_cases::split(&data);
    let mut found = head.to_owned();
    for case in &cases {
        let problem = parse(case.input)
            .map_or_else(|problem| problem.to_string(), |_| "no problem".to_owned());
        write!(found, "=== {}\n{}---\n{problem}\n\n", case.title, case.input).unwrap();
    }
    wattle_cases::compare(path, &(found.trim_end().to_owned() + "\n"));
    assert!(cases.len() > 50, "only {} cases were read", cases.len());
}

const FULL: &str = r##"
;; Copyright of nobody.

;;;; a heading, which is a comment
  ;;; name = "text.full"
;;; description = """
;;; Does
;;;   everything"""
;;;returns = "a text"
;;; uses = ["http", "str"]
;;; version = "1.2"
;;; tags = ["a", "b"]
;;; exclusive = true
;;; silent = true
;;; timeout_ms = 1500

;; between the tables
;;; [[args]]
;;; name = "from"
;;; type_hint = "url"
;;; description = "Where from"
;;; [[args]]
;;; name = "plain"
;;; description = "A text"
;;; default = ""
;;; [[args]]
;;; name = "count"
;;; type_hint = "int"
;;; format = "int from 1"
;;; description = "How many"
;;; default = 10
;;; [[args]]
;;; name = "ratio"
;;; type_hint = "float"
;;; description = "How much"
;;; default = 1.0
;;; [[args]]
;;; name = "deep"
;;; type_hint = "bool"
;;; description = "How deep"
;;; default = "True"
;;; [[example]]
;;; args = ["https://example.org/", "x", 3, 0.5, false]
;;; files = { "a/b.txt" = "b" }
;;; kv = { k = "v" }
;;; memory = ["an item"]
;;; ai = ["yes", { when = "tea", reply = "no" }]
;;; shell = [{ line = "ls", stdout = "a\n" }]
;;; now = 2026-03-01T12:00:00Z
;;; random = [4, 2]
;;; http = [{ url = "https://example.org/", method = "post", status = 201, headers = { content-type = "text/plain" }, body = "é" }]
;;; contains = ["e"]
;;; files_after = { "c.txt" = "c" }
;;; kv_after = { l = "w" }
;;; [[example]]
;;; args = ["https://example.org/"]
;;; code = 42

(i32.const 0) ;;; not front matter = 1
"##;

#[test]
fn every_key_is_read() {
    let entry = parse(FULL).unwrap_or_else(|problem| panic!("{problem}"));
    let meta = entry.meta();
    assert_eq!(entry.name().as_str(), "text.full");
    assert_eq!(meta.description, "Does\n  everything");
    assert_eq!(meta.returns.as_deref(), Some("a text"));
    assert_eq!(meta.uses.as_deref(), Some(&["http".to_owned(), "str".to_owned()][..]));
    assert_eq!(meta.version.as_deref(), Some("1.2"));
    assert_eq!(meta.tags, ["a", "b"]);
    assert!(meta.exclusive && meta.silent);
    assert_eq!(meta.timeout, Some(Duration::from_millis(1500)));
    let args: Vec<_> =
        meta.args.iter().map(|a| (a.name.as_str(), a.type_hint, a.default.as_deref())).collect();
    assert_eq!(
        args,
        [
            ("from", TypeHint::Url, None),
            ("plain", TypeHint::String, Some("")),
            ("count", TypeHint::Int, Some("10")),
            ("ratio", TypeHint::Float, Some("1.0")),
            ("deep", TypeHint::Bool, Some("true")),
        ]
    );
    assert_eq!(
        entry.usage(),
        "text.full(from: url, plain: string = \"\", count: int from 1 = 10, ratio: float = \
         1.0, deep: bool = true)"
    );
    assert_eq!(meta.args[2].format.as_deref(), Some("int from 1"));
    let text = |t: &str| t.to_owned();
    let one = |k: &str, v: &str| [(text(k), text(v))].into_iter().collect();
    let first = Example {
        line: FULL.lines().position(|l| l == ";;; [[example]]").unwrap() + 1,
        args: ["https://example.org/", "x", "3", "0.5", "false"].map(text).to_vec(),
        fixtures: Fixtures {
            files: one("a/b.txt", "b"),
            kv: one("k", "v"),
            memory: vec![text("an item")],
            http: vec![HttpAnswer {
                url: text("https://example.org/"),
                method: text("POST"),
                status: 201,
                headers: [(text("content-type"), text("text/plain"))].into(),
                body: text("é"),
            }],
            now: Some(text("2026-03-01T12:00:00Z")),
            random: vec![4, 2],
            ai: vec![
                AiAnswer::Next(text("yes")),
                AiAnswer::When { when: text("tea"), reply: text("no") },
            ],
            shell: vec![ShellAnswer {
                line: text("ls"),
                stdout: text("a\n"),
                ..ShellAnswer::default()
            }],
        },
        expected: Expected {
            code: Code::SUCCESS,
            reason: None,
            results: Results::Containing(vec![text("e")]),
            files: one("c.txt", "c"),
            kv: one("l", "w"),
        },
    };
    assert_eq!(meta.examples[0], first);
    assert_eq!(meta.examples[1].expected.code, Code(42));
    assert_eq!(meta.examples[1].expected.results, Results::Any);
    assert_eq!(meta.examples.len(), 2);
}

#[test]
fn the_body_follows_the_front_matter() {
    let entry = parse(FULL).unwrap();
    assert_eq!(&**entry.source(), FULL);
    assert_eq!(entry.body(), "\n(i32.const 0) ;;; not front matter = 1\n");
}

#[test]
fn line_ends_and_a_byte_order_mark_are_ignored() {
    let text = "\u{feff};;; name = \"x\"\r\n;;; description = \"d\"\r\n(i32.const 0)\r\n";
    let entry = parse(text).unwrap();
    assert_eq!(entry.meta().description, "d");
    assert_eq!(entry.body(), "(i32.const 0)\r\n");
    assert_eq!(
        parse(";;; name = \"x\"\r\n\r\n;;; descr = \"d\"\r\n0").unwrap_err().line(),
        Some(3)
    );
}

#[test]
fn hostile_front_matter_is_a_problem() {
    for text in [
        format!(";;; a = {}", "[".repeat(200_000)),
        format!(";;; a{} = 1", ".a".repeat(200_000)),
        format!(";;; name = \"{}\"\n;;; description = \"d\"\n0", "é".repeat(400_000)),
        format!("{}0", ";;;\n".repeat(200_000)),
        ";;; ".repeat(200_000),
        ";;; \u{0}".to_owned(),
        format!(";;; {} = 1", "k".repeat(900_000)),
        format!(
            ";;; name = \"x\"\n;;; description = \"d\"\n;;; exclusive = \"{}\"",
            "k".repeat(900_000)
        ),
        format!(
            ";;; name = \"x\"\n;;; description = \"d\"\n{}",
            ";;; [[args]]\n;;; name = \"a\"\n;;; description = \"d\"\n".repeat(20_000)
        ),
    ] {
        let problem = parse(&text).unwrap_err().to_string();
        assert!(problem.len() < 2_000, "{} bytes of words", problem.len());
    }
}
