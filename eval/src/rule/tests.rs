//! Tests the rules with right answers in many forms, and with wrong answers in the right form.

use super::Rule;

/// Returns the number of problems that a rule finds in a string.
fn problems(rule: &str, text: &str) -> usize {
    let rule: Rule = toml::from_str(rule).unwrap_or_else(|why| panic!("{rule}: {why}"));
    assert!(!rule.is_empty(), "{rule:?}");
    rule.problems("it", Some(text)).len()
}

/// Checks that the rule accepts each right answer and rejects each wrong one.
fn check(rule: &str, right: &[&str], wrong: &[&str]) {
    for text in right {
        assert_eq!(problems(rule, text), 0, "{rule}: {text:?}");
    }
    for text in wrong {
        assert_ne!(problems(rule, text), 0, "{rule}: {text:?}");
    }
}

#[test]
fn texts_are_compared_verbatim() {
    check("equals = \"a\\nb\"", &["a\r\nb", " a\nb\n", "a \nb"], &["a b", "A\nb", ""]);
    check("equals = ''", &["", " \n"], &["x"]);
    check("contains = 'tea'", &["hot tea"], &["te a"]);
    check("contains = ['a', 'b']", &["b a"], &["a"]);
    check("lacks = ['a', 'b']", &["c"], &["cab", "a"]);
    check("matches = '^\\d+ min$'", &["12 min"], &["about 12 min"]);
}

#[test]
fn numbers_are_read_in_any_notation() {
    check(
        "number = 4",
        &["4", "It is 4.", "4.0", "4 (yes, 4)", "four", "**4**", "4 orders", "\\boxed{4}", "$4$"],
        &["5", "fourteen", "between 3 and 4", "2 + 2 = 4", "-4", "", "4.5", "four or five", "40"],
    );
    check("number = 2.5\nwithin = 0.1", &["2.45", "2.6 km"], &["2.3", "2.7"]);
    check(
        "number = 1250.75",
        &["$1,250.75", "1250.75", "1.250,75 EUR", "1 250.75", "1\u{202f}250,75", "1'250.75"],
        &["1250", "1,250", "1250.7", "12.5075", "1 250 75"],
    );
    check("number = 12345", &["12,345", "12 345", "12_345", "1.2345e4"], &["12.345", "12, 345"]);
    check("number = 0.1", &["0.1", ".1", "0,1"], &["0.2", "1"]);
    check("number = 50", &["50%", "50 percent"], &["0.5"]);
    check("number = -3", &["-3", "−3", "- 3"], &["3", "2-3"]);
}

#[test]
fn a_short_answer_names_its_value_and_no_other() {
    let rule = "says = 'Barbara'\namong = ['Ada', 'Grace']";
    check(
        rule,
        &[
            "Barbara",
            "barbara.",
            "**Barbara**",
            "\"Barbara\"",
            "The user with the most orders is Barbara.",
            "```\nBarbara\n```",
            "Barbara (3 orders)",
        ],
        &[
            "Ada",
            "Barbara and Ada",
            "Ada, Grace, Barbara",
            "Barbara or someone else",
            "It is not Barbara",
            "Barbarella",
            "Anna-Barbara",
            "",
            "I could not find out, maybe Barbara",
        ],
    );
    let long = format!("Barbara {}", "word ".repeat(41));
    assert_ne!(problems(rule, &long), 0);
    check(
        "says = ['lamp', 180]",
        &["lamp 180.00", "lamp: 180", "Lamp, with $180.00", "`lamp` 180"],
        &["lamp", "180", "lamp 18", "180 lamp 181", "soap 180", "lamp 180 or 62"],
    );
    check("says = [3, 5]", &["3 5", "3, 5", "3 and 5"], &["5 3", "3", "3 5 7"]);
    check(
        "says = 'b.txt'",
        &["b.txt", "The largest is b.txt."],
        &["ab.txt", "data/b.txt", "b.txt2"],
    );
    check("says = '1.12.0'", &["1.12.0", "v is 1.12.0."], &["1.12.01", "11.12.0", "1.12.0-rc1"]);
    check("says = 'no'", &["no", "No."], &["yes", "none", "unknown"]);
}

