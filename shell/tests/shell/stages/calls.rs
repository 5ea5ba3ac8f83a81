//! Tests of the host functions of WASI preview 1, called by a guest.

use std::sync::Arc;

use wattle_capability::files::{EntryKind, Files, OVERLAY_LIMIT};
use wattle_shell::{CommandOutcome, Errno, Status, Stream};

use super::guest::{GuestResult, Script};

const READ: u64 = 1 << 1;
const WRITE: u64 = 1 << 6;
const CREATE: u64 = 1;
const FOLDER: u64 = 2;
const EXCLUSIVE: u64 = 4;
const TRUNCATE: u64 = 8;
const APPEND: u64 = 1;

fn files() -> Arc<Files> {
    let files = Files::overlay(None, OVERLAY_LIMIT);
    files.write("/a/b.txt", b"hello").unwrap();
    files.write("/c.txt", b"0123456789").unwrap();
    Arc::new(files)
}

fn fails(result: &GuestResult, errnos: &[Option<Errno>]) {
    let expected: Vec<u32> =
        errnos.iter().map(|errno| errno.map_or(0, |errno| errno.number().into())).collect();
    assert_eq!(result.answers, expected, "{result:?}");
    assert_eq!(result.outcome, CommandOutcome::Exited(Status(0)));
}

fn word(result: &GuestResult, at: usize) -> u32 {
    u32::from_le_bytes(result.image[at..at + 4].try_into().unwrap())
}

fn long(result: &GuestResult, at: usize) -> u64 {
    u64::from_le_bytes(result.image[at..at + 8].try_into().unwrap())
}

#[tokio::test]
async fn files_are_opened_as_in_posix() {
    let files = files();
    let cases: [(&str, u64, u64, Option<Errno>); 16] = [
        ("c.txt", 0, READ, None),
        ("/c.txt", 0, READ, None),
        ("c.txt", EXCLUSIVE | CREATE, WRITE, Some(Errno::EXIST)),
        ("c.txt", FOLDER, READ, Some(Errno::NOTDIR)),
        ("c.txt/", 0, READ, Some(Errno::NOTDIR)),
        ("c.txt/x", 0, READ, Some(Errno::NOTDIR)),
        ("a", 0, READ, None),
        ("a", FOLDER, READ, None),
        ("a", 0, WRITE, Some(Errno::ISDIR)),
        ("a", CREATE | EXCLUSIVE, READ, Some(Errno::EXIST)),
        ("new", 0, READ, Some(Errno::NOENT)),
        ("none/new", CREATE, WRITE, Some(Errno::NOENT)),
        ("new/", CREATE, WRITE, Some(Errno::ISDIR)),
        ("../c.txt", 0, READ, Some(Errno::ACCES)),
        ("a/../../c.txt", CREATE, WRITE, Some(Errno::ACCES)),
        ("new", CREATE | EXCLUSIVE, WRITE, None),
    ];
    let mut script = Script::new();
    for (path, how, rights, _) in cases {
        script.open(path, how, rights, 0);
    }
    let result = script.run(&files).await;
    fails(&result, &cases.map(|(.., errno)| errno));
    assert_eq!(files.read("new").unwrap(), "");
    assert_eq!(files.read("c.txt").unwrap(), "0123456789");
}

#[tokio::test]
async fn writes_are_visible_at_once_and_at_their_offset() {
    let files = files();
    let mut script = Script::new();
    script.open("c.txt", 0, READ | WRITE, 0);
    script.write(4, b"ab");
    script.read(4, 100, 3);
    script.call("fd_seek", &[4, -2i64 as u64, 2, 16]);
    script.write(4, b"XYZ");
    script.open("c.txt", 0, WRITE, APPEND);
    script.write(5, b"end");
    script.call("fd_tell", &[5, 24]);
    script.open("c.txt", TRUNCATE, WRITE, 0);
    script.call("fd_seek", &[6, 3, 0, 32]);
    script.write(6, b"gap");
    script.call("fd_filestat_set_size", &[6, 5]);
    script.call("fd_seek", &[6, -9i64 as u64, 1, 32]);
    script.read(6, 200, 3);
    script.write(4, b"");
    let result = script.run(&files).await;
    let mut errnos = [None; 15];
    errnos[12] = Some(Errno::INVAL);
    errnos[13] = Some(Errno::BADF);
    fails(&result, &errnos);
    assert_eq!(&result.image[100..103], b"234");
    assert_eq!(long(&result, 16), 8);
    assert_eq!(long(&result, 24), 14);
    assert_eq!(files.read("c.txt").unwrap(), "\0\0\0ga".as_bytes());
}

