//! Tests that each built-in program compiles, uses the capabilities that it declares, and handles
//! edge cases. Another test runs the programs' examples as an agent would.

use std::collections::VecDeque;
use std::sync::{Arc, LazyLock, Mutex};

use wattle_capability::ai::{Ai, Budget, Embedding, Inference, Question, Reply};
use wattle_capability::files::{Files, OVERLAY_LIMIT};
use wattle_capability::fs::Fs;
use wattle_capability::{ALL, PortFuture, pure_grants};
use wattle_catalog::{Catalog, Entry, Origin};
use wattle_rt::{Code, Exit, Failure, Grants, Limits, Outcome, Program, Runtime};

/// A model that returns the given answers in order and records the questions.
#[derive(Default)]
struct Model {
    answers: Mutex<VecDeque<String>>,
    questions: Mutex<Vec<(usize, String)>>,
}

impl Inference for Model {
    fn ask(&self, question: Question) -> PortFuture<'_, Reply> {
        self.questions.lock().unwrap().push((question.text.chars().count(), question.instruction));
        let answer = self.answers.lock().unwrap().pop_front();
        Box::pin(async {
            let text = answer
                .ok_or_else(|| Failure::new(Code::EREMOTE, "the model has no further answer"))?;
            Ok(Reply { text, tokens: 0 })
        })
    }

    fn embed(&self, _: String) -> PortFuture<'_, Embedding> {
        Box::pin(async { Err(Failure::new(Code::EREMOTE, "the model embeds nothing")) })
    }
}

/// The files, model and grants for a call.
struct World {
    files: Arc<Files>,
    model: Arc<Model>,
    grants: Arc<Grants>,
}

impl World {
    /// Creates an environment that contains no files. Its model returns the given answers.
    fn new(answers: Vec<String>) -> World {
        let files = Arc::new(Files::overlay(None, OVERLAY_LIMIT));
        let model = Arc::new(Model { answers: Mutex::new(answers.into()), ..Model::default() });
        let pure = pure_grants();
        let grants = pure
            .with(Fs(Arc::clone(&files)))
            .with(Ai::new(Arc::clone(&model) as Arc<_>, Budget::default()));
        World { files, model, grants: Arc::new(grants) }
    }
}

fn runtime() -> Runtime {
    Runtime::new(ALL, Limits { instances: 4, ..Limits::default() }).unwrap()
}

async fn program(runtime: &Runtime, entry: &Entry) -> Program {
    match runtime.prepare(entry.source()).await {
        Ok(program) => program,
        Err(diagnostic) => panic!("{}: {diagnostic}", entry.name()),
    }
}

async fn call(runtime: &Runtime, name: &str, world: &World, args: &[&str]) -> Outcome {
    static BUILT_IN: LazyLock<Catalog> = LazyLock::new(Catalog::built_in);
    let catalog = &*BUILT_IN;
    let entry = catalog.get(name).unwrap();
    let args: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
    let args =
        entry.arguments(&args).unwrap_or_else(|error| panic!("{error}\nhint: {}", error.hint()));
    runtime.run(&program(runtime, entry).await, &world.grants, args).await.unwrap()
}

#[tokio::test]
async fn every_program_compiles_without_warnings_and_declares_its_uses() {
    let runtime = runtime();
    for entry in Catalog::built_in().iter() {
        let program = program(&runtime, entry).await;
        assert_eq!(program.warnings().len(), 0, "{}: {}", entry.name(), program.warnings()[0]);
        entry.check_uses(&runtime, &program).unwrap_or_else(|problem| panic!("{problem}"));
        let mut uses = entry.meta().uses.clone().unwrap();
        uses.sort_unstable();
        assert_eq!(uses, program.uses(), "{}", entry.name());
    }
}

