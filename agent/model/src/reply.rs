//! Parsing of a response body: byte chunks with arbitrary boundaries are assembled into a complete
//! message.

use std::fmt;

use wattle_machine::AnswerPart;

use super::ModelReply;
use super::chat::ChatBuilder;
use super::endpoint::Quirks;
use super::frames::Frames;
use super::messages::MessagesBuilder;
use super::protocol::{Protocol, ReplyBuilder, ReplyFault, admit_size};

/// A parser of a model's response body. It does no I/O: the caller pushes the bytes.
///
/// A message is complete once the provider has marked its end. The end is marked by a
/// `finish_reason` or `[DONE]` in a stream of chat completions, by `message_stop` in a stream of
/// the messages protocol, and by the closing brace of a JSON document that contains a complete
/// message. Any other body counts as truncated and never becomes a reply.
///
/// ```
/// use wattle_model::ReplyReader;
///
/// use wattle_machine::AnswerPart;
///
/// let mut shown = String::new();
/// let mut show = |part: AnswerPart<'_>| {
///     if let AnswerPart::Text(text) = part {
///         shown += text;
///     }
/// };
/// let mut reader = ReplyReader::chat_completions();
/// let piece = b"data: {\"choices\":[{\"delta\":{\"content\":\"four\"}}]}\n\n";
/// reader.push(piece, &mut show)?;
/// assert!(reader.finish(&mut |_| {}).unwrap_err().broke_off());
/// assert_eq!(shown, "four");
/// # Ok::<(), wattle_model::BadReply>(())
/// ```
pub struct ReplyReader {
    builder: Box<dyn ReplyBuilder>,
    frames: Frames,
}

/// An invalid response body.
#[derive(Debug, PartialEq, Eq)]
pub struct BadReply(pub(super) ReplyFault);

impl BadReply {
    /// Returns true if the end of the message is missing.
    pub fn broke_off(&self) -> bool {
        self.0 == ReplyFault::BrokeOff
    }
}

impl fmt::Display for BadReply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            ReplyFault::Reported { message, .. } => {
                write!(f, "the provider reported an error: {message}")
            }
            ReplyFault::NotJson(why) => write!(f, "it is not JSON: {why}"),
            ReplyFault::Excessive(what) => write!(f, "{what}"),
            ReplyFault::BrokeOff => f.write_str("it broke off before its end"),
            ReplyFault::Nothing => f.write_str("it contains no message"),
        }
    }
}

impl std::error::Error for BadReply {}

impl ReplyReader {
    /// Creates a reader for the chat-completions protocol, streamed or not.
    pub fn chat_completions() -> Self {
        Self::of(&Quirks::default())
    }

    /// Creates a reader for the messages protocol, streamed or not.
    pub fn messages() -> Self {
        Self::of(&Quirks { protocol: Protocol::Messages, ..Quirks::default() })
    }

    pub(super) fn of(quirks: &Quirks) -> Self {
        let builder: Box<dyn ReplyBuilder> = match quirks.protocol {
            Protocol::Chat => Box::new(ChatBuilder::new(quirks.reasoning_fields.clone())),
            Protocol::Messages => Box::<MessagesBuilder>::default(),
        };
        Self { builder, frames: Frames::default() }
    }

