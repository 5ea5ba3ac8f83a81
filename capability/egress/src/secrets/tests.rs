//! Tests that compare the search for secrets with a simple implementation, and tests of its limits
//! on time and memory.

use std::sync::Arc;

use proptest::prelude::*;

use super::automaton::Automaton;
use super::clean::Spellings;
use super::reference;
use super::stream::Search;
use crate::client::{HeaderMap, HeaderName, HeaderValue};

/// Sets of secrets that are difficult to find: repetitive values, secrets within secrets, and
/// values that look like escapes.
const SETS: &[&[(&str, &str)]] = &[
    &[("a", "s3cr3t-v")],
    &[("a", "aaaaaaaa")],
    &[("a", "%41%42%4")],
    &[("a", "abc/de+f"), ("b", "abc/de+fgh")],
    &[("a", "&#x41;&<")],
    &[("a", "\\u0041\\n"), ("b", "deadbeef")],
    &[("a", "pä ssüw€𝄞")],
    &[("a", "12345678"), ("b", "34567890")],
    &[("a", "a|b`c|d`")],
];

/// Returns a byte, escaped in one of several ways (`%2f`, `&#47;`, `\u002f`, …) or unchanged. `way`
/// selects the escape.
fn spell(byte: u8, way: u8) -> Vec<u8> {
    match way {
        0 => format!("%{byte:02x}").into_bytes(),
        1 => format!("%{byte:02X}").into_bytes(),
        2 if byte < 128 => format!("&#{byte};").into_bytes(),
        3 if byte < 128 => format!("&#x{byte:04X};").into_bytes(),
        4 if byte < 128 => format!("&#000{byte}").into_bytes(),
        5 if byte < 128 => format!("\\u{byte:04x}").into_bytes(),
        6 if byte < 128 => format!("\\x{byte:02X}").into_bytes(),
        7 if b"/\\\"'".contains(&byte) => vec![b'\\', byte],
        7 if byte == b'\n' => b"\\n".to_vec(),
        12 => format!("\\{byte:02x}").into_bytes(),
        13 if byte < 128 => format!("\\u{{{byte:03X}}}").into_bytes(),
        8 if byte == b'&' => b"&amp;".to_vec(),
        8 if byte == b'<' => b"&lt".to_vec(),
        8 if byte == b'/' => b"&sol;".to_vec(),
        8 if byte == b' ' => b"+".to_vec(),
        8 if byte == b'|' => b"&VerticalLine;".to_vec(),
        8 if byte == b'`' => b"&DiacriticalGrave;".to_vec(),
        14 if byte < 128 => format!("&#{}{byte};", "0".repeat(40)).into_bytes(),
        _ => vec![byte],
    }
}

fn base64(value: &[u8], shift: usize, url: bool) -> Vec<u8> {
    use base64::Engine as _;
    let whole = [&b"xyz"[..shift % 3], value, &b"!!!"[..shift / 3 % 3]].concat();
    let letters = if url {
        base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(whole)
    } else {
        base64::engine::general_purpose::STANDARD.encode(whole)
    };
    letters.into_bytes()
}

/// Returns a strategy that generates a part of a string: noise, or a complete or truncated secret.
/// A secret may be encoded as a whole, and each of its bytes may be escaped.
fn part(set: &'static [(&'static str, &'static str)]) -> impl Strategy<Value = Vec<u8>> {
    let ways = || prop::collection::vec(0_u8..16, 1..24);
    let secret = (0..set.len(), 0_u8..5, 0_usize..9, any::<bool>(), 0_usize..40, ways()).prop_map(
        move |(at, encoding, shift, url, cut, ways)| {
            let value = set[at].1.as_bytes();
            let plain = match encoding {
                0 => base64(value, shift, url),
                1 => value.iter().flat_map(|byte| format!("{byte:02x}").into_bytes()).collect(),
                _ => value.to_vec(),
            };
            let length = if cut < 4 { plain.len() - 1 - cut } else { plain.len() };
            let mut ways = ways.iter().cycle();
            let mut text = Vec::new();
            for byte in &plain[..length] {
                let way = *ways.next().unwrap();
                text.extend(spell(*byte, way));
                match (encoding, way) {
                    (0 | 1, 10) => text.extend(b"\r\n "),
                    (0, 11) => text.extend(b"%0a"),
                    (1, 11) => text.push(b':'),
                    _ => {}
                }
            }
            text
        },
    );
    let noise = prop::collection::vec(prop::sample::select(b"%&#\\ux;0a4s=/ d\0".to_vec()), 0..10);
    prop_oneof![4 => secret, 1 => noise]
}

