//! Tests that arithmetic stays correct if run-time checks are omitted because the bounds of the
//! operands are known before the run.

use wattle_rt::Exit;

use crate::world::World;

#[tokio::test]
async fn sums_and_products_within_known_bounds_are_exact() {
    for (program, expected) in [
        ("(let $a (bytes 1)) (put $a 0 255) (out (+ (at $a 0) (at $a 0) 1))", "511"),
        ("(let $a (bytes 1)) (put $a 0 255) (out (* (at $a 0) (- 0 (at $a 0))))", "-65025"),
        ("(let $n 0) (for $i 0 3 (+= $n (* $i 1000000))) (out $n)", "3000000"),
        ("(let $n 0) (for $i 9 -1 -1 (+= $n (* $i $i))) (out $n)", "285"),
        ("(let $n 0) (for $i -3 4 3 (+= $n (* $i 100))) (out $n)", "0"),
        ("(let $n 0) (for $i 0 3 (set $i (+ $i 1)) (+= $n $i)) (out $n)", "4"),
        ("(for $i 0 2 (let $i 2000000000) (out (- $i 1)))", "1999999999"),
        ("(for $i 0 2 (set $i 2147483647) (out $i))", "2147483647"),
        ("(out (+ (= 1 1) (< 1 2) (if (> 1 2) 7 8)))", "10"),
        ("(let $a (ints [5 6 7])) (let $i 1) (out (- (at $a (+ $i 1)) (at $a (- $i 1))))", "2"),
    ] {
        let outcome = World::new().run(program, &[]).await;
        let outcome = outcome.unwrap_or_else(|why| panic!("{why}\n{program}"));
        assert_eq!(outcome.texts(), [expected], "{program}: {:?}", outcome.exit);
    }
}

#[tokio::test]
async fn what_does_not_fit_ends_the_program() {
    for (program, words) in [
        ("(for $i 2147483000 2147483001 (out (+ $i 1000)))", "2147483000 + 1000"),
        ("(for $i 0 2 (for $j 0 70000 (out (* 70000 $j))))", "70000 * "),
        ("(for $i 0 2 (set $i 2147483647) (out (+ $i 1)))", "2147483647 + 1"),
        ("(for $i 0 2 (catch $i $e (str.to_int \"2147483647\")) (out (+ $i 1)))", "2147483647 + 1"),
        ("(fn $f () (set $i 2147483647)) (for $i 0 2 ($f) (out (+ $i 1)))", "2147483647 + 1"),
        ("(let $a (ints 3)) (let $i 2147483647) (out (at $a (+ $i 1)))", "$a"),
        ("(let $a (ints 3)) (let $i -2147483647) (out (at $a (- $i 2)))", "$a"),
        ("(let $a (bytes 3)) (let $i -1073741825) (put $a (- $i 1073741824) 1)", "$a"),
        ("(let $a (ints 3)) (let $i 0) (out (at $a (- $i 1)))", "$a"),
    ] {
        let outcome = World::new().run(program, &[]).await;
        let outcome = outcome.unwrap_or_else(|why| panic!("{why}\n{program}"));
        let Exit::Trapped(trap) = &outcome.exit else {
            panic!("{program}: {:?} {:?}", outcome.exit, outcome.texts())
        };
        assert!(trap.message.contains(words), "{program}: {trap}");
    }
}
