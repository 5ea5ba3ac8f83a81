//! Decoding of bytes, with the encoding that the server or the page declares, or a guessed one.

use encoding_rs::{Encoding, UTF_8, WINDOWS_1252};

/// Number of bytes at the start of a page that are searched for a declared encoding.
const HEAD: usize = 4 << 10;

/// Decodes bytes. The encoding is taken from the byte-order mark, the server's charset `said` or
/// the page's declaration, in this order of precedence. If all are missing, it is guessed.
pub(crate) fn decode(bytes: &[u8], said: Option<&str>) -> String {
    let said = said.and_then(|label| Encoding::for_label(label.trim().as_bytes()));
    let encoding = said.or_else(|| of_page(bytes)).unwrap_or_else(|| guess(bytes));
    encoding.decode(bytes).0.into_owned()
}

/// Returns the encoding that a `meta` tag or the XML declaration of a page declares.
fn of_page(bytes: &[u8]) -> Option<&'static Encoding> {
    let head = bytes.get(..HEAD.min(bytes.len()))?;
    let head = String::from_utf8_lossy(head).to_ascii_lowercase();
    let marks = ["charset=", "encoding="];
    marks.iter().flat_map(|mark| head.match_indices(mark)).find_map(|(at, mark)| {
        // Only a declaration inside a tag counts, because scripts and text mention encodings, too.
        let tag = head.get(..at)?.rsplit('<').next()?;
        if !(tag.starts_with("meta") || tag.starts_with("?xml")) {
            return None;
        }
        let label = head.get(at + mark.len()..)?.trim_start_matches(['"', '\'']);
        let label: String = label
            .chars()
            .take_while(|c| c.is_ascii_alphanumeric() || "-_:.".contains(*c))
            .collect();
        // A page whose tags are readable as ASCII is not UTF-16, whatever it declares.
        let encoding = Encoding::for_label(label.as_bytes())?;
        Some(if encoding.is_ascii_compatible() { encoding } else { UTF_8 })
    })
}

fn guess(bytes: &[u8]) -> &'static Encoding {
    match std::str::from_utf8(bytes) {
        Ok(_) => UTF_8,
        // The text is UTF-8, but was truncated inside a character.
        Err(error)
            if error.error_len().is_none()
                && !bytes.iter().take(error.valid_up_to()).all(u8::is_ascii) =>
        {
            UTF_8
        }
        Err(_) => WINDOWS_1252,
    }
}

#[cfg(test)]
mod tests {
    use super::decode;

    #[test]
    fn encodings_are_found() {
        for (bytes, said, expected) in [
            (&b"caf\xc3\xa9"[..], None, "café"),
            (b"caf\xe9", None, "café"),
            (b"caf\xe9", Some("iso-8859-1"), "café"),
            (b"\xef\xbb\xbfcaf\xc3\xa9", Some("iso-8859-1"), "café"),
            (b"<meta charset=windows-1251>\xcf\xf0\xe8", None, "<meta charset=windows-1251>При"),
            (
                b"<META http-equiv=x content='text/html; charset=\"koi8-r\"'>\xf0",
                None,
                "<META http-equiv=x content='text/html; charset=\"koi8-r\"'>П",
            ),
            (
                b"<?xml version='1.0' encoding='Shift_JIS'?>\x83e",
                None,
                "<?xml version='1.0' encoding='Shift_JIS'?>テ",
            ),
            (b"<meta charset=utf-16>\xc3\xa9", None, "<meta charset=utf-16>é"),
            (b"<p>charset=koi8-r \xc3\xa9", None, "<p>charset=koi8-r é"),
            (b"\xc3\xa9", Some("no-such"), "é"),
            (b"\xc3\xa9\xc3", None, "é\u{fffd}"),
            (b"ab\xc3", None, "abÃ"),
            (b"\xff\xfea\0", None, "a"),
            (b"", None, ""),
        ] {
            assert_eq!(decode(bytes, said), expected);
        }
    }
}
