//! Tests of numbers of all sizes, at every position where a script can contain a number. No number
//! crashes the shell or exhausts its memory or time.

use std::sync::Arc;
use std::time::Duration;

use wattle_capability::files::{Files, OVERLAY_LIMIT};
use wattle_shell::{Bounds, NoCommands, Output, Shell};

const NUMBERS: &[&str] = &[
    "0",
    "1",
    "-1",
    "07",
    "08",
    "0x",
    "0x10",
    "255",
    "256",
    "65535",
    "65536",
    "70000",
    "1048576",
    "1048577",
    "2147483647",
    "2147483648",
    "-2147483648",
    "4294967296",
    "9223372036854775807",
    "-9223372036854775808",
    "9223372036854775808",
    "18446744073709551616",
    "99999999999999999999999999",
    "64#_",
    "37#z",
    "1e400",
    "1.5",
    "",
];

/// Scripts to run. Each `N` is replaced with a number.
const SCRIPTS: &[&str] = &[
    "printf '%Nd' 1 > /o",
    "printf '%.Nd' 1 > /o",
    "printf '%.Nf' 1.5 > /o",
    "printf '%.Ne' 1.5 > /o",
    "printf '%.Ng' 1.5 > /o",
    "printf '%#.Ng' 1e300 > /o",
    "printf '%0Nf' -1.5 > /o",
    "printf '%N.Ns' ab > /o",
    "printf '%*.*f' N N 1.5 > /o",
    "printf '%-*d' N 1 > /o",
    "printf '%d %u %x %o %c %e' N N N N N N > /o",
    "printf '%Nq' a > /o",
    "printf -v x '%Ns' a",
    "printf '\\Nx\\xN\\uN\\UN' > /o",
    "echo -e '\\0N\\xN\\uN\\UN' > /o",
    "echo $'\\N\\xN\\uN\\UN' > /o",
    "echo {N..3}",
    "echo {1..N}",
    "echo {1..9..N}",
    "echo {N..N}",
    "echo {0N..1}",
    "x=abc; echo \"${x:N}\" \"${x:N:N}\" \"${x: -N}\"",
    "set -- a b; echo \"${@:N:N}\" \"${N}\"",
    "a=(1 2 3); echo \"${a[N]}\" \"${a[@]:N:N}\"",
    "a[N]=1",
    "echo $((N + N)) $((N * N)) $((N << N)) $((N >> N)) $((N ** N))",
    "echo $((N / -1)) $((N % -1)) $((-N)) $((~N)) $((N / N))",
    "x=N; (( x++ )); (( x-- )); (( x <<= 63 )); (( x /= -1 )); echo $x",
    "let 'x = N ? N : N'",
    "for (( i = N; i < N; i++ )); do break; done",
    "[ N -eq N ]; [[ N -lt N ]]; test -t N",
    "shift N",
    "break N",
    "while :; do break N; done",
    "while :; do continue N; break; done",
    "f() { return N; }; f",
    "(exit N)",
    "kill -N 1",
    "kill %N",
    "wait N",
    "read -n N x <<< abc",
    "read -N N x <<< abc",
    "read -t N x <<< abc",
    "read -u N x",
    "mapfile -n N -s N -O N x <<< abc",
    "echo N> /o",
    "echo >&N",
    "exec N> /o",
    "exec {x}<&N",
    "pushd +N",
    "popd -N",
    "dirs +N",
    "getopts ab: o -N",
    "OPTIND=N; getopts ab: o -a",
    "umask N",
    "ulimit -n N",
    "trap : N",
    "declare -i x=N; x+=N",
    "HISTSIZE=N LINENO=N RANDOM=N SECONDS=N; echo $RANDOM",
    "sleep 0 N & kill $!",
];

async fn run(script: &str) -> Output {
    let files = Arc::new(Files::overlay(None, OVERLAY_LIMIT));
    let bounds =
        Bounds { variables: 1 << 20, substitution: 1 << 20, words: 5_000, ..Bounds::default() };
    Shell::new(Arc::new(NoCommands), bounds)
        .capture(&files, script, "", Some(Duration::from_millis(500)))
        .await
}

