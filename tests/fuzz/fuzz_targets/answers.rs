//! Reads arbitrary bytes, split into pieces, as the response from a model's endpoint, in the
//! chat-completions protocol and in the messages protocol. Checks that nothing panics, that memory
//! use is proportional to the input, that the result does not depend on how the bytes are split,
//! and that an unterminated answer is not accepted as complete.

#![no_main]

use libfuzzer_sys::fuzz_target;
use wattle_agent::host::machine::AnswerPart;
use wattle_agent::model::{BadReply, ModelReply, ReplyReader};

/// Reads a body in pieces of `piece` bytes and returns the result.
fn read(
    mut reader: ReplyReader,
    body: &[u8],
    piece: usize,
) -> (Result<ModelReply, BadReply>, String) {
    let mut shown = String::new();
    let mut show = |part: AnswerPart<'_>| {
        if let AnswerPart::Text(text) = part {
            shown.push_str(text);
        }
    };
    for piece in body.chunks(piece) {
        if reader.is_done() {
            break;
        }
        if let Err(why) = reader.push(piece, &mut show) {
            return (Err(why), shown);
        }
    }
    let reply = reader.finish(&mut show);
    (reply, shown)
}

/// Returns true if the bytes contain a marker that ends a stream, or could be a JSON document.
fn has_end(body: &[u8], marks: &[&str]) -> bool {
    let text = String::from_utf8_lossy(body);
    let bare = text.trim_start_matches(|c: char| {
        c.is_ascii_whitespace() || c == '\u{feff}' || c == '\u{fffd}'
    });
    bare.starts_with(['{', '['])
        || marks.iter().any(|mark| text.contains(mark))
        || text.contains("\\u")
}

fuzz_target!(|bytes: &[u8]| {
    let Some((first, body)) = bytes.split_first() else { return };
    let piece = usize::from(*first).max(1);
    for (reader, marks) in [
        (ReplyReader::chat_completions as fn() -> ReplyReader, &["[DONE]", "finish_reason"][..]),
        (ReplyReader::messages, &["message_stop", "message"]),
    ] {
        let (whole, all_shown) = read(reader(), body, body.len().max(1));
        let (pieces, _) = read(reader(), body, piece);
        assert_eq!(
            whole.is_ok(),
            pieces.is_ok(),
            "the result depends on the pieces: {whole:?} {pieces:?}"
        );
        let Ok(reply) = whole else { continue };
        assert!(has_end(body, marks), "an answer without an end was accepted: {reply:?}");
        assert_eq!(all_shown, reply.text, "the streamed text differs from the reply");
        assert!(reply.calls.len() <= 256, "{} calls", reply.calls.len());
        let arguments: usize =
            reply.calls.iter().map(|call| call.name.len() + call.arguments.len()).sum();
        let size = reply.text.len() + arguments + reply.reasoning.map_or(0, |text| text.len());
        assert!(size <= 8 * body.len(), "the reply is too large for its answer");
    }
});