#[tokio::test]
async fn a_file_that_moves_while_it_is_open_is_followed() {
    let files = files();
    let mut script = Script::new();
    script.open("c.txt", 0, WRITE, APPEND);
    let (old, new) = (script.text(b"c.txt"), script.text(b"a/moved"));
    script.call("path_rename", &[3, old.0, old.1, 3, new.0, new.1]);
    script.write(4, b"!");
    script.call("path_unlink_file", &[3, new.0, new.1]);
    script.write(4, b"gone");
    script.open("a/moved", CREATE, WRITE, 0);
    script.write(4, b"gone");
    script.write(5, b"new");
    let result = script.run(&files).await;
    fails(&result, &[None; 8]);
    assert_eq!(files.read("a/moved").unwrap(), "new");
    assert!(files.stat("c.txt").is_err());
}

#[tokio::test]
async fn entries_are_created_moved_and_removed_as_in_posix() {
    let files = files();
    let mut script = Script::new();
    let name = |script: &mut Script, name: &str| script.text(name.as_bytes());
    let (a, file, new, deep) = (
        name(&mut script, "a"),
        name(&mut script, "c.txt"),
        name(&mut script, "new"),
        name(&mut script, "x/y"),
    );
    let mut expected = Vec::new();
    let mut case = |function: &str, operands: &[u64], errno: Option<Errno>| {
        script.call(function, operands);
        expected.push(errno);
    };
    case("path_create_directory", &[3, a.0, a.1], Some(Errno::EXIST));
    case("path_create_directory", &[3, file.0, file.1], Some(Errno::EXIST));
    case("path_create_directory", &[3, deep.0, deep.1], Some(Errno::NOENT));
    case("path_create_directory", &[3, new.0, new.1], None);
    case("path_remove_directory", &[3, a.0, a.1], Some(Errno::NOTEMPTY));
    case("path_remove_directory", &[3, file.0, file.1], Some(Errno::NOTDIR));
    case("path_unlink_file", &[3, a.0, a.1], Some(Errno::ISDIR));
    case("path_unlink_file", &[3, deep.0, deep.1], Some(Errno::NOENT));
    case("path_rename", &[3, file.0, file.1, 3, deep.0, deep.1], Some(Errno::NOENT));
    case("path_rename", &[3, deep.0, deep.1, 3, file.0, file.1], Some(Errno::NOENT));
    case("path_rename", &[3, a.0, a.1, 3, new.0, new.1], None);
    case("path_remove_directory", &[3, a.0, a.1], Some(Errno::NOENT));
    case("path_link", &[3, 0, file.0, file.1, 3, a.0, a.1], Some(Errno::NOTSUP));
    case("path_unlink_file", &[3, file.0, file.1], None);
    let result = script.run(&files).await;
    fails(&result, &expected);
    assert_eq!(files.read("new/b.txt").unwrap(), "hello");
    assert!(files.stat("c.txt").is_err());
}

#[tokio::test]
async fn links_resolve_from_the_root_of_the_run() {
    let files = files();
    let mut script = Script::new();
    let link = script.text(b"a/link");
    for target in ["/c.txt", "b.txt"] {
        let target = script.text(target.as_bytes());
        script.call("path_symlink", &[target.0, target.1, 3, link.0, link.1]);
    }
    let (out, up) = (script.text(b"../../../etc/passwd"), script.text(b"up"));
    script.call("path_symlink", &[out.0, out.1, 3, up.0, up.1]);
    script.call("path_readlink", &[3, link.0, link.1, 100, 50, 20]);
    script.call("path_readlink", &[3, link.0, link.1, 200, 3, 24]);
    script.open("a/link", 0, READ, 0);
    script.read(4, 300, 4);
    script.call("path_filestat_get", &[3, 0, link.0, link.1, 400]);
    script.call("path_filestat_get", &[3, 1, link.0, link.1, 500]);
    script.call("path_open", &[3, 0, link.0, link.1, 0, READ, 0, 0, 16]);
    let result = script.run(&files).await;
    let mut errnos = [None; 10];
    for (at, errno) in [(1, Errno::EXIST), (2, Errno::ACCES), (9, Errno::LOOP)] {
        errnos[at] = Some(errno);
    }
    fails(&result, &errnos);
    assert_eq!(&result.image[100..100 + word(&result, 20) as usize], b"../c.txt");
    assert_eq!((&result.image[200..203], word(&result, 24)), (&b"../"[..], 3));
    assert_eq!(&result.image[300..304], b"0123");
    assert_eq!((result.image[416], result.image[516]), (7, 4));
    assert_eq!(files.stat_link("a/link").unwrap().kind, EntryKind::Link);
}