#[tokio::test]
async fn uses_are_the_capabilities_that_reach_outside_the_program() {
    let runtime = runtime();
    let check = async |uses: &str, body: &str| {
        let text = format!(";;; name = \"x\"\n;;; description = \"d\"\n{uses}\n{body}");
        let entry = Entry::parse(&text, Origin::File("x.wat".into())).unwrap();
        let program = program(&runtime, &entry).await;
        entry.check_uses(&runtime, &program).map_err(|problem| problem.message())
    };
    let http = r#"(match (http.get "https://a.example/") "(.*)" ($x) (ret (str.trim $x)))"#;
    let both = r#"(kv.set "a" (http.get "https://a.example/"))"#;
    let all = ";;; uses = [\"http\", \"arr\", \"str\", \"val\"]";
    assert_eq!(check(";;; uses = [\"http\"]", http).await, Ok(()));
    assert_eq!(check(all, http).await, Ok(()), "what only computes may be listed");
    assert_eq!(check(";;; uses = [\"arr\", \"sys\"]", "(ret 1)").await, Ok(()));
    assert_eq!(check("", both).await, Ok(()));
    assert_eq!(
        check(";;; uses = [\"http\"]", both).await.unwrap_err(),
        "the body calls `kv`, which `uses` does not name"
    );
    for uses in ["http", "htttp"] {
        assert_eq!(
            check(&format!(";;; uses = [\"{uses}\"]"), "(ret 1)").await.unwrap_err(),
            format!("`uses` names `{uses}`, which the body does not call")
        );
    }
}

#[tokio::test]
async fn a_long_text_is_summarized_in_parts() {
    let runtime = runtime();
    let answers = ["one", "two", "three", "all"].map(str::to_owned).to_vec();
    let world = World::new(answers);
    world.files.write("long.txt", "é".repeat(50_000).as_bytes()).unwrap();
    let outcome = call(&runtime, "ai_summarize_file", &world, &["long.txt", "Be brief."]).await;
    assert_eq!(outcome.texts(), ["all"]);
    let questions = world.model.questions.lock().unwrap();
    let sizes: Vec<usize> = questions.iter().map(|(size, _)| *size).collect();
    assert_eq!(sizes, [24_000, 24_000, 2_000, "one\n\ntwo\n\nthree".len()]);
    assert_eq!(questions.last().unwrap().1, "Be brief.");
}

#[tokio::test]
async fn a_summary_ends_if_the_model_writes_more_than_it_reads() {
    let runtime = runtime();
    let long = "x".repeat(30_000);
    let world = World::new(vec![long.clone(); 100]);
    let outcome = call(&runtime, "ai_summarize", &world, &[&long]).await;
    assert!(outcome.success(), "{outcome:?}");
    // There are four rounds, over 2, 3, 4 and 6 parts, followed by the summary.
    assert_eq!(world.model.questions.lock().unwrap().len(), 16);
}

#[tokio::test]
async fn large_files_fit_into_memory() {
    let runtime = runtime();
    let world = World::new(Vec::new());
    let line = "a line of sixty-four bytes, https://example.org/page, the end.\r\n";
    let text = line.repeat((8 << 20) / line.len());
    world.files.write("large.txt", text.as_bytes()).unwrap();
    let lines = text.lines().count();

    let outcome = call(&runtime, "file_grep", &world, &["large.txt", "PAGE", "true", "1"]).await;
    let first = line.trim_end();
    assert_eq!(
        outcome.texts(),
        [format!("{lines} lines match in 1 of 1 files\nlarge.txt: {lines}\n1:{first}")],
        "{:?}",
        outcome.exit
    );

    let outcome = call(&runtime, "file_lines", &world, &["large.txt", "-1"]).await;
    assert_eq!(outcome.texts(), [first], "{:?}", outcome.exit);

    let outcome = call(&runtime, "text_links", &world, &[&text]).await;
    assert_eq!(outcome.texts(), ["https://example.org/page"], "{:?}", outcome.exit);

    let outcome = call(&runtime, "file_replace", &world, &["large.txt", "sixty-four", "64"]).await;
    assert_eq!(
        outcome.texts(),
        [format!("{lines} replacements in 1 of 1 files\nlarge.txt: {lines}")],
        "{:?} {:?}",
        outcome.exit,
        outcome.failure
    );

    let rows = format!("name,price\n{}", "\"an \"\"ink\"\"\",2\n".repeat(300_000));
    world.files.write("large.csv", rows.as_bytes()).unwrap();
    let outcome = call(&runtime, "csv_column", &world, &["large.csv", "price"]).await;
    assert_eq!(
        outcome.texts()[0].matches("\"2\"").count(),
        300_000,
        "{:?} {:?}",
        outcome.exit,
        outcome.failure
    );
}

