//! Removes secrets from arbitrary text. Checks that the result matches that of a simple, slow
//! implementation of the same rules.
#![no_main]

#[path = "../../../capability/egress/src/secrets/reference.rs"]
#[allow(dead_code)]
mod reference;

use wattle_capability::secrets::Secret;

/// Secrets that are hard to find because they contain repetitions, text that looks like an escape
/// sequence, or multi-byte characters.
const VALUES: &[&str] = &[
    "s3cr3t-v",
    "aaaaaaaa",
    "%41%42%4",
    "abc/de+f",
    "&#x41;&<",
    "\\u0041\\n",
    "deadbeef",
    "pä ssüw€𝄞",
    "12345678",
];

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Some((choice, text)) = bytes.split_first() else { return };
    let text = &text[..text.len().min(200)];
    let value = VALUES[usize::from(*choice) % VALUES.len()];
    let secret = Secret::new("a", value, Vec::new()).unwrap();
    let clean = secret.scrub(text.to_vec());
    let expected = reference::clean(text, &[("a", value)]);
    assert_eq!(
        String::from_utf8_lossy(&clean),
        String::from_utf8_lossy(&expected),
        "{value} in {text:?}"
    );
});
