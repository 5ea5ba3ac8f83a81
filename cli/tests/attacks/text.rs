//! Templates in the rows of attacks. `⟦NAME⟧` expands to the value with that name, `⟦N*TEXT⟧` to N
//! copies of a string, and `⟦byte:HH⟧` to one byte.

use std::collections::BTreeMap;

/// The values that templates refer to, by name.
#[derive(Default)]
pub(crate) struct Values(BTreeMap<String, String>);

impl Values {
    pub(crate) fn set(&mut self, name: &str, value: impl Into<String>) {
        self.0.insert(name.to_owned(), value.into());
    }

    /// Expands a template to a string.
    pub(crate) fn text(&self, text: &str) -> String {
        String::from_utf8(self.bytes(text)).expect("the text of a row is UTF-8 here")
    }

    /// Expands a template to bytes.
    pub(crate) fn bytes(&self, text: &str) -> Vec<u8> {
        let (mut out, mut rest) = (Vec::new(), text);
        while let Some(start) = rest.find('⟦') {
            out.extend_from_slice(&rest.as_bytes()[..start]);
            let inner = &rest[start + '⟦'.len_utf8()..];
            let end = closing(inner).unwrap_or_else(|| panic!("`⟦` without `⟧` in {text:?}"));
            out.extend(self.inner(&inner[..end]));
            rest = &inner[end + '⟧'.len_utf8()..];
        }
        out.extend_from_slice(rest.as_bytes());
        out
    }

    fn inner(&self, inner: &str) -> Vec<u8> {
        if let Some(hex) = inner.strip_prefix("byte:") {
            return vec![u8::from_str_radix(hex, 16).expect("two hexadecimal digits")];
        }
        if let Some((count, text)) = inner.split_once('*')
            && let Ok(count) = count.parse()
        {
            return self.bytes(text).repeat(count);
        }
        let value = self.0.get(inner).unwrap_or_else(|| panic!("no value is named {inner:?}"));
        // A row's value may refer to other values.
        self.bytes(value)
    }
}

/// Returns the byte index of the `⟧` that matches a `⟦` directly before `text`, or `None` if there
/// is no such `⟧`.
fn closing(text: &str) -> Option<usize> {
    let mut depth = 0;
    for (at, c) in text.char_indices() {
        match c {
            '⟦' => depth += 1,
            '⟧' if depth == 0 => return Some(at),
            '⟧' => depth -= 1,
            _ => {}
        }
    }
    None
}

#[test]
fn texts_are_expanded() {
    let mut values = Values::default();
    values.set("a", "<⟦b⟧>");
    values.set("b", "x");
    assert_eq!(values.text("1⟦a⟧⟦3*-⟦2*⟦b⟧⟧⟧2"), "1<x>-xx-xx-xx2");
    assert_eq!(values.bytes("⟦byte:ff⟧"), [0xff]);
}