#[tokio::test]
async fn edge_cases_of_files_are_handled() {
    let runtime = runtime();
    let world = World::new(Vec::new());
    for (path, content) in [
        ("empty", ""),
        ("blank", "\n"),
        ("crlf", "a\r\nb\r\n"),
        ("bom.csv", "\u{feff}k;v\n1;2"),
        ("comma.csv", "k,v\n1,"),
        ("header.csv", "k,v"),
        ("short.csv", "k,v\n\n1\n,\n\"\"\n"),
    ] {
        world.files.write(path, content.as_bytes()).unwrap();
    }
    for (name, args, code, expected) in [
        ("file_lines", &["blank"][..], 0, ""),
        ("file_lines", &["blank", "2"], 5, "no line 2; lines in the file: 1"),
        ("file_lines", &["empty", "2"], 5, "no line 2; lines in the file: 0"),
        ("file_lines", &["crlf", "2"], 0, "b"),
        ("file_lines", &["crlf", "-9", "1"], 0, "a"),
        ("file_lines", &["crlf", "0"], 5, "no line 0; lines in the file: 2"),
        ("file_lines", &["crlf", "1", "0"], 0, ""),
        ("file_lines", &["crlf", "1", "2147483647"], 0, "a\nb"),
        ("file_grep", &["blank", "a"], 0, "0 lines match in 0 of 1 files"),
        ("file_grep", &["crlf", "\r"], 0, "0 lines match in 0 of 1 files"),
        ("file_grep", &["crlf", ""], 5, "the text to look for is empty"),
        ("file_grep", &["crlf", "b", "", "0"], 0, "1 lines match in 1 of 1 files\ncrlf: 1"),
        ("file_grep", &["*.none", "b"], 4, "no file matches *.none"),
        (
            "file_replace",
            &["empty", "a", "b"],
            4,
            "empty does not contain the text; nothing is changed",
        ),
        ("file_replace", &["empty", "", "b"], 5, "the text to replace is empty"),
        ("csv_column", &["empty", "a"], 0, "[]"),
        ("csv_column", &["header.csv", "v"], 0, "[]"),
        ("csv_column", &["bom.csv", "1", ";"], 4, "no column 1; the columns are: k, v"),
        ("csv_filter", &["empty", "a", "=", "1"], 0, ""),
        ("csv_filter", &["comma.csv", "k", "<", "2"], 0, "k,v\n1,\n"),
        ("csv_filter", &["header.csv", "v", ">", "x"], 7, "not a number: x"),
        ("csv_column", &["bom.csv", "k", ";"], 0, "[\"1\"]"),
        ("csv_column", &["comma.csv", "v"], 0, "[\"\"]"),
        ("csv_column", &["short.csv", "k"], 0, "[\"1\",\"\",\"\"]"),
        ("text_links", &["http://"], 0, ""),
        ("text_links", &["http://x"], 0, "http://x"),
        ("text_links", &["https://"], 0, ""),
        ("text_links", &["<https://x/a>, \"http://y...\" HTTP"], 0, "https://x/a\nhttp://y"),
        ("text_between", &["aab", "a", "b"], 0, "a"),
        ("text_count", &["\u{3000}é"], 0, "{\"lines\":1,\"words\":1,\"characters\":2,\"bytes\":5}"),
    ] {
        let outcome = call(&runtime, name, &world, args).await;
        assert_eq!(outcome.exit, Exit::Returned(Code(code)), "{name} {args:?}");
        match &outcome.failure {
            Some(failed) => {
                assert!(failed.failure.reason.starts_with(expected), "{name} {args:?}: {failed:?}");
                assert!(outcome.results.is_empty(), "{name} {args:?}");
            }
            None => assert_eq!(outcome.texts(), [expected], "{name} {args:?}"),
        }
    }
}

/// Returns `count` random strings. Each string is a sequence of elements of `alphabet`. The strings
/// are the same in every test run.
fn texts(alphabet: &[&str], count: usize) -> impl Iterator<Item = String> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = move |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state % below as u64).unwrap()
    };
    (0..count).map(move |_| (0..next(12)).map(|_| alphabet[next(alphabet.len())]).collect())
}