#[tokio::test]
async fn folders_are_read_in_parts() {
    let files = files();
    for index in 0..20 {
        files.write(&format!("many/{index:02}"), b"x").unwrap();
    }
    let mut script = Script::new();
    script.open("many", FOLDER, READ, 0);
    // The first entry has 25 bytes and the others have 26, so three entries and a part of the
    // fourth fit in the buffer.
    script.call("fd_readdir", &[4, 1024, 100, 0, 8]);
    script.call("fd_readdir", &[4, 2048, 4000, 3, 12]);
    script.call("fd_readdir", &[4, 8192, 100, 22, 16]);
    script.call("fd_readdir", &[4, 8192, 100, u64::MAX, 20]);
    script.call("fd_readdir", &[4, u64::from(u32::MAX), 100, 0, 20]);
    let result = script.run(&files).await;
    fails(&result, &[None, None, None, None, None, Some(Errno::FAULT)]);
    assert_eq!(word(&result, 8), 100);
    assert_eq!((&result.image[1048..1049], &result.image[1073..1075]), (&b"."[..], &b".."[..]));
    assert_eq!(word(&result, 12), 26 * 19);
    assert_eq!(&result.image[2048 + 24..2048 + 26], b"01");
    assert_eq!((word(&result, 16), word(&result, 20)), (0, 0));
}

#[tokio::test]
async fn devices_behave_like_those_of_linux() {
    let files = files();
    let mut script = Script::new();
    script.fds = vec![(63, Stream::bytes("substituted"))];
    for path in [
        "dev/null",
        "dev/zero",
        "dev/full",
        "dev/fd/63",
        "dev/stderr",
        "dev/nonsense",
        "a/../dev/urandom",
    ] {
        script.open(path, CREATE | TRUNCATE, READ | WRITE, 0);
    }
    script.write(4, b"gone");
    script.read(5, 100, 8);
    script.write(6, b"x");
    script.read(7, 200, 50);
    script.write(8, b"told\n");
    script.write(9, b"gone");
    script.read(10, 300, 64);
    let (null, dev) = (script.text(b"dev/null"), script.text(b"dev/full"));
    script.call("path_unlink_file", &[3, null.0, null.1]);
    script.call("path_filestat_get", &[3, 1, dev.0, dev.1, 400]);
    let result = script.run(&files).await;
    let mut errnos = [None; 16];
    errnos[9] = Some(Errno::NOSPC);
    errnos[14] = Some(Errno::PERM);
    fails(&result, &errnos);
    assert_eq!(&result.image[200..211], b"substituted");
    assert_ne!(&result.image[300..364], &[0; 64]);
    assert_eq!(result.image[416], 4);
    assert_eq!(result.stderr, "told\n");
    assert_eq!(files.list("/").unwrap().len(), 2, "no device became a file");
}

#[tokio::test]
async fn a_folder_dev_of_the_run_takes_precedence_over_unknown_devices() {
    let files = files();
    files.write("dev/notes", b"mine").unwrap();
    let mut script = Script::new();
    script.open("dev/notes", 0, READ, 0);
    script.read(4, 0, 4);
    script.open("dev/more", CREATE, WRITE, 0);
    script.open("dev/null", CREATE, WRITE, 0);
    script.write(6, b"gone");
    let result = script.run(&files).await;
    fails(&result, &[None; 5]);
    assert_eq!(files.list("dev").unwrap().len(), 2);
}

#[tokio::test]
async fn a_guest_sees_its_arguments_variables_and_descriptors() {
    let mut script = Script::new();
    script.call("args_sizes_get", &[240, 244]);
    script.call("args_get", &[16, 64]);
    script.call("environ_sizes_get", &[248, 252]);
    script.call("environ_get", &[32, 128]);
    script.call("fd_prestat_get", &[3, 200]);
    script.call("fd_prestat_dir_name", &[3, 208, 1]);
    script.call("fd_prestat_get", &[4, 200]);
    script.call("fd_fdstat_get", &[1, 300]);
    script.call("fd_fdstat_get", &[99, 300]);
    script.open("c.txt", 0, READ, 0);
    script.open("a/b.txt", 0, READ, 0);
    script.call("fd_renumber", &[5, 4]);
    script.call("fd_close", &[5]);
    script.read(4, 400, 9);
    script.call("fd_renumber", &[4, 9]);
    let result = script.run(&files()).await;
    let bad = Some(Errno::BADF);
    fails(
        &result,
        &[None, None, None, None, None, None, bad, None, bad, None, None, None, bad, None, bad],
    );
    assert_eq!((word(&result, 240), word(&result, 244)), (2, 10));
    assert_eq!(&result.image[64..74], b"guest\0one\0");
    assert_eq!((word(&result, 16), word(&result, 20)), (64, 70));
    assert_eq!((word(&result, 248), word(&result, 252)), (2, 10));
    assert_eq!(&result.image[128..138], b"A=b\0PWD=/\0");
    assert_eq!((result.image[200], word(&result, 204), result.image[208]), (0, 1, b'/'));
    assert_eq!(result.image[300], 0, "a capture is not a terminal");
    assert_eq!(&result.image[400..405], b"hello");
}