#[tokio::test]
async fn no_number_crashes_the_shell() {
    for script in SCRIPTS {
        for number in NUMBERS {
            let script = script.replace('N', number);
            let output = tokio::time::timeout(Duration::from_secs(20), run(&script)).await;
            let output = output.unwrap_or_else(|_| panic!("the script does not end: {script}"));
            let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(!stderr.contains("bug in the host"), "{script}: {stderr}");
        }
    }
}

#[tokio::test]
async fn printf_converts_numbers_like_bash_and_warns_about_those_that_do_not_fit() {
    // A warning does not change the status.
    for (words, expected, warnings, status) in [
        ("%d 9223372036854775807", "9223372036854775807", 0, 0),
        ("%d 9223372036854775808", "9223372036854775807", 1, 0),
        ("%d -9223372036854775808", "-9223372036854775808", 0, 0),
        ("%d -99999999999999999999", "-9223372036854775808", 1, 0),
        ("%u 18446744073709551615", "18446744073709551615", 0, 0),
        ("%u 18446744073709551616", "18446744073709551615", 1, 0),
        ("%u -99999999999999999999", "18446744073709551615", 1, 0),
        ("%u -1", "18446744073709551615", 0, 0),
        ("%x 0xffffffffffffffff", "ffffffffffffffff", 0, 0),
        ("%x -1", "ffffffffffffffff", 0, 0),
        ("%o 0777", "777", 0, 0),
        ("%d 08", "0", 0, 1),
        ("%d 12abc", "12", 0, 1),
        ("%d -017x", "-15", 0, 1),
        ("%d 0x1g", "1", 0, 1),
        ("%d 0x", "0", 0, 1),
        ("%d 1#2", "1", 0, 1),
        ("%d -", "0", 0, 1),
    ] {
        let output = run(&format!("printf {words}")).await;
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.stdout, expected.as_bytes(), "{words}: {stderr}");
        assert_eq!(output.status.0, status, "{words}: {stderr}");
        assert_eq!(stderr.matches("does not fit into 64 bits").count(), warnings, "{words}");
    }
}

#[tokio::test]
async fn wide_fields_are_exact_and_wider_ones_are_refused() {
    let stdout = |output: Output| String::from_utf8(output.stdout).unwrap();
    let wide = stdout(run("printf '%.70000f' 0.5").await);
    assert_eq!((wide.len(), wide.trim_end_matches('0')), (70_002, "0.5"));
    let padded = stdout(run("printf '%070000d' -7").await);
    assert_eq!((padded.len(), padded.trim_start_matches(['-', '0'])), (70_000, "7"));
    let range = stdout(run("x=$(printf '%070000d' 8); eval \"echo {$x..9}\"").await);
    assert!(range.len() > 130_000 && range.ends_with("9\n"), "{} bytes", range.len());
    let refused = run("printf '%2000000d' 1").await;
    assert_eq!(refused.status.0, 1);
    assert!(String::from_utf8_lossy(&refused.stderr).contains("wider than 1048576 characters"));
    let many = run(&format!("printf '{}' > /o", "%1000000s".repeat(500))).await;
    assert_ne!(many.status.0, 0, "a text beyond the bound is refused");
}

#[tokio::test]
async fn a_seed_repeats_the_numbers_of_its_shell_and_of_no_other() {
    const THREE: &str = "echo $RANDOM $RANDOM $RANDOM";
    let numbers = async |script: &str| String::from_utf8(run(script).await.stdout).unwrap();
    let seeded = numbers(&format!("RANDOM=7; {THREE}")).await;
    assert_eq!(numbers(&format!("RANDOM=7; {THREE}; RANDOM=7; {THREE}")).await, seeded.repeat(2));
    assert_eq!(numbers("RANDOM=7").await, "");
    assert_ne!(numbers(THREE).await, seeded, "another shell was seeded");
    assert_ne!(numbers(&format!("RANDOM=7; ({THREE})")).await, seeded, "a subshell repeats them");
}
