//! The byte order mark that some editors write at the beginning of a text.

/// Returns the text without the byte order mark at its beginning, if it has one. Every text from
/// outside, such as a file, a request or a document, is read through this function.
///
/// ```
/// assert_eq!(wattle_lang::without_bom("\u{feff}{}"), "{}");
/// assert_eq!(wattle_lang::without_bom("{}\u{feff}"), "{}\u{feff}");
/// ```
#[must_use]
pub fn without_bom(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}

/// Converts the bytes of a text from outside to a string without the byte order mark.
///
/// # Errors
/// If the bytes are not UTF-8.
pub fn decode_text(bytes: Vec<u8>) -> Result<String, std::string::FromUtf8Error> {
    let mut text = String::from_utf8(bytes)?;
    if without_bom(&text).len() < text.len() {
        text.drain(..'\u{feff}'.len_utf8());
    }
    Ok(text)
}
