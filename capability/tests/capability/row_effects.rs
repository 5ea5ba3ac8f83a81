//! Tests the declared effects of all host functions. A new function must be added here, because the
//! resumption and replay of runs depend on its effect.

use wattle_capability::ALL;
use wattle_rt::CallEffect;

/// Functions that reach outside the run or wait, but are computed again in a replay. They have no
/// effects of their own.
const COMPUTED: &[&str] = &[
    "json.query",
    "json.query/3",
    "html.text",
    "html.links",
    "html.select",
    "str.match",
    "str.group",
    "str.find_all",
    "str.find_all/3",
    "str.replace_re",
    "par.map",
    "par.apply",
    "par.call",
    "par.run",
    "workbook.run",
    // An artifact is a part of the outcome, which the run records.
    "sys.artifact",
];

/// All functions with effects, grouped by effect.
const EFFECTS: &[(CallEffect, &str)] = &[
    (
        CallEffect::Reads,
        "sys.time sys.sleep date.now help.about skill.read kv.get kv.list memory.search memory.list http.get \
         http.get/2 http.get_all fs.read fs.lines fs.list fs.glob fs.stat vfs.read search.query web.fetch \
         web.search",
    ),
    (
        CallEffect::Repeatable,
        "kv.set kv.del kv.incr kv.cas memory.add memory.remove ai.assist ai.embed \
         ai.classify ai.extract",
    ),
    (
        CallEffect::Once,
        "http.post http.request tool.call issue.file wattle.run git.commit_push publish.run",
    ),
    (CallEffect::Writes, "fs.write fs.mkdir vfs.write agent.delegate"),
    (CallEffect::Changes, "fs.append fs.remove fs.move shell.run shell.result image.make"),
];

fn expected(name: &str) -> CallEffect {
    let listed = EFFECTS.iter().find(|(_, names)| names.split(' ').any(|listed| listed == name));
    listed.map_or(CallEffect::None, |(effect, _)| *effect)
}

#[test]
fn every_function_that_reaches_out_declares_its_effect() {
    let functions: Vec<_> = ALL.iter().flat_map(|one| one.functions).collect();
    for function in &functions {
        assert_eq!(
            function.effect,
            expected(function.name),
            "{}: `#[effect(…)]`, and this table",
            function.name
        );
        if (function.signature.reaches_out() || function.waits)
            && !COMPUTED.contains(&function.name)
        {
            assert_ne!(
                function.effect,
                CallEffect::None,
                "{} reaches out, or waits",
                function.name
            );
        }
        // A synchronous function returns immediately, so nothing can be recorded before its effect.
        assert!(
            function.waits || matches!(function.effect, CallEffect::None | CallEffect::Reads),
            "{}",
            function.name
        );
    }
    for name in
        EFFECTS.iter().flat_map(|(_, names)| names.split(' ')).chain(COMPUTED.iter().copied())
    {
        assert!(functions.iter().any(|function| function.name == name), "no function {name}");
    }
}

/// A call to an overload is parsed with the signature of the overloaded function, so the two
/// signatures must be compatible.
#[test]
fn an_overload_extends_a_function() {
    let functions: Vec<_> = ALL.iter().flat_map(|one| one.functions).collect();
    let mut count = 0;
    for overload in functions.iter().filter(|function| function.name.contains('/')) {
        let (name, suffix) = overload.name.split_once('/').unwrap();
        let named = functions.iter().find(|function| function.name == name);
        let named = named.unwrap_or_else(|| panic!("{} overloads nothing", overload.name));
        let (short, long) = (named.signature, overload.signature);
        assert_eq!(long.fallible(), short.fallible(), "{}", overload.name);
        if suffix.parse() == Ok(long.params.len()) {
            assert_eq!(long.results, short.results, "{}", overload.name);
            assert_eq!(long.params.get(..short.params.len()), Some(short.params));
            assert!(long.takes(short.params.len()) && !short.takes(long.params.len()));
        } else {
            // The suffix is the type of the result. The last parameter has this type too, if the
            // parameters differ.
            let result = long.results[0].ty;
            assert_eq!(suffix, result.val().wat(), "{}", overload.name);
            assert_eq!(long.params.len(), short.params.len(), "{}", overload.name);
            if long.params != short.params {
                assert_eq!(long.params.last().unwrap().ty, result, "{}", overload.name);
            }
        }
        count += 1;
    }
    assert_eq!(count, 8);
}