#[test]
fn a_list_may_have_any_notation() {
    let rule = "list = ['b', 'a', 'c d']";
    check(
        rule,
        &[
            "b, a, c d",
            "b\na\nc d",
            "- b\n- a\n- c d",
            "1. b\n2. a\n3. c d",
            "[\"b\", \"a\", \"c d\"]",
            "```json\n[\"b\",\"a\",\"c d\"]\n```",
            "`b`, `a`, `c d`",
            "b; a; c d",
            "b, a and c d",
            "b, a, and c d.",
            "The items are: b, a, c d",
            "Here they are:\n- b\n- a\n- c d",
        ],
        &["a, b, c d", "b, a", "b, a, c d, e", "b a c d", "b, a, a, c d", "", "b, a, cd"],
    );
    check("set = ['b', 'a']", &["a, b", "b a", "b\na"], &["a", "a, b, b", "a, c"]);
    check(
        "list = [2, 3.5]",
        &["2, 3.50", "[2, 3.5]", "2 3.5", "2\n3.5"],
        &["3.5, 2", "2", "2, 35"],
    );
    check("list = ['one']", &["one", "- one", "[\"one\"]"], &["", "one, two", "none"]);
    check("list = []", &["", "none", "[]", "None."], &["one", "0"]);
    check("set = ['10:30', 'a: b']", &["10:30, a: b"], &["10, 30, a, b"]);
}

#[test]
fn a_table_is_compared_by_its_cells() {
    let rule = "csv = [['name', 'n'], ['Smith, J', 12.5], ['x', '007']]";
    check(
        rule,
        &[
            "name,n\n\"Smith, J\",12.50\nx,007\n",
            "\"name\",\"n\"\r\n\"Smith, J\",\"12.5\"\r\n\"x\",\"007\"\r\n",
        ],
        &[
            "name,n\nSmith, J,12.50\nx,007",
            "name,n\n\"Smith, J\",12.50\nx,7",
            "n,name\n12.5,\"Smith, J\"\n007,x",
            "name,n\n\"Smith, J\",12.50",
            "name,n\n\"Smith, J\",12.50\nx,007\nx,007",
            "name,n\n\"Smith, J\",12.5 EUR\nx,007",
        ],
    );
}

#[test]
fn json_is_compared_by_value_and_type() {
    check(
        "json = { '/a/0' = 1, '/b' = 'x' }",
        &["{\"a\":[1.0],\"b\":\"x\",\"c\":0}"],
        &["{\"a\":[2],\"b\":\"x\"}", "{\"a\":[\"1\"],\"b\":\"x\"}"],
    );
    check(
        "json = { '' = [1, { a = true }] }",
        &[
            "[1,{\"a\":true}]",
            "```json\n[1, {\"a\": true}]\n```",
            "The document:\n```\n[1, {\"a\": true}]\n```",
        ],
        &["[1]", "[1,{\"a\":1}]", "[1,{\"a\":true,\"b\":1}]", "It is [1,{\"a\":true}]"],
    );
    check("json = { '' = [1, 2] }", &["[1,2]"], &["[2,1]", "1, 2", "[1,2,3]"]);
    check("json = { '/x' = 0.33 }\nwithin = 0.005", &["{\"x\":0.3333}"], &["{\"x\":0.34}"]);
    check(
        "document = '{\"a\": null, \"b\": []}'",
        &["{\"b\":[],\"a\":null}"],
        &["{\"b\":[]}", "{\"a\":0,\"b\":[]}", "{\"a\":null,\"b\":[],\"c\":1}"],
    );
}

#[test]
fn every_problem_is_reported() {
    assert_eq!(problems("contains = ['a', 'b']\nnumber = 1\njson = { '/x' = 1 }", "c"), 4);
    let rule: Rule = toml::from_str("absent = true").unwrap();
    assert!(rule.problems("it", None).is_empty());
    assert_eq!(rule.problems("the file `a`", Some("x")), ["the file `a` exists, but should not"]);
    let rule: Rule = toml::from_str("equals = 'x'").unwrap();
    assert_eq!(rule.problems("the file `a`", None), ["the file `a` does not exist"]);
    assert_eq!(rule.problems("it", Some("y")), ["it is \"y\", expected \"x\""]);
}

#[test]
fn invalid_rules_are_rejected() {
    for rule in [
        "equal = 'x'",
        "matches = '('",
        "json = { '/a' = 2024-01-01 }",
        "contains = 3",
        "number = 'x'",
        "list = 'a'",
        "says = true",
        "document = '{'",
    ] {
        assert!(toml::from_str::<Rule>(rule).is_err(), "{rule}");
    }
    assert!(toml::from_str::<Rule>("within = 1").unwrap().is_empty());
    assert!(toml::from_str::<Rule>("among = 'x'").unwrap().is_empty());
}