#[tokio::test]
async fn programs_agree_with_reference_implementations() {
    let runtime = runtime();
    let world = World::new(Vec::new());
    for text in texts(&["a", "A", "b", "\n", "\r\n", " ", "é", "\r"], 400) {
        world.files.write("t", text.as_bytes()).unwrap();
        let lines: Vec<&str> = text.lines().collect();

        let counted = call(&runtime, "text_count", &world, &[&text]).await.texts();
        let (words, characters, bytes) =
            (text.split_ascii_whitespace().count(), text.chars().count(), text.len());
        let expected = format!(
            "{{\"lines\":{},\"words\":{words},\"characters\":{characters},\"bytes\":{bytes}}}",
            lines.len()
        );
        assert_eq!(counted, [expected], "{text:?}");

        for first in 1..=lines.len() {
            let expected =
                lines[first - 1..].iter().take(2).copied().collect::<Vec<_>>().join("\n");
            let back = format!("-{}", lines.len() + 1 - first);
            for from in [&first.to_string(), &back] {
                let read = call(&runtime, "file_lines", &world, &["t", from, "2"]).await.texts();
                assert_eq!(read, [expected.as_str()], "{text:?} from {from}");
            }
        }

        for (ignore_case, part) in [("false", "a"), ("true", "A"), ("false", "é"), ("false", "a b")]
        {
            let matches = |line: &str| match ignore_case {
                "true" => line.to_lowercase().contains(&part.to_lowercase()),
                _ => line.contains(part),
            };
            let found: Vec<String> = lines
                .iter()
                .enumerate()
                .map(|(index, line)| (index + 1, *line))
                .filter(|(_, line)| matches(line))
                .map(|(number, line)| format!("{number}:{line}"))
                .collect();
            let some = usize::from(!found.is_empty());
            let mut expected = vec![format!("{} lines match in {some} of 1 files", found.len())];
            if some == 1 {
                expected.push(format!("t: {}", found.len()));
                expected.extend(found);
            }
            let grepped =
                call(&runtime, "file_grep", &world, &["t", part, ignore_case]).await.texts();
            assert_eq!(grepped, [expected.join("\n")], "{text:?} for {part:?}");
        }
    }
}

/// Parses CSV with two columns and returns one of them without its header. Returns `None` if a
/// quote is not closed or a row has a third field.
fn column(text: &str, wanted: usize) -> Option<Vec<String>> {
    let mut rows: Vec<Vec<(String, bool)>> = vec![vec![(String::new(), false)]];
    let mut quoted = false;
    let mut fresh = true;
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        let row = rows.last_mut().unwrap();
        let field = row.last_mut().unwrap();
        match c {
            '"' if quoted && rest.peek() == Some(&'"') => field.0.push(rest.next().unwrap()),
            '"' if quoted => quoted = false,
            '"' if fresh => (quoted, field.1) = (true, true),
            c if quoted => field.0.push(c),
            ',' => row.push((String::new(), false)),
            '\n' | '\r' => rows.push(vec![(String::new(), false)]),
            c => field.0.push(c),
        }
        fresh = !quoted && matches!(c, ',' | '\n' | '\r');
    }
    let rows =
        rows.into_iter().skip(1).filter(|row| row.len() > 1 || row[0].1 || !row[0].0.is_empty());
    let rows: Vec<_> = rows.collect();
    let fits = !quoted && rows.iter().all(|row| row.len() <= 2);
    fits.then(|| {
        rows.into_iter()
            .map(|row| row.get(wanted).map_or_else(String::new, |field| field.0.clone()))
            .collect()
    })
}

#[tokio::test]
async fn csv_column_agrees_with_the_format() {
    let runtime = runtime();
    let world = World::new(Vec::new());
    for rows in texts(&["a", "\"", "\"", ",", "\n", "\r\n", "é", "\r"], 1_500) {
        let text = format!("k,v\n{rows}");
        world.files.write("t.csv", text.as_bytes()).unwrap();
        for (name, wanted) in [("k", 0), ("v", 1)] {
            let outcome = call(&runtime, "csv_column", &world, &["t.csv", name]).await;
            match column(&text, wanted) {
                Some(values) => {
                    assert_eq!(outcome.texts(), [serde_json::json!(values).to_string()], "{text:?}")
                }
                None => assert_eq!(outcome.exit, Exit::Returned(Code::EPARSE), "{text:?}"),
            }
        }
    }
}
