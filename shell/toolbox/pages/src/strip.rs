//! The text of a page without its tags, extracted in linear time.

/// Elements whose content is invisible.
const HIDDEN: &[&str] = &["script", "style", "template", "noscript", "svg"];

/// Inline elements. The tags of all other elements end the line.
const INLINE: &[&str] = &[
    "a", "abbr", "b", "bdi", "bdo", "big", "cite", "code", "data", "del", "em", "font", "i", "ins",
    "kbd", "label", "mark", "q", "s", "samp", "small", "span", "strike", "strong", "sub", "sup",
    "time", "tt", "u", "var", "wbr",
];

/// Returns the text of a page, with one line per block.
pub(crate) fn text(html: &str) -> String {
    let mut text = String::new();
    let mut rest = html;
    while let Some(at) = rest.find('<') {
        let (before, tag) = rest.split_at(at);
        push(&mut text, before);
        rest = if let Some(comment) = tag.strip_prefix("<!--") {
            comment.find("-->").and_then(|end| comment.get(end + 3..)).unwrap_or_default()
        } else if tag.get(1..).is_some_and(|tag| {
            tag.starts_with(|c: char| c.is_ascii_alphabetic() || "/!?".contains(c))
        }) {
            let end = tag.find('>').map_or(tag.len(), |end| end + 1);
            let (inside, behind) = tag.split_at(end);
            let name = inside.trim_start_matches(['<', '/']);
            let name = name.split(|c: char| !c.is_ascii_alphanumeric()).next().unwrap_or_default();
            if !is_one_of(name, INLINE) {
                end_line(&mut text);
            }
            match is_one_of(name, HIDDEN) && !inside.starts_with("</") && !inside.ends_with("/>") {
                true => behind_end(behind, name),
                false => behind,
            }
        } else {
            push(&mut text, "<");
            tag.get(1..).unwrap_or_default()
        };
    }
    push(&mut text, rest);
    text.trim().to_owned()
}

fn is_one_of(name: &str, names: &[&str]) -> bool {
    names.iter().any(|known| known.eq_ignore_ascii_case(name))
}

/// Returns the text after an element's end tag, or an empty text if there is no end tag.
fn behind_end<'a>(text: &'a str, name: &str) -> &'a str {
    let ends = text.match_indices("</").find(|(at, _)| {
        let tag = text.get(at + 2..at + 2 + name.len());
        tag.is_some_and(|tag| tag.eq_ignore_ascii_case(name))
    });
    let behind = ends.and_then(|(at, _)| text.get(at..));
    behind.and_then(|tag| tag.find('>').and_then(|end| tag.get(end + 1..))).unwrap_or_default()
}

/// Appends text with its character references decoded, and its words separated by single spaces.
fn push(text: &mut String, raw: &str) {
    let decoded = htmlize::unescape(raw);
    for (at, word) in decoded.split(char::is_whitespace).enumerate() {
        if at > 0 && !text.is_empty() && !text.ends_with([' ', '\n']) {
            text.push(' ');
        }
        text.push_str(word);
    }
}

fn end_line(text: &mut String) {
    text.truncate(text.trim_end_matches(' ').len());
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use super::text;

    #[test]
    fn tags_are_taken_out() {
        for (html, expected) in [
            ("<p>One <b>two</b>&amp; <i>three</i></p><p>four", "One two& three\nfour"),
            ("a<br>b<div>c</div>", "a\nb\nc"),
            ("a <script>var x = '<p>';</SCRIPT > b<style>p{}</style>c", "a\nb\nc"),
            ("a<!-- <p> --> b<!-- open", "a b"),
            ("1 < 2 <3 <", "1 < 2 <3 <"),
            ("<script>never closed", ""),
            ("x <a href='y'", "x"),
            ("  \n ", ""),
        ] {
            assert_eq!(text(html), expected, "{html}");
        }
    }
}
