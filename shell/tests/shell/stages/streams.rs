//! Tests of the streams behind descriptors.

use std::io::SeekFrom;
use std::sync::Arc;

use wattle_capability::files::{Files, OVERLAY_LIMIT};
use wattle_shell::{Errno, OpenMode, Stream, StreamKind};

fn files() -> Arc<Files> {
    Arc::new(Files::overlay(None, OVERLAY_LIMIT))
}

/// Reads a stream to its end.
async fn rest(stream: &Stream) -> Vec<u8> {
    let mut all = Vec::new();
    loop {
        let piece = stream.read(1 << 16).await.unwrap();
        if piece.is_empty() {
            return all;
        }
        all.extend_from_slice(&piece);
    }
}

#[tokio::test]
async fn a_pipe_carries_more_than_its_capacity() {
    let (reader, writer) = Stream::pipe();
    let data: Vec<u8> = (0..3_000_000u32).map(|n| n as u8).collect();
    let sent = data.clone();
    let send = tokio::spawn(async move {
        for piece in sent.chunks(70_001) {
            writer.write(piece).await.unwrap();
        }
    });
    assert!(rest(&reader).await == data);
    send.await.unwrap();
}

#[tokio::test]
async fn a_pipe_is_open_until_its_last_writer_is_gone() {
    let (reader, writer) = Stream::pipe();
    let second = writer.clone();
    drop(writer);
    second.write(b"a").await.unwrap();
    drop(second);
    assert_eq!(rest(&reader).await, b"a");
    assert_eq!(reader.write(b"x").await, Err(Errno::BADF));
    assert_eq!(reader.seek(SeekFrom::Start(0)), Err(Errno::SPIPE));
}

#[tokio::test]
async fn a_pipe_without_a_reader_is_broken() {
    let (reader, writer) = Stream::pipe();
    let full = tokio::spawn({
        let writer = writer.clone();
        async move { writer.write(&vec![0; 1 << 20]).await }
    });
    tokio::task::yield_now().await;
    drop(reader);
    assert_eq!(full.await.unwrap(), Err(Errno::PIPE));
    assert_eq!(writer.write(b"x").await, Err(Errno::PIPE));
}

#[tokio::test]
async fn short_writes_of_several_writers_are_not_interleaved() {
    let (reader, writer) = Stream::pipe();
    let tasks: Vec<_> = (0..4u8)
        .map(|task| {
            let writer = writer.clone();
            tokio::spawn(async move {
                for _ in 0..100 {
                    writer.write(&[task; 4096]).await.unwrap();
                }
            })
        })
        .collect();
    drop(writer);
    let all = rest(&reader).await;
    assert_eq!(all.len(), 4 * 100 * 4096);
    assert!(all.chunks(4096).all(|piece| piece.iter().all(|byte| *byte == piece[0])));
    for task in tasks {
        task.await.unwrap();
    }
}

#[tokio::test]
async fn a_capture_fails_at_its_limit_or_retains_both_ends() {
    let (stream, captured) = Stream::capture(8);
    stream.write(b"01234567").await.unwrap();
    assert!(!captured.overflowed());
    assert_eq!(stream.write(b"8").await, Err(Errno::PIPE));
    assert!(captured.overflowed());
    assert_eq!(captured.take(), b"01234567");

    let (stream, captured) = Stream::capture_ends(8);
    for piece in ["0", "12345", "678", "9"] {
        stream.write(piece.as_bytes()).await.unwrap();
    }
    assert_eq!(captured.ends(), (b"0123".to_vec(), 2, b"6789".to_vec()));
    assert_eq!((captured.total(), captured.take()), (10, b"01236789".to_vec()));
}

