//! Tests of the in-place growth of strings by `append`.

use crate::world::World;

async fn texts(program: &str) -> Vec<String> {
    let outcome = World::new().run(program, &[]).await.unwrap_or_else(|e| panic!("{e}\n{program}"));
    assert!(outcome.success(), "{program}: {:?} {:?}", outcome.exit, outcome.failure);
    outcome.texts()
}

/// Tests that `append` does not copy the string each time. The copies would need a thousand times
/// as much memory.
#[tokio::test]
async fn many_appends_need_little_memory() {
    for program in [
        r#"(let $s "") (for $i 0 200000 (append $s "0123456789")) (out (len $s))"#,
        r#"(fn $all ($n) (let $s "") (for $i 0 $n (append $s "{}" "0123456789")) $s)
           (out (len ($all 200000)))"#,
        r#"(let $log "") (fn $say ($x) (append $log "{}{}" $x "56789"))
           (for $i 0 200000 ($say "01234")) (out (len $log))"#,
        r#"(let $s "") (for $i 0 200000 (append $s "0123456789") (when (= $s "x") (out $s)))
           (out (len $s))"#,
    ] {
        assert_eq!(texts(program).await, ["2000000"], "{program}");
    }
}

#[tokio::test]
async fn a_string_that_was_kept_does_not_change() {
    for (program, expected) in [
        (r#"(append $s "b") (let $t $s) (append $s "c") (out $t)"#, "ab"),
        (r#"(append $s "b") (let $t "") (set $t $s) (append $s "c") (out $t)"#, "ab"),
        (r#"(append $s "b") (let $t (fmt "{}" $s)) (append $s "c") (out $t)"#, "ab"),
        (r#"(append $s "b") (let $t (if 1 $s "x")) (append $s "c") (out $t)"#, "ab"),
        (r#"(append $s "b") (let $t (do $s)) (append $s "c") (out $t)"#, "ab"),
        (r#"(append $s "b") (let $t (cond (1 $s) (else "x"))) (append $s "c") (out $t)"#, "ab"),
        (r#"(append $s "b") (let $t (default (kv.get "x") $s)) (append $s "c") (out $t)"#, "ab"),
        (r#"(append $s "b") (catch $t $e ($keep $s)) (append $s "c") (out $t)"#, "ab"),
        (r#"(append $s "b") (let $t ($keep $s)) (append $s "c") (out $t)"#, "ab"),
        (r#"(append $s "b") (let $t ($take $s)) (out $s)"#, "ab"),
        (r#"(append $s "b") (let $a (arr $s)) (append $s "c") (out (at $a 0))"#, "ab"),
        (
            r#"(let $m (map)) (append $s "b") (put $m "k" $s) (append $s "c") (out (at $m "k"))"#,
            "ab",
        ),
        (r#"(append $s "b") (append $s "{}{}" $s $s) (out $s)"#, "ababab"),
        (r#"(append $s "b") (append $s "{}" $s) (append $s "{}" $s) (out $s)"#, "abababab"),
        (r#"(append $s "b") (out (fmt "{}{}" $s ($more "c")))"#, "abc"),
        (r#"(append $s "b") (out (str.cat $s (do (append $s "c") "d")))"#, "abd"),
        (r#"(append $s "b") (out (if (= $s (do (append $s "c") "ab")) "same" "no"))"#, "same"),
        (r#"(for $i 0 3 (let $s "") (append $s "{}" $i)) (out $s)"#, "2"),
        (
            r#"(append $s "b") (let $t $s) (set $s "x") (append $s "y") (out (fmt "{}{}" $t $s))"#,
            "abxy",
        ),
        (
            r#"(append $s "b") (let $t $s) (append $t "1") (append $s "2") (out (fmt "{}{}" $t $s))"#,
            "ab1ab2",
        ),
        (
            r#"(let $t $s) (for $i 0 40 (append $s "x")) (set $t $s) (append $s "y") (out (len $t))"#,
            "41",
        ),
        (r#"(append $s "b") (match $s r"(a)" ($g) (append $s $g)) (out $s)"#, "aba"),
        (
            r#"(append $s "b") (let $t $s) (for $i 0 9 (append $s "{}" $i) (set $t $s)) (append $s "!") (out $t)"#,
            "ab012345678",
        ),
    ] {
        let functions = r#"(fn $keep ($x) $x) (fn $take ($x) (append $x "z") $x)
            (fn $more ($x) (append $shared "{}" $x) $x)
            (let $shared "") "#;
        let program = format!("{functions} (let $s \"a\") {program}");
        assert_eq!(texts(&program).await, [expected], "{program}");
    }
}

#[tokio::test]
async fn a_variable_of_the_program_keeps_its_text_while_a_function_appends() {
    for (program, expected) in [
        (r#"(append $s "b") (out (fmt "{}{}" $s ($add "c")))"#, &["abc", "abc"][..]),
        (r#"($add "b") (let $t $s) ($add "c") (out $t)"#, &["ab", "abc"]),
        (r#"($add "b") (append $s "{}" ($add "c")) (out $s)"#, &["abcc", "abcc"]),
        (r#"(out (str.cat $s ($add "c")))"#, &["ac", "ac"]),
    ] {
        let program =
            format!("(let $s \"a\") (fn $add ($x) (append $s \"{{}}\" $x) $x) {program} (out $s)");
        assert_eq!(texts(&program).await, expected, "{program}");
    }
}

/// Tests that only a string returned by `append` grows in place, even if the program sets the flag
/// `in_place` for another string.
#[tokio::test]
async fn a_literal_never_changes() {
    let program = r#"(let $s "abc") (let $t (str.append $s "X" 1)) (out $s) (out $t)
        (let $u (str.append $t "Y" 0)) (out $t) (out $u) (out "abc")"#;
    assert_eq!(texts(program).await, ["abc", "abcX", "abcX", "abcXY", "abc"]);
}

#[tokio::test]
async fn an_append_to_no_string_fails() {
    let outcome = World::new().run("(out (str.append 7 \"x\" 1))", &[]).await;
    let failed = outcome.unwrap().failure.unwrap();
    assert_eq!(failed.failure.code, wattle_rt::Code::EBOUND);
    assert!(failed.failure.reason.contains("7 is not the address of a string"));
}
