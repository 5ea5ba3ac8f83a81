//! Tests that replays of generated runs match their recordings. The runs combine effects, failures,
//! repairs and nested calls in many ways.

use wattle_agent::host::journal;

use super::place::{ByTurn, Place, answer, done, wat};

/// Statements for programs, which can be combined in any order.
const STATEMENTS: &[&str] = &[
    r#"(resv (str.from_int (kv.incr? "n" 1)))"#,
    r#"(kv.set? "k" (date.now))"#,
    r#"(resv (default (kv.get "k") "none"))"#,
    r#"(resv (default (kv.get "absent") "none"))"#,
    r#"(drop (kv.del "k"))"#,
    r#"(resv (str.from_int (sys.random 1000000)))"#,
    r#"(resv (str.from_int (sys.random 3)))"#,
    r#"(resv (date.now))"#,
    r#"(if (i64.gt_s (sys.time) (i64.const 5)) (then (resv "late")))"#,
    r#"(fs.append? "log.txt" "x")"#,
    r#"(resv (fs.read? "base.txt"))"#,
    r#"(resv (default (fs.read "log.txt") "no log"))"#,
    r#"(resv (str.join? (fs.list? "") " "))"#,
    r#"(resv (http.get? "https://a.example/page"))"#,
    r#"(resv (default (http.get "https://a.example/missing") "missing"))"#,
    r#"(resv (http.post? "https://a.example/form" "a=1" ""))"#,
    r#"(each $page (http.get_all? (str.split? "https://a.example/1 https://a.example/2" " ")) (out $page))"#,
    r#"(each $r (par.run? (arr.from_json? """[["file_read","base.txt"],["file_read","absent.txt"]]""")) (out $r))"#,
    r#"(resv (str.join? (par.map? "file_read" (str.split? "base.txt,base.txt" ",")) "+"))"#,
    r#"(resv (default (shell.run "echo one | wc -c; cat base.txt > copy.txt" 0) "no shell"))"#,
    r#"(sys.sleep 1)"#,
    r#"(resv (help.about? "kv.get"))"#,
    r#"(resv (str.from_f64 (f64.div (f64.const 0) (f64.const 0))))"#,
];

/// Final statements for programs.
const ENDS: &[&str] =
    &["", "", "", "(return (i32.const 4))", "(unreachable)", "(resv (kv.get? \"absent\"))"];

/// Returns the model's answers of a generated run.
pub(crate) fn turns(random: &mut fastrand::Rng) -> Vec<String> {
    let mut turns = Vec::new();
    for _ in 0..random.usize(1..5) {
        let mut body: Vec<&str> =
            (0..random.usize(1..6)).map(|_| STATEMENTS[random.usize(..STATEMENTS.len())]).collect();
        body.push(ENDS[random.usize(..ENDS.len())]);
        turns.push(match random.u32(..6) {
            0 => "ToolCall::Catalog(\"no_such_program\")".to_owned(),
            1 => "ToolCall::Catalog(\"file_read\", \"base.txt\")".to_owned(),
            _ => wat(&body.join("\n")),
        });
    }
    turns.push(done());
    turns
}

#[tokio::test]
async fn generated_runs_are_replayed_as_recorded() {
    let mut random = fastrand::Rng::with_seed(20);
    let first = Place::new();
    let mut programs = 0;
    for run in 0..20 {
        let place = first.another();
        let turns = turns(&mut random);
        let (ended, _) =
            place.run(&place.journal(), &ByTurn(turns.clone()), &format!("r{run}")).await;
        assert_eq!(answer(&ended), "done", "{turns:#?}");
        let played = place.replay(&format!("r{run}")).await;
        assert_eq!(played.difference, None, "run {run}: {turns:#?}");
        programs += played.programs;
        // A replay does not need the original files and state.
        let elsewhere = journal::replay(
            &first.host,
            &place.journal(),
            &place.opened(&format!("r{run}")).await,
            1,
        )
        .await;
        assert_eq!(elsewhere.unwrap(), played);
    }
    assert!(programs > 20, "{programs}");
}