#[tokio::test]
async fn clones_share_their_position_in_a_file() {
    for through in [false, true] {
        let dir = tempfile::tempdir().unwrap();
        let base = Files::open_base(dir.path()).unwrap();
        let files = Arc::new(if through {
            Files::write_through(base)
        } else {
            Files::overlay(Some(base), OVERLAY_LIMIT)
        });
        let output = Stream::open(&files, "/out", OpenMode::WRITE).await.unwrap();
        output.write(b"one ").await.unwrap();
        output.clone().write(b"two").await.unwrap();
        assert_eq!(files.read("out").unwrap(), "one two", "writes are visible at once");
        let input = Stream::open(&files, "/out", OpenMode::READ).await.unwrap();
        assert_eq!(input.clone().read(4).await.unwrap(), "one ");
        assert_eq!(input.read(9).await.unwrap(), "two");
        output.write(b"!").await.unwrap();
        assert_eq!(input.read(9).await.unwrap(), "!", "a reader sees what is added");
        assert_eq!(input.seek(SeekFrom::End(-2)), Ok(6));
        assert_eq!(input.read(9).await.unwrap(), "o!");
        assert_eq!(input.write(b"x").await, Err(Errno::BADF));
        assert_eq!(output.read(1).await, Err(Errno::BADF));
        let both = Stream::open(&files, "/out", OpenMode::READ_WRITE).await.unwrap();
        both.write(b"ONE").await.unwrap();
        assert_eq!(both.read(4).await.unwrap(), " two");
        assert_eq!(both.kind(), StreamKind::File);
        let more = Stream::open(&files, "/out", OpenMode::APPEND).await.unwrap();
        more.seek(SeekFrom::Start(0)).unwrap();
        more.write(b"?").await.unwrap();
        assert_eq!(files.read("out").unwrap(), "ONE two!?");
        let refused = Stream::open(&files, "/out", OpenMode::CREATE_NEW).await.unwrap_err();
        assert_eq!(refused.errno, Errno::EXIST);
    }
}

#[tokio::test]
async fn refusals_keep_their_message() {
    let files = files();
    for (path, how, words) in [
        (
            "/../x",
            OpenMode::READ,
            "/../x is outside the run's folder; only files in it can be read",
        ),
        (
            "/x/../../y",
            OpenMode::WRITE,
            "/x/../../y is outside the run's folder; only files in it can be written",
        ),
        (
            "/_steps.jsonl",
            OpenMode::APPEND,
            "write blocked: `_steps.jsonl` is the run's trace, which only the host writes",
        ),
        ("/none", OpenMode::READ, "No such file or directory"),
        ("/none/x", OpenMode::WRITE, "No such file or directory"),
        ("/", OpenMode::WRITE, "Is a directory"),
    ] {
        assert_eq!(Stream::open(&files, path, how).await.unwrap_err().to_string(), words, "{path}");
    }
}

#[tokio::test]
async fn many_small_writes_are_not_slow() {
    let files = files();
    let output = Stream::open(&files, "/out", OpenMode::READ_WRITE).await.unwrap();
    // Each write would copy the whole file if a reader held its contents.
    for _ in 0..20_000 {
        output.write(&[b'x'; 1000]).await.unwrap();
    }
    assert_eq!(files.stat("out").unwrap().size, 20_000_000);
}

#[tokio::test]
async fn streams_read_and_write_outside_the_run() {
    let (mut far, near) = tokio::io::duplex(16);
    let (reader, writer) = tokio::io::split(near);
    let (input, output) = (Stream::reader(reader), Stream::writer(writer));
    tokio::io::AsyncWriteExt::write_all(&mut far, b"hello").await.unwrap();
    assert_eq!(input.read(2).await.unwrap(), "he");
    assert_eq!(input.read(9).await.unwrap(), "llo");
    output.write(b"back").await.unwrap();
    let mut back = [0; 4];
    tokio::io::AsyncReadExt::read_exact(&mut far, &mut back).await.unwrap();
    assert_eq!(&back, b"back");
    drop(far);
    assert_eq!(input.read(9).await.unwrap(), "");
    assert_eq!(output.write(b"x").await, Err(Errno::PIPE));
}