#[tokio::test]
async fn modification_times_are_stored() {
    let files = files();
    let mut script = Script::new();
    let file = script.text(b"c.txt");
    script.call("path_filestat_set_times", &[3, 1, file.0, file.1, 0, 1_000_000_000, 4]);
    script.call("path_filestat_get", &[3, 1, file.0, file.1, 0]);
    script.call("path_filestat_set_times", &[3, 1, file.0, file.1, 0, 0, 12]);
    let result = script.run(&files).await;
    fails(&result, &[None, None, Some(Errno::INVAL)]);
    assert_eq!(long(&result, 48), 1_000_000_000);
    assert_eq!(long(&result, 32), 10);
}

#[tokio::test]
async fn a_poll_ends_with_the_first_event() {
    let (reader, writer) = Stream::pipe();
    let (reader_end, writer_end) = Stream::pipe();
    let mut script = Script::new();
    script.fds = vec![(5, reader), (6, writer_end)];
    script.open("dev/fd/5", 0, READ, 0);
    script.open("dev/fd/6", 0, WRITE, 0);
    let mut clock = vec![0; 48];
    clock[0] = 1;
    clock[24..32].copy_from_slice(&20_000_000u64.to_le_bytes());
    let mut read = vec![0; 48];
    read[0] = 2;
    read[8] = 1;
    read[16] = 4;
    let (both, _) = script.text(&[clock.clone(), read.clone()].concat());
    script.call("poll_oneoff", &[both, 1024, 2, 40]);
    script.write(5, b"waited");
    script.call("poll_oneoff", &[both + 48, 2048, 1, 44]);
    script.call("poll_oneoff", &[both, 2048, 0, 8]);
    script.call("poll_oneoff", &[both, 2048, 1 << 20, 8]);
    let files = files();
    let (result, ()) = tokio::join!(script.run(&files), async {
        assert_eq!(reader_end.read(9).await.unwrap(), "waited");
        writer.write(b"now").await.unwrap();
    });
    fails(&result, &[None, None, None, None, None, Some(Errno::INVAL), Some(Errno::INVAL)]);
    assert_eq!((word(&result, 40), result.image[1024]), (1, 1), "the clock event is first");
    assert_eq!(
        (word(&result, 44), result.image[2048], long(&result, 2064)),
        (1, 2, 3),
        "then the pipe"
    );
}

#[tokio::test]
async fn a_guest_starts_commands_through_the_shell() {
    let mut script = Script::new();
    let (argv, env) = (script.text(b"ls\0-l\0"), script.text(b"X=y\0Z=\0"));
    script.call("spawn", &[argv.0, argv.1, env.0, env.1, 3, 250]);
    script.call("spawn", &[argv.0, 0, env.0, env.1, 3, 0]);
    script.call("spawn", &[u64::from(u32::MAX), 50, 0, 0, 0, 0]);
    let result = script.run(&files()).await;
    assert_eq!(result.outcome, CommandOutcome::Exited(Status(0)));
    let output =
        [result.answers.iter().flat_map(|word| word.to_le_bytes()).collect(), result.image]
            .concat();
    let output = String::from_utf8_lossy(&output);
    let words = r#"["ls", "-l"] [("X", "y"), ("Z", "")] / Some(250ms) b"""#;
    assert!(output.contains(&format!("{words}\n\u{7}\0\0\0~\0\0\0~\0\0\0")), "{output:?}");
}

#[tokio::test]
async fn a_refusal_is_not_reported_if_the_command_succeeds() {
    let mut script = Script::new();
    script.open("../x", 0, READ, 0);
    script.open("../y", CREATE, WRITE, 0);
    let result = script.run(&files()).await;
    fails(&result, &[Some(Errno::ACCES); 2]);
    assert_eq!(result.stderr, "", "the command succeeded");
}