    /// Parses the next bytes and passes the parts of the message that they contain to `show`.
    ///
    /// # Errors
    /// If the provider reports an error, or sends data that is not part of a message or exceeds a
    /// limit.
    pub fn push(
        &mut self,
        piece: &[u8],
        show: &mut dyn FnMut(AnswerPart<'_>),
    ) -> Result<(), BadReply> {
        for frame in self.frames.push(piece).map_err(BadReply)? {
            if self.is_done() {
                break;
            }
            self.take(&frame, show).map_err(BadReply)?;
        }
        Ok(())
    }

    /// Returns true if the provider marked the end of the stream.
    pub fn is_done(&self) -> bool {
        self.builder.is_done()
    }

    /// Returns true if the message is complete, so that no more data is needed.
    pub fn is_whole(&self) -> bool {
        self.builder.is_whole()
    }

    /// Ends the body and returns the message. Passes the remaining parts to `show`.
    ///
    /// # Errors
    /// The same as for [`ReplyReader::push`]. Also fails if there is no message, or if its end is
    /// missing.
    pub fn finish(mut self, show: &mut dyn FnMut(AnswerPart<'_>)) -> Result<ModelReply, BadReply> {
        let is_stream = self.frames.is_stream();
        let frames = std::mem::take(&mut self.frames);
        if !self.is_done()
            && let Some(frame) = frames.finish()
        {
            let taken = self.take(&frame, show);
            // A stream that breaks off after the end of the message still contains the complete
            // message.
            if !(is_stream && self.is_whole()) {
                taken.map_err(BadReply)?;
            }
        }
        let is_whole = if is_stream { self.is_whole() } else { self.builder.is_whole_document() };
        match self.builder.into_reply() {
            Some(reply) if is_whole => Ok(reply),
            Some(_) => Err(BadReply(ReplyFault::BrokeOff)),
            None => Err(BadReply(ReplyFault::Nothing)),
        }
    }

    fn take(
        &mut self,
        frame: &str,
        show: &mut dyn FnMut(AnswerPart<'_>),
    ) -> Result<(), ReplyFault> {
        let before = self.builder.partial();
        let (text, reasoning) = (before.text.len(), before.reasoning.len());
        let calls: Vec<usize> = before.calls.iter().map(|(_, call)| call.arguments.len()).collect();
        self.builder.absorb(frame)?;
        let now = self.builder.partial();
        admit_size(now.size())?;
        let new = |whole: &'_ str, shown: usize| whole.len() > shown;
        if new(&now.reasoning, reasoning) {
            show(AnswerPart::Reasoning(now.reasoning.get(reasoning..).unwrap_or_default()));
        }
        if new(&now.text, text) {
            show(AnswerPart::Text(now.text.get(text..).unwrap_or_default()));
        }
        for (index, (_, call)) in now.calls.iter().enumerate() {
            let shown = calls.get(index).copied();
            if shown.is_none_or(|shown| call.arguments.len() > shown) {
                let arguments = call.arguments.get(shown.unwrap_or(0)..).unwrap_or_default();
                show(AnswerPart::Call { index, name: &call.name, arguments });
            }
        }
        Ok(())
    }
}

impl fmt::Debug for ReplyReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReplyReader").field("is_whole", &self.is_whole()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::panic, reason = "tests may panic")]

    use super::*;

    fn read(mut reader: ReplyReader, body: &[u8], piece: usize) -> Result<ModelReply, BadReply> {
        for piece in body.chunks(piece) {
            reader.push(piece, &mut |_| {})?;
        }
        reader.finish(&mut |_| {})
    }

    const CHAT: &[&str] = &[
        "data: {\"choices\":[{\"delta\":{\"content\":\"ToolCall::Response(\"}}]}\n\n",
        "data: {\"choices\":[{\"delta\":{\"content\":\"\\\"hi\\\")\"}}]}\n\n",
        "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n",
    ];

    const MESSAGES: &[&str] = &[
        "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{}}\n\n",
        "data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\
         \"text\":\"\"}}\n\n",
        "data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"\
         text\":\"hi\"}}\n\n",
        "data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"}}\n\n",
        "data: {\"type\":\"message_stop\"}\n\n",
    ];

    /// Truncates the body after each byte. Only the complete body is a reply.
    #[test]
    fn a_truncated_answer_is_never_a_reply() {
        for (frames, reader) in [
            (CHAT, ReplyReader::chat_completions as fn() -> ReplyReader),
            (MESSAGES, ReplyReader::messages),
        ] {
            let body = frames.concat();
            let last = frames.last().copied().unwrap_or_default();
            let end = body.len() - 2;
            for at in 0..body.len() {
                let found = read(reader(), body.get(..at).unwrap_or_default().as_bytes(), 7);
                assert_eq!(
                    found.is_ok(),
                    at >= end,
                    "cut at {at} of {}: {found:?}\n{last}",
                    body.len()
                );
            }
        }
        let json = "{\"choices\":[{\"message\":{\"content\":\"hi\"}}]}";
        for at in 0..json.len() {
            assert!(
                read(
                    ReplyReader::chat_completions(),
                    json.get(..at).unwrap_or_default().as_bytes(),
                    5
                )
                .is_err()
            );
        }
        assert!(read(ReplyReader::chat_completions(), json.as_bytes(), 5).is_ok());
    }

    #[test]
    fn only_the_protocol_marks_the_end_of_a_message() {
        let half = CHAT.first().copied().unwrap_or_default();
        for (end, is_whole) in [
            ("", false),
            ("data: {\"choices\":[],\"usage\":{\"prompt_tokens\":1}}\n\n", false),
            ("data: {\"choices\":[{\"delta\":{},\"finish_reason\":null}]}\n\n", false),
            ("data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"\"}]}\n\n", false),
            (
                "data: {\"choices\":[{\"index\":1,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n",
                false,
            ),
            ("data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"error\"}]}\n\n", false),
            ("event: done\n\n: [DONE]\n\n", false),
            ("data: [DONE]\n\n", true),
            ("data: [DONE]", true),
            ("data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"tool_calls\"}]}", true),
        ] {
            let found =
                read(ReplyReader::chat_completions(), format!("{half}{end}").as_bytes(), 11);
            assert_eq!(found.is_ok(), is_whole, "{end:?}: {found:?}");
        }
        let without_stop = MESSAGES.iter().take(4).copied().collect::<String>();
        assert!(
            read(ReplyReader::messages(), without_stop.as_bytes(), 11)
                .is_err_and(|why| why.broke_off())
        );
    }