fn text() -> impl Strategy<Value = (usize, Vec<u8>, Vec<usize>)> {
    (0..SETS.len()).prop_flat_map(|set| {
        let parts = prop::collection::vec(part(SETS[set]), 1..4).prop_map(|parts| {
            let mut text = parts.concat();
            text.truncate(160);
            text
        });
        (Just(set), parts, prop::collection::vec(1_usize..20, 1..8))
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn a_text_in_pieces_is_cleaned_as_the_simple_implementation_cleans_it(
        (set, text, pieces) in text(),
    ) {
        let set = SETS[set];
        let spellings = Spellings::new(set.iter().copied());
        let expected = reference::clean(&text, set);
        let whole = spellings.cleaner().clean(text.clone());
        prop_assert_eq!(String::from_utf8_lossy(&whole), String::from_utf8_lossy(&expected));
        let (mut stream, mut clean, mut rest) =
            (spellings.cleaner().stream(), Vec::new(), &text[..]);
        for piece in pieces.iter().cycle() {
            let (now, later) = rest.split_at((*piece).min(rest.len()));
            stream.push(now, &mut clean);
            rest = later;
            if rest.is_empty() {
                break;
            }
        }
        stream.finish(&mut clean);
        prop_assert_eq!(&clean, &whole);
        prop_assert_eq!(spellings.find([&text[..]]).is_some(), whole != text);
        let parts = text.chunks(pieces[0]);
        prop_assert_eq!(spellings.find(parts).is_some(), whole != text);
    }
}

#[test]
fn the_work_is_linear_and_the_bytes_held_back_are_bounded() {
    let long = "a".repeat(2_000);
    for secret in ["tok/3n+value=42", "aaaaaaaa", "%25%25%25%25", long.as_str()] {
        for fill in [
            "a",
            "%",
            "%61",
            "%25",
            "&#",
            "&amp",
            "\\u00",
            "t",
            "dG9r",
            "tok/3n+value=4",
            "tok/3n+value=42",
            "6:",
            "\\",
            "aaa ",
            "&#0000000000000000000",
            "\\uD83D\\uDE0",
            "aaaaaaa",
            "\0",
            "a\0",
            "%\0",
        ] {
            let automaton = Arc::new(Automaton::new([secret]));
            let words = secret.len() / 8 + 16;
            let mut search = Search::new(Arc::clone(&automaton), Arc::from([true]));
            let (text, mut out, mut held) = (fill.repeat(60_000 / fill.len()), Vec::new(), 0);
            for piece in text.as_bytes().chunks(1_000) {
                search.push(piece, &[b"X".to_vec()], &mut out);
                held = held.max(search.held());
            }
            let work = search.work() / text.len();
            assert!(
                work <= words,
                "{secret:.20} in {fill:?}: {work} words of work per byte, more than {words}"
            );
            assert!(
                held <= 2 * automaton.max_span() + 2_000,
                "{secret:.20} in {fill:?}: {held} bytes are held back"
            );
        }
    }
}

#[test]
fn every_named_entity_of_ascii_characters_is_recognized() {
    let entities = "Tab:\t NewLine:\n excl:! quot:\" QUOT:\" num:# dollar:$ percnt:% amp:& AMP:& \
                    apos:' lpar:( rpar:) ast:* midast:* plus:+ comma:, period:. sol:/ colon:: \
                    semi:; lt:< LT:< equals:= gt:> GT:> quest:? commat:@ lsqb:[ lbrack:[ bsol:\\ \
                    rsqb:] rbrack:] Hat:^ lowbar:_ UnderBar:_ grave:` DiacriticalGrave:` lcub:{ \
                    lbrace:{ verbar:| vert:| VerticalLine:| rcub:} rbrace:} fjlig:fj";
    for entity in entities.split(' ') {
        let (name, value) = entity.split_once(':').unwrap();
        let secret = format!("s3cr3t{value}value");
        let spellings = Spellings::new([("key", secret.as_str())].into_iter());
        let text = format!("= s3cr3t&{name};value.");
        assert_eq!(spellings.cleaner().clean_text(&text), "= ${secret:key}.", "{name}");
    }
}

#[test]
fn a_secret_may_start_or_end_within_an_entity_of_two_characters() {
    for (secret, text, clean) in [
        ("j3cr3t-value", "&fjlig;3cr3t-value.", "${secret:key}."),
        ("s3cr3t-valuef", "= s3cr3t-value&fjlig;.", "= ${secret:key}."),
        ("fj-fj-fj", "&fjlig;-f&#x6a;-&fjlig;", "${secret:key}"),
    ] {
        let spellings = Spellings::new([("key", secret)].into_iter());
        assert_eq!(spellings.cleaner().clean_text(text), clean, "{secret}");
    }
}

#[test]
fn an_escape_with_any_number_of_zeros_is_recognized() {
    let secret = "s3cr3t-value";
    let spellings = Spellings::new([("key", secret)].into_iter());
    for count in [0, 1, 31, 32, 33, 170, 5_000] {
        let zeros = "0".repeat(count);
        for (start, end) in [("&#x", ";"), ("&#X", ";"), ("\\u{", "}")] {
            let spell = |byte: u8| format!("{start}{zeros}{byte:x}{end}");
            let spelled: String = secret.bytes().map(spell).collect();
            let text = format!("= {spelled}.");
            assert_eq!(spellings.cleaner().clean_text(&text), "= ${secret:key}.", "{count}");
            assert_eq!(spellings.find(text.as_bytes().chunks(7)), Some(0), "{count}");
            let other = format!("= {zeros}{}{start}{zeros}41{end}&#{zeros}", spell(b's'));
            assert_eq!(spellings.cleaner().clean_text(&other), other, "{count}");
        }
        let spelled: String = secret.bytes().map(|byte| format!("&#{zeros}{byte};")).collect();
        assert_eq!(spellings.cleaner().clean_text(&spelled), "${secret:key}", "{count}");
    }
}

#[test]
fn an_endless_run_of_zeros_is_not_held_back() {
    let automaton = Arc::new(Automaton::new(["s3cr3t-value"]));
    let mut search = Search::new(Arc::clone(&automaton), Arc::from([true]));
    let (text, mut out) = (format!("&#{}", "0".repeat(500_000)), Vec::new());
    for piece in text.as_bytes().chunks(1_000) {
        search.push(piece, &[b"X".to_vec()], &mut out);
        assert!(search.held() <= automaton.max_span(), "{} bytes are held back", search.held());
    }
    search.finish(&[b"X".to_vec()], &mut out);
    assert!(out == text.as_bytes(), "the text has changed");
}

#[test]
fn a_text_in_utf_16_is_searched() {
    let spellings = Spellings::new([("key", "s3cr3t-value")].into_iter());
    for text in ["= s3cr3t-value.", "= s3c%72&#51;t-value.", "= czNjcjN0LXZhbHVl"] {
        let wide: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
        let clean = spellings.cleaner().clean(wide);
        assert!(clean.windows(13).any(|window| window == b"${secret:key}"), "{text}");
    }
}

#[test]
fn a_text_without_a_secret_remains_unchanged() {
    let spellings =
        Spellings::new([("key", "s3cr3t-value"), ("other", "0123456789abcdef")].into_iter());
    let text: Vec<u8> =
        (0..40_000_u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    assert_eq!(spellings.cleaner().clean(text.clone()), text);
    let near = "s3cr3t-valu s3cr3t_value %73%33cr3t-valu%66 0123456789abcdeg czNjcjN0LXZhbHV";
    assert_eq!(spellings.cleaner().clean_text(near), near);
}

#[test]
fn overlapping_secrets_are_replaced_by_the_one_that_starts_first() {
    let spellings = Spellings::new(
        [("short", "s3cr3t-v"), ("long", "s3cr3t-value"), ("tail", "value-9999")].into_iter(),
    );
    for (text, clean) in [
        ("a s3cr3t-value, s3cr3t-v", "a ${secret:long}, ${secret:short}"),
        ("s3cr3t-value-9999.", "${secret:long}."),
        ("s3cr3t-v%61lue", "${secret:long}"),
        ("x&#115;3cr3t-v;", "x${secret:short};"),
        ("73:33:63:72:33:74:2D:76 and", "${secret:short} and"),
    ] {
        assert_eq!(spellings.cleaner().clean_text(text), clean, "{text}");
    }
}

#[test]
fn a_header_whose_name_contains_a_secret_is_removed() {
    let spellings =
        Spellings::new([("key", "S3cr3t-Value"), ("other", "0123456789abcdef")].into_iter());
    let names =
        ["x-plain", "x-s3cr3t-value", "0123456789abcdef", "x-30313233343536373839616263646566-y"];
    let headers = || -> HeaderMap {
        let value = HeaderValue::from_static("S3cr3t-Value");
        names.map(|name| (HeaderName::from_static(name), value.clone())).into_iter().collect()
    };
    let mut all = headers();
    spellings.cleaner().clean_headers(&mut all);
    assert_eq!(all.len(), 1, "{all:?}");
    assert_eq!(all.get("x-plain").unwrap(), "${secret:key}");

    let mut of_other = headers();
    spellings.cleaner_of([false, true].into()).clean_headers(&mut of_other);
    let mut kept: Vec<&str> = of_other.keys().map(HeaderName::as_str).collect();
    kept.sort_unstable();
    assert_eq!(kept, ["x-plain", "x-s3cr3t-value"]);
}
