//! Perl-compatible patterns, for `grep -P`.

use super::push_literal;

/// Translates the syntax that the regex engine interprets differently from PCRE. In PCRE, `\<` and
/// `\>` are ordinary characters, `\h` is a space or a tab, `\Z` also matches before a final
/// newline, and `\Q…\E` quotes the text in between.
pub(crate) fn perl(pattern: &str) -> String {
    let mut out = String::with_capacity(pattern.len());
    let mut members: Option<usize> = None;
    let mut letters = pattern.chars().peekable();
    while let Some(letter) = letters.next() {
        if letter != '\\' {
            members = match (members, letter) {
                (None, '[') => Some(0),
                (Some(count), ']') if count > 0 => None,
                (Some(0), '^') => Some(0),
                (Some(count), _) => Some(count + 1),
                (None, _) => None,
            };
            out.push(letter);
            continue;
        }
        let in_set = members.is_some();
        members = members.map(|count| count + 1);
        match letters.next() {
            Some(plain @ ('<' | '>')) => push_literal(&mut out, plain),
            Some('h') => out.push_str(if in_set { r" \t" } else { r"[ \t]" }),
            Some('H') if !in_set => out.push_str(r"[^ \t]"),
            Some('N') if !in_set => out.push('.'),
            Some('R') if !in_set => out.push_str(r"(?:\r\n|[\n\x0b\x0c\r])"),
            Some('Z') if !in_set => out.push_str(r"(?=\n?\z)"),
            Some('Q') => {
                while let Some(quoted) = letters.next() {
                    if quoted == '\\' && letters.next_if_eq(&'E').is_some() {
                        break;
                    }
                    push_literal(&mut out, quoted);
                }
            }
            Some('E') => {}
            Some(other) => out.extend(['\\', other]),
            None => out.push('\\'),
        }
    }
    out
}
