//! Splits a response body into frames. Each frame is one JSON document.

use super::protocol::ReplyFault;
use super::sse::EventParser;

/// A splitter that divides a response body into frames: the JSON documents of its events, or the
/// whole body if it is one JSON document. The first character of the body determines its format,
/// because the content type is unreliable.
#[derive(Debug, Default)]
pub(super) enum Frames {
    #[default]
    Undecided,
    Json(Vec<u8>),
    Events(EventParser),
}

/// Maximum size of a frame, in bytes. Parsed JSON takes up to 64 times as much memory as its text.
const FRAME_LIMIT: usize = 4 << 20;

impl Frames {
    /// Parses the next bytes and returns the frames that they complete.
    pub(super) fn push(&mut self, piece: &[u8]) -> Result<Vec<String>, ReplyFault> {
        let frames = self.split(piece);
        let pending = match self {
            Self::Undecided => 0,
            Self::Json(text) => text.len(),
            Self::Events(events) => events.pending(),
        };
        if frames.iter().map(String::len).chain([pending]).all(|size| size <= FRAME_LIMIT) {
            Ok(frames)
        } else {
            Err(ReplyFault::Excessive(format!(
                "a part of it is larger than the limit of {FRAME_LIMIT} bytes"
            )))
        }
    }

    /// Returns true if the body is a stream of events. The provider marks the end of such a stream.
    pub(super) fn is_stream(&self) -> bool {
        matches!(self, Self::Events(_))
    }

    fn split(&mut self, mut piece: &[u8]) -> Vec<String> {
        if let Self::Undecided = self {
            // A byte order mark counts as whitespace.
            let is_space = |byte: &u8| byte.is_ascii_whitespace() || b"\xef\xbb\xbf".contains(byte);
            let spaces = piece.iter().take_while(|byte| is_space(byte)).count();
            piece = piece.get(spaces..).unwrap_or_default();
            *self = match piece.first() {
                None => return Vec::new(),
                Some(b'{' | b'[') => Self::Json(Vec::new()),
                Some(_) => Self::Events(EventParser::default()),
            };
        }
        match self {
            Self::Undecided => Vec::new(),
            Self::Json(text) => {
                text.extend_from_slice(piece);
                Vec::new()
            }
            Self::Events(events) => events.push(piece),
        }
    }

    pub(super) fn finish(self) -> Option<String> {
        match self {
            Self::Undecided => None,
            Self::Json(text) => {
                Some(String::from_utf8_lossy(&text).trim_matches('\u{feff}').to_owned())
            }
            Self::Events(events) => events.finish(),
        }
    }
}
