//! Tests of commands that read an untrusted folder in which devices, FIFOs and links replace files.
//! No command may hang, exhaust the memory, or access files outside the folder.

use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use crate::place::Place;

/// A line of a trace.
const STEP: &str = "{\"run_id\":\"one\",\"step\":1,\"tool\":\"wat\",\"exit_code\":0}\n";

/// Replaces a file with a link to an endless device, or with a FIFO that nobody writes to.
fn replace(path: &Path, with_device: bool) {
    drop(std::fs::remove_file(path));
    if with_device {
        symlink("/dev/zero", path).unwrap();
    } else {
        assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
    }
}

#[test]
fn an_evaluation_reads_only_regular_files_of_limited_size() {
    let place = Place::new();
    place.write("tasks/one.toml", "prompt = \"x\"\nexpect.answer.equals = \"1\"\n");
    let reports = |args: &[&str], code: i32, words: &[&str]| {
        let evals = ["eval", "tasks"].iter().chain(args);
        place.wattle(evals.copied()).run().code(code).reports(words);
    };
    let settings = place.work().join("tasks/eval.toml");
    for with_device in [true, false] {
        replace(&settings, with_device);
        reports(&["--check"], 3, &["eval.toml", "it is not a regular file"]);
    }
    std::fs::remove_file(settings).unwrap();

    let results = place.work().join("results.jsonl");
    for with_device in [true, false] {
        replace(&results, with_device);
        reports(&["--against", "results.jsonl"], 2, &["it is not a regular file"]);
    }
    std::fs::remove_file(&results).unwrap();
    std::fs::File::create(&results).unwrap().set_len(1 << 40).unwrap();
    reports(&["--against", "results.jsonl"], 2, &["results.jsonl", "it is larger than"]);
}

#[test]
fn a_recording_is_read_only_from_a_regular_file_of_limited_size() {
    let place = Place::new();
    let recording = place.work().join("turns.jsonl");
    let model = ["--base-url", "http://127.0.0.1:9/v1", "--model", "m"];
    let reports = |option: &str, words: &[&str]| {
        let args = ["run", option, "turns.jsonl", "hello"];
        place.wattle(args.iter().chain(&model)).run().code(3).reports(words);
    };
    let refused = ["failed to open the recording", "turns.jsonl", "it is not a regular file"];
    for with_device in [true, false] {
        replace(&recording, with_device);
        reports("--cassette", &refused);
    }
    reports("--record", &refused);
    // A recording may be read through a link, but not written through one.
    replace(&recording, true);
    reports("--record", &["failed to open the recording", "it is a link"]);
    std::fs::remove_file(&recording).unwrap();
    reports("--cassette", &["failed to open the recording", "it does not exist"]);
    std::fs::File::create(&recording).unwrap().set_len(1 << 40).unwrap();
    for option in ["--cassette", "--record"] {
        reports(option, &["failed to open the recording", "it is larger than"]);
    }
}

#[test]
fn a_digest_reads_tickets_only_from_a_regular_file() {
    let place = Place::new();
    place.write("_steps.jsonl", STEP);
    for with_device in [true, false] {
        replace(&place.work().join("_issues.jsonl"), with_device);
        let digest = place.wattle(["trace", "digest"]).run().code(0).stdout;
        assert!(digest.contains("wat 1×"), "{digest}");
    }
}

#[test]
fn the_programs_of_a_folder_are_formatted_only_in_it() {
    let program = ";;; name = \"a\"\n;;; description = \"d\"\n(out   \"x\")\n";
    let (place, outside) = (Place::new(), Place::new());
    let original = outside.write("a.wat", program);
    place.write("tools/a.wat", program);
    symlink(&original, place.work().join("tools/link.wat")).unwrap();
    replace(&place.work().join("tools/fifo.wat"), false);
    let words = ["`tools/fifo.wat` is left out", "`tools/link.wat` is left out"];
    place.wattle(["catalog", "fmt", "tools"]).run().code(0).reports(&words);
    assert_eq!(outside.read("a.wat"), program);
    assert_ne!(place.read("tools/a.wat"), program);
}
