//! Tests of selecting the programs that an agent may call.

use wattle_catalog::{Catalog, Entry, Origin, ToolRef};

fn catalog() -> Catalog {
    let program = |text: &str| Entry::parse(text, Origin::BuiltIn("test.wat")).unwrap();
    Catalog::default().with([
        program(
            ";;; name = \"find\"\n;;; description = \"Find\"\n;;; args = [\n;;;   { name = \
             \"where\", type_hint = \"path\", description = \"w\" },\n;;;   { name = \"what\", \
             description = \"t\" },\n;;;   { name = \"max\", type_hint = \"int\", description = \
             \"m\", default = 5 },\n;;; ]\n(ret (arg 0))\n",
        ),
        program(";;; name = \"text.count\"\n;;; description = \"Count\"\n(ret \"1\")\n"),
        program(";;; name = \"text_trim\"\n;;; description = \"Trim\"\n(ret \"2\")\n"),
    ])
}

fn tools(text: &str) -> Vec<ToolRef> {
    #[derive(serde::Deserialize)]
    struct File {
        tools: Vec<ToolRef>,
    }
    toml::from_str::<File>(text).unwrap().tools
}

fn names(catalog: &Catalog) -> Vec<&str> {
    catalog.iter().map(|entry| entry.name().as_str()).collect()
}

#[test]
fn a_prefix_selects_programs_whichever_separator_their_names_have() {
    for (text, expected) in [
        ("tools = [\"text.*\"]", vec!["text.count", "text_trim"]),
        ("tools = [\"text_*\"]", vec!["text.count", "text_trim"]),
        ("tools = [\"*\"]", vec!["find", "text.count", "text_trim"]),
        ("tools = []", vec![]),
        ("tools = [\"find\", \"find*\"]", vec!["find"]),
    ] {
        assert_eq!(names(&catalog().select(&tools(text)).unwrap()), expected, "{text}");
    }
}

#[test]
fn a_context_fills_parameters_that_callers_do_not_see() {
    let selected = catalog()
        .select(&tools(
            "tools = [{ id = \"find\", alias = \"find_rule\", description = \"Find a rule\", \
             context = { where = \"rules\", max = \"3\", tone = \"dry\" } }]",
        ))
        .unwrap();
    assert_eq!(names(&selected), ["find_rule"]);
    let entry = selected.get("find_rule").unwrap();
    assert_eq!(entry.usage(), "find_rule(what: string)");
    assert_eq!(entry.meta().description, "Find a rule");
    assert_eq!(entry.arguments(&["x".to_owned()]).unwrap(), ["rules", "x", "3"]);
    assert_eq!(entry.context()["tone"], "dry");
    assert!(entry.arguments(&["x".to_owned(), "y".to_owned()]).is_err());
}

#[test]
fn invalid_references_are_refused() {
    for (text, message) in [
        ("tools = [\"fnd\"]", "there is no program `fnd`; did you mean `find`?"),
        ("tools = [\"zebra\"]", "there is no program `zebra`"),
        ("tools = [\"zebra*\"]", "no program's name matches `zebra*`"),
        (
            "tools = [{ id = \"text.*\", alias = \"t\" }]",
            "`text.*` stands for several programs, which cannot share an alias",
        ),
        (
            "tools = [{ id = \"find\", alias = \"No good\" }]",
            "the alias \"No good\" is not a program's name",
        ),
        (
            "tools = [\"find\", { id = \"text_trim\", alias = \"find\" }]",
            "two tools have the name `find`",
        ),
        (
            "tools = [{ id = \"find\", context = { max = \"many\" } }]",
            "the context of `find` sets `max`: expected an int, found \"many\"",
        ),
        (
            "tools = [{ id = \"text.*\", schema = {} }]",
            "`text.*` stands for several programs, which cannot share a schema",
        ),
        (
            "tools = [{ id = \"find\", schema = { properties = { limit = {} } } }]",
            "the schema of `find`: `limit` is no parameter that a caller sets; there are `where`, \
             `what`, `max`",
        ),
        (
            "tools = [{ id = \"find\", context = { max = 3 }, \
             schema = { properties = { max = {} } } }]",
            "the schema of `find`: `max` is no parameter that a caller sets; there are `where`, \
             `what`",
        ),
        (
            "tools = [{ id = \"find\", schema = { properties = { max = { default = 9 } } } }]",
            "the schema of `find`: `max` has a `default`, which the program sets; give the value \
             in `context`",
        ),
        (
            "tools = [{ id = \"find\", schema = { type = \"string\" } }]",
            "the schema of `find`: its `type` is not `object`; it describes all arguments",
        ),
    ] {
        assert_eq!(catalog().select(&tools(text)).unwrap_err().to_string(), message, "{text}");
    }
}

#[test]
fn arguments_are_validated_against_the_schema_of_the_agent() {
    let selected = catalog()
        .select(&tools(
            "[[tools]]\nid = \"find\"\n[tools.schema]\nrequired = [\"max\"]\n\
             [tools.schema.properties.where]\nenum = [\"a\", \"b\"]\n\
             [tools.schema.properties.what]\ntype = \"array\"\nitems = { type = \"integer\" }\n\
             description = \"the numbers\"\n\
             [tools.schema.properties.max]\nmaximum = 10",
        ))
        .unwrap();
    let entry = selected.get("find").unwrap();
    assert_eq!(entry.meta().args[0].format.as_deref(), Some("\"a\" | \"b\""));
    assert_eq!(entry.meta().args[1].description, "the numbers");
    for (given, expected) in [
        (["a", "[1, 2]", "10"].as_slice(), Ok(())),
        (&["a", "[1, 2]", "11"], Err("at /max: 11 is greater than the maximum of 10")),
        (&["c", "[1]", "1"], Err("at /where: \"c\" is not one of \"a\" or \"b\"")),
        (&["a", "[1, \"x\"]", "1"], Err("at /what/1: \"x\" is not of type \"integer\"")),
        (&["a", "one", "1"], Err("at /what: \"one\" is not of type \"array\"")),
        // The schema applies to the arguments that the caller gave, not to the program's defaults.
        (&["a", "[1]"], Err("\"max\" is a required property")),
        (&["a", "[1]", ""], Err("\"max\" is a required property")),
        // The types of the parameters are still checked.
        (&["a", "[1]", "many"], Err("optional arg `max` not an int")),
        (&["a"], Err("required arg `what` missing or not a string")),
    ] {
        let given: Vec<String> = given.iter().map(|&text| text.to_owned()).collect();
        match (entry.arguments(&given), expected) {
            (Ok(_), Ok(())) => {}
            (Err(error), Err(words)) => {
                assert!(error.to_string().contains(words), "{given:?}: {error}");
                assert!(
                    error.hint().contains("find(where: \"a\" | \"b\", what: string"),
                    "{}",
                    error.hint()
                );
            }
            (found, _) => panic!("{given:?}: {found:?}"),
        }
    }
}

#[test]
fn values_of_a_context_keep_their_spelling() {
    let selected = catalog()
        .select(&tools(
            "tools = [{ id = \"text_trim\", context = { a = 1.0, b = 2, c = true, d = \"1.50\", \
             e = 1e300 } }]",
        ))
        .unwrap();
    let context = selected.get("text_trim").unwrap().context();
    let values: Vec<&str> = context.values().map(String::as_str).collect();
    assert_eq!(values, ["1.0", "2", "true", "1.50", "1e300"]);
}