    #[test]
    fn parts_and_calls_without_end_are_refused() {
        let calls = |count: usize| {
            let call = |at: usize| {
                format!("{{\"index\":{at},\"function\":{{\"name\":\"f\",\"arguments\":\"{{}}\"}}}}")
            };
            let calls: Vec<String> = (0..count).map(call).collect();
            format!("{{\"choices\":[{{\"message\":{{\"tool_calls\":[{}]}}}}]}}", calls.join(","))
        };
        assert!(read(ReplyReader::chat_completions(), calls(256).as_bytes(), 4096).is_ok());
        let why = read(ReplyReader::chat_completions(), calls(20_000).as_bytes(), 4096);
        assert!(why.as_ref().is_err_and(|why| why.to_string().contains("256")), "{why:?}");
        for start in ["{\"choices\":[", "data: [", "data: ", ": "] {
            let mut body = start.as_bytes().to_vec();
            body.resize(5 << 20, b'0');
            let why = read(ReplyReader::chat_completions(), &body, 8192);
            assert!(
                why.as_ref().is_err_and(|why| why.to_string().contains("larger than the limit")),
                "{start}: {why:?}"
            );
        }
        let lines = "data: 0\n".repeat(1 << 20);
        assert!(read(ReplyReader::chat_completions(), lines.as_bytes(), 8192).is_err());
    }

    /// Each line of JSON is a piece of the message, and the body may be cut off after any line.
    #[test]
    fn json_without_a_complete_message_is_no_reply() {
        let piece = "{\"choices\":[{\"delta\":{\"content\":\"rm \"}}]}\n";
        let usage = "{\"choices\":[],\"usage\":{\"prompt_tokens\":1}}\n";
        let end = "{\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n";
        let text = "{\"choices\":[{\"text\":\"whole\"}]}";
        for (body, is_whole) in [
            (piece.to_owned(), false),
            (piece.repeat(3), false),
            (format!("{piece}{usage}"), false),
            (format!("[{}]", piece.trim()), false),
            (format!("{piece}{end}"), true),
            (format!("{piece}[DONE]\n"), true),
            (text.to_owned(), true),
        ] {
            let found = read(ReplyReader::chat_completions(), body.as_bytes(), 11);
            assert_eq!(found.is_ok(), is_whole, "{body:?}: {found:?}");
            assert!(is_whole || found.is_err_and(|why| why.broke_off()), "{body:?}");
        }
        let start = "{\"type\":\"message_start\",\"message\":{\"content\":[{\"type\":\"text\",\
                     \"text\":\"half\"}]}}";
        assert!(
            read(ReplyReader::messages(), start.as_bytes(), 11).is_err_and(|why| why.broke_off())
        );
    }

    #[test]
    fn a_message_beyond_its_maximum_size_is_refused() {
        let text = "a".repeat(1 << 20);
        let delta = |field: &str| format!("data: {{\"choices\":[{{\"delta\":{{{field}}}}}]}}\n\n");
        let content = delta(&format!("\"content\":\"{text}\""));
        let reasoning = delta(&format!("\"reasoning\":\"{text}\""));
        let function = format!("{{\"name\":\"f\",\"arguments\":\"{text}\"}}");
        let call = delta(&format!("\"tool_calls\":[{{\"index\":0,\"function\":{function}}}]"));
        let end = "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";
        let within = format!("{content}{reasoning}{end}");
        assert!(read(ReplyReader::chat_completions(), within.as_bytes(), 8192).is_ok());
        for (first, second) in [(&content, &content), (&reasoning, &call), (&call, &call)] {
            let body = format!("{first}{second}{}{end}", delta("\"content\":\"b\""));
            let why = read(ReplyReader::chat_completions(), body.as_bytes(), 8192);
            assert!(
                why.as_ref().is_err_and(|why| why.to_string().contains("larger than the limit")),
                "{why:?}"
            );
        }
    }

    #[test]
    fn a_stream_that_breaks_off_after_the_end_is_complete() {
        let body = CHAT.concat() + "data: {\"choices\":[],\"usage\":{\"prompt_to";
        match read(ReplyReader::chat_completions(), body.as_bytes(), 3) {
            Ok(reply) => assert_eq!(reply.text, "ToolCall::Response(\"hi\")"),
            Err(why) => panic!("{why}"),
        }
    }
}
