//! Server-sent events, parsed from byte chunks with arbitrary boundaries.

/// A parser that collects the `data` of events. It accepts any line ending, comments, unknown
/// fields, `data:` without a space, and a stream that ends in the middle of an event.
#[derive(Debug, Default)]
pub(super) struct EventParser {
    /// The part of the current line that has arrived.
    line: Vec<u8>,
    /// If true, the last byte was a carriage return, and a line feed may follow.
    after_cr: bool,
    /// The data lines of the current event.
    data: Option<String>,
}

impl EventParser {
    /// Returns the size of the unfinished event, in bytes.
    pub(super) fn pending(&self) -> usize {
        self.line.len() + self.data.as_ref().map_or(0, String::len)
    }

    /// Parses a piece of the stream and returns the data of each event that it completes.
    pub(super) fn push(&mut self, piece: &[u8]) -> Vec<String> {
        let mut ended = Vec::new();
        let mut rest = piece;
        if self.after_cr && !rest.is_empty() {
            rest = rest.strip_prefix(b"\n").unwrap_or(rest);
            self.after_cr = false;
        }
        while let Some(at) = rest.iter().position(|&byte| byte == b'\n' || byte == b'\r') {
            let (line, end) = rest.split_at(at);
            self.line.extend_from_slice(line);
            ended.extend(self.end_line());
            rest = match end {
                [b'\r'] => {
                    self.after_cr = true;
                    &[]
                }
                [b'\r', b'\n', tail @ ..] | [_, tail @ ..] => tail,
                [] => &[],
            };
        }
        self.line.extend_from_slice(rest);
        ended
    }

    /// Ends the stream and returns the data of the unfinished event, or `None` if there is no such
    /// event.
    pub(super) fn finish(mut self) -> Option<String> {
        if !self.line.is_empty() {
            self.end_line();
        }
        self.data
    }

    fn end_line(&mut self) -> Option<String> {
        let line = std::mem::take(&mut self.line);
        let line = String::from_utf8_lossy(&line);
        let line = wattle_rt::without_bom(&line);
        if line.is_empty() {
            return self.data.take();
        }
        let value = line.strip_prefix("data:").or_else(|| (line == "data").then_some(""))?;
        let value = value.strip_prefix(' ').unwrap_or(value);
        match &mut self.data {
            Some(data) => {
                data.push('\n');
                data.push_str(value);
            }
            None => self.data = Some(value.to_owned()),
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pieces: &[&[u8]]) -> Vec<String> {
        let mut events = EventParser::default();
        let mut all: Vec<String> = pieces.iter().flat_map(|piece| events.push(piece)).collect();
        all.extend(events.finish());
        all
    }

    #[test]
    fn events_are_the_same_wherever_the_stream_is_cut() {
        let stream = "\u{feff}: hello\r\n\r\ndata: ä one\r\n\r\nevent: x\ndata:two\ndata: \
                      lines\nid: 7\n\n\nretry: 5\n\ndata\n\ndata:  blank\r\rdata: €nd";
        let expected = ["ä one", "two\nlines", "", " blank", "€nd"];
        assert_eq!(read(&[stream.as_bytes()]), expected);
        for at in 0..=stream.len() {
            let (head, tail) = stream.as_bytes().split_at(at);
            assert_eq!(read(&[head, tail]), expected, "cut at {at}");
        }
        let bytes: Vec<&[u8]> = stream.as_bytes().chunks(1).collect();
        assert_eq!(read(&bytes), expected);
    }

    #[test]
    fn other_formats_have_no_events() {
        assert!(read(&[b"<html>\n<body>data: no</body>\n\n"]).is_empty());
        assert!(read(&[b""]).is_empty());
        assert!(read(&[b"\n\r\n\r"]).is_empty());
        assert_eq!(read(&[b"data: \xff\xfe\n\n"]), ["\u{fffd}\u{fffd}"]);
    }
}
