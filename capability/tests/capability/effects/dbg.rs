//! Tests of the trace lines that `dbg` writes.

use crate::world::World;

#[tokio::test]
async fn a_dumped_value_is_shown_with_all_its_meanings() {
    let world = World::new();
    for (make, expected) in [
        ("\"hello\"", "x: 16 = text of 5 bytes: \"hello\""),
        ("\"\"", "x: 16 = an empty string"),
        (r#""{\"a\": 1}""#, r#"x: 16 = JSON object of 8 bytes: "{\"a\": 1}""#),
        ("\"[1, 2]\"", "x: 16 = JSON array of 6 bytes: \"[1, 2]\""),
        ("\"[not json\"", "x: 16 = text of 9 bytes: \"[not json\""),
        ("\" -12 \"", "x: 16 = text of an integer of 5 bytes: \" -12 \""),
        ("\"1.5\"", "x: 16 = text of a number of 3 bytes: \"1.5\""),
        ("\"https://example.com/\"", "x: 16 = URL of 20 bytes: \"https://example.com/\""),
        ("\"<!DOCTYPE html><p>\"", "x: 16 = HTML of 18 bytes: \"<!DOCTYPE html><p>\""),
        (r#""\89PNG\0d\0a\1a\0a""#, "x: 16 = PNG image of 8 bytes: 89 50 4e 47 0d 0a 1a 0a"),
        (r#""\ff\fe""#, "x: 16 = bytes of 2 bytes: ff fe"),
        ("(i32.const 4)", "x: 4 = a number, as a code ENOENT"),
        ("(i32.const 0)", "x: 0 = a number, as a code SUCCESS"),
        ("(i32.const 12)", "x: 12 = a number"),
        ("(i32.const -1)", "x: -1 = a number"),
        ("(i32.const 2147483647)", "x: 2147483647 = a number"),
        ("(call $split)", "x: 1 = array of 3: [\"a\", \"b\", \"\"]"),
        ("(call $map)", "x: 1 = map of 1: {\"k\": \"v\"}"),
        ("(call $both)", "x: 1 = array of 0: [], or map of 0: {}"),
    ] {
        let text = format!(
            "(func $split (result i32) (call $str.split \"a b \" \" \") (drop))
             (func $map (result i32) (local $m i32) (local.set $m (call $map.new))
               (drop (call $map.set (local.get $m) \"k\" \"v\")) (local.get $m))
             (func $both (result i32) (drop (call $arr.new)) (call $map.new))
             (call $dbg.dump \"x\" {make}) (i32.const 0)"
        );
        let outcome = world.run(&text, &[]).await.unwrap_or_else(|why| panic!("{why}"));
        // The address of the string depends on the other static data of the program.
        let line = outcome.log[0].clone();
        let (found, expected) = (after_number(&line), after_number(expected));
        assert_eq!(found, expected, "{make}");
    }
}

/// Replaces a pointer's value in a line with the word `pointer`.
fn after_number(line: &str) -> String {
    let (label, rest) = line.split_once(": ").unwrap();
    let (number, reading) = rest.split_once(" = ").unwrap();
    let is_pointer = number.parse::<i64>().unwrap() >= 16 && !reading.starts_with("a number");
    format!("{label}: {} = {reading}", if is_pointer { "pointer" } else { number })
}

#[tokio::test]
async fn long_values_are_truncated() {
    let world = World::new();
    let items = "x".repeat(100) + &" y".repeat(20);
    let text = "(argv 0 $t) (local $a i32) (call $str.split (local.get $t) \" \") (drop) \
                (local.set $a)
                (call $dbg.dump \"a\" (local.get $a)) (call $dbg.dump \"t\" (local.get $t)) \
                (i32.const 0)";
    let outcome = world.run(text, &[&items.repeat(50)]).await.unwrap();
    let [array, text] = outcome.log.as_slice() else { panic!("{:?}", outcome.log) };
    assert!(
        array.contains("array of 1001: [\"xxxx")
            && array.contains("…, \"y\", ")
            && array.ends_with(", … 991 more]"),
        "{array}"
    );
    assert!(text.ends_with('…') && text.len() < 300, "{text}");
}
