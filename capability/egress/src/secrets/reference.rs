//! A simple and slow implementation of the search for secrets, for comparison in tests and fuzzing.

/// A spelling of a secret: the bytes that each position accepts, and the bytes that may be between
/// positions.
struct Pattern {
    accepts: Vec<Vec<u8>>,
    between: &'static [u8],
    secret: usize,
}

fn base64_letters(bytes: &[u8]) -> Vec<u8> {
    let letters: Vec<u8> =
        (b'A'..=b'Z').chain(b'a'..=b'z').chain(b'0'..=b'9').chain(*b"+/").collect();
    let bits: Vec<bool> =
        bytes.iter().flat_map(|byte| (0..8).rev().map(move |bit| byte >> bit & 1 == 1)).collect();
    bits.chunks(6)
        .map(|six| {
            letters[six
                .iter()
                .enumerate()
                .map(|(at, bit)| usize::from(*bit) << (5 - at))
                .sum::<usize>()]
        })
        .collect()
}

fn patterns(secret: usize, value: &[u8]) -> Vec<Pattern> {
    let mut all = Vec::new();
    let plain = value
        .iter()
        .map(|byte| if *byte == b' ' { vec![b' ', b'+'] } else { vec![*byte] })
        .collect();
    all.push(Pattern { accepts: plain, between: b"\0", secret });
    let hex: String = value.iter().map(|byte| format!("{byte:02x}")).collect();
    let hex = hex.bytes().map(|digit| vec![digit, digit.to_ascii_uppercase()]).collect();
    all.push(Pattern { accepts: hex, between: b"\0 \t\n\x0c\r:-.,", secret });
    for shift in 0..3 {
        let whole = [&[0; 3][..shift], value].concat();
        // Letters that share bits with a neighbouring byte do not depend on the value alone.
        let (first, last) = ([0, 2, 3][shift], whole.len() * 8 / 6);
        let letters = base64_letters(&whole);
        let letters = letters[first..last].iter().map(|letter| match letter {
            b'+' => vec![b'+', b'-'],
            b'/' => vec![b'/', b'_'],
            _ => vec![*letter],
        });
        all.push(Pattern { accepts: letters.collect(), between: b"\0 \t\n\x0c\r", secret });
    }
    all
}

/// Returns the next 160 bytes, each with its position, but omits the NULs among them. Also omits
/// the leading zeros of a number after the first 32; these do not count towards the 160 bytes.
fn view(text: &[u8], at: usize) -> Vec<(usize, u8)> {
    let (mut view, mut length, mut zeros): (Vec<(usize, u8)>, usize, usize) = (Vec::new(), 0, 0);
    for (position, byte) in text.iter().copied().enumerate().skip(at) {
        if byte == b'0' && zeros >= 32 {
            continue;
        }
        if length == 160 {
            break;
        }
        length += 1;
        if byte == 0 {
            continue;
        }
        let read: Vec<u8> = view.iter().take(4).map(|(_, byte)| *byte).collect();
        let leads = matches!(&read[..], b"&#" | b"&#x" | b"&#X" | b"\\u{");
        zeros = if byte == b'0' && (leads || zeros > 0) { zeros + 1 } else { 0 };
        view.push((position, byte));
    }
    view
}

/// Returns the possible decodings of the text at a position, each with the position where it ends
/// and the decoded bytes.
fn readings(text: &[u8], at: usize) -> Vec<(usize, Vec<u8>)> {
    let mut all = vec![(at + 1, vec![text[at]])];
    let view = view(text, at);
    let string: String = view.iter().map(|(_, byte)| char::from(*byte)).collect();
    // Returns the position in the text after the first `count` bytes of the view.
    let end = |count: usize| view[count - 1].0 + 1;
    let hex = |from: usize, count: usize| {
        let digits = string.get(from..from + count).filter(|_| string.is_char_boundary(from))?;
        digits
            .bytes()
            .all(|byte| byte.is_ascii_hexdigit())
            .then(|| u32::from_str_radix(digits, 16).unwrap())
    };
    let utf8 = |code: u32| char::from_u32(code).map(|char| char.to_string().into_bytes());
    if text[at] == 0
        || !string.is_ascii()
            && string.bytes().take(12).any(|byte| !byte.is_ascii())
            && text[at] >= 128
    {
        return all;
    }
    // Indexes in the string equal indexes in the view as long as the string is ASCII.
    let ascii = string.bytes().take_while(u8::is_ascii).count();
    let string = &string[..ascii];
    let hex =
        |from: usize, count: usize| if from + count <= ascii { hex(from, count) } else { None };
    if let Some(rest) = string.strip_prefix('%') {
        let _ = rest;
        all.extend(hex(1, 2).map(|value| (end(3), vec![u8::try_from(value).unwrap()])));
    } else if let Some(rest) = string.strip_prefix('\\') {
        let plain = match rest.bytes().next() {
            Some(b'n') => Some(b'\n'),
            Some(b'r') => Some(b'\r'),
            Some(b't') => Some(b'\t'),
            Some(b'b') => Some(8),
            Some(b'f') => Some(12),
            Some(byte @ (b'/' | b'\\' | b'"' | b'\'')) => Some(byte),
            _ => None,
        };
        all.extend(plain.map(|byte| (end(2), vec![byte])));
        all.extend(hex(1, 2).map(|value| (end(3), vec![u8::try_from(value).unwrap()])));
        if let Some(rest) = rest.strip_prefix("u{") {
            let digits: String = rest.chars().take_while(char::is_ascii_hexdigit).collect();
            let value = digits.trim_start_matches('0');
            let value = if value.is_empty() { "0" } else { value };
            if !digits.is_empty() && rest[digits.len()..].starts_with('}') {
                let bytes = u32::from_str_radix(value, 16).ok().and_then(utf8);
                all.extend(bytes.map(|bytes| (end(3 + digits.len() + 1), bytes)));
            }
        }
        if rest.starts_with('x') {
            all.extend(hex(2, 2).and_then(utf8).map(|bytes| (end(4), bytes)));
        }
        if rest.starts_with('u') {
            all.extend(hex(2, 4).and_then(utf8).map(|bytes| (end(6), bytes)));
            if let (Some(high @ 0xD800..=0xDBFF), Some("\\u"), Some(low @ 0xDC00..=0xDFFF)) =
                (hex(2, 4), string.get(6..8), hex(8, 4))
            {
                let units = [high, low].map(|unit| u16::try_from(unit).unwrap());
                all.push((end(12), String::from_utf16(&units).unwrap().into_bytes()));
            }
        }
    } else if let Some(rest) = string.strip_prefix("&#") {
        let (base, from) = if rest.starts_with(['x', 'X']) { (16, 3) } else { (10, 2) };
        let digits: String =
            string[from.min(ascii)..].chars().take_while(|c| c.is_digit(base)).collect();
        let value = digits.trim_start_matches('0');
        let value = if digits.is_empty() {
            None
        } else if value.is_empty() {
            Some(0)
        } else {
            u32::from_str_radix(value, base).ok()
        };
        if let Some(bytes) = value.and_then(utf8) {
            let behind = from + digits.len();
            match view.get(behind) {
                Some((_, b';')) => all.push((end(behind + 1), bytes)),
                Some((next, _)) => all.push((*next, bytes)),
                None if view.last().unwrap().0 + 1 < text.len() && view.len() >= 160 => {}
                None => all.push((text.len(), bytes)),
            }
        }
    } else if let Some(rest) = string.strip_prefix('&') {
        let name: String = rest.chars().take_while(char::is_ascii_alphabetic).collect();
        let entity = |name: &str| {
            let text = format!("&{name};");
            let byte = match name {
                "amp" | "AMP" => b'&',
                "lt" | "LT" => b'<',
                "gt" | "GT" => b'>',
                "quot" | "QUOT" => b'"',
                "apos" => b'\'',
                "sol" => b'/',
                "plus" => b'+',
                "equals" => b'=',
                "colon" => b':',
                "lowbar" => b'_',
                "period" => b'.',
                "vert" | "verbar" | "VerticalLine" => b'|',
                "grave" | "DiacriticalGrave" => b'`',
                _ => return None,
            };
            Some((text.len(), byte))
        };
        if let Some((count, byte)) = entity(&name)
            && rest[name.len()..].starts_with(';')
        {
            all.push((end(count), vec![byte]));
        }
        if rest.starts_with("fjlig;") {
            all.extend([&b"fj"[..], b"f", b"j"].map(|bytes| (end(7), bytes.to_vec())));
        }
        for legacy in ["amp", "AMP", "lt", "LT", "gt", "GT", "quot", "QUOT"] {
            if rest.starts_with(legacy) {
                all.push((end(1 + legacy.len()), vec![entity(legacy).unwrap().1]));
            }
        }
    }
    all
}

/// Returns the matches of a pattern from left to right, without overlaps. If matches overlap,
/// returns the one that ends first or, among several with the same end, the one that starts first.
fn matches(text: &[u8], edges: &[Vec<(usize, Vec<u8>)>], pattern: &Pattern) -> Vec<(usize, usize)> {
    let (mut found, mut min_start) = (Vec::new(), 0);
    for end in 1..=text.len() {
        // The earliest start of a match, for each position in the text and each number of matched
        // pattern positions.
        let mut first: Vec<Vec<Option<usize>>> =
            vec![vec![None; pattern.accepts.len() + 1]; end + 1];
        for from in min_start..end {
            first[from][0] = Some(from);
            for (to, bytes) in edges[from].iter().filter(|(to, _)| *to <= end) {
                for count in 0..pattern.accepts.len() {
                    let Some(start) = first[from][count] else { continue };
                    let mut reach = |count: usize| {
                        let slot = &mut first[*to][count];
                        *slot = Some(slot.map_or(start, |own| own.min(start)));
                    };
                    if count > 0 && bytes.iter().all(|byte| pattern.between.contains(byte)) {
                        reach(count);
                    }
                    let next = pattern.accepts.get(count..count + bytes.len());
                    if next.is_some_and(|next| {
                        next.iter().zip(bytes).all(|(accepts, byte)| accepts.contains(byte))
                    }) {
                        reach(count + bytes.len());
                    }
                }
            }
        }
        if let Some(start) = first[end][pattern.accepts.len()] {
            found.push((start, end));
            min_start = end;
        }
    }
    found
}

/// Replaces secrets in a string with references. Each secret is a pair of a name and a value.
pub(super) fn clean(text: &[u8], secrets: &[(&str, &str)]) -> Vec<u8> {
    let edges: Vec<_> = (0..text.len()).map(|at| readings(text, at)).collect();
    let patterns = secrets
        .iter()
        .enumerate()
        .flat_map(|(secret, (_, value))| patterns(secret, value.as_bytes()));
    let mut all: Vec<(usize, std::cmp::Reverse<usize>, usize)> = patterns
        .flat_map(|pattern| {
            matches(text, &edges, &pattern)
                .into_iter()
                .map(move |(start, end)| (start, std::cmp::Reverse(end), pattern.secret))
        })
        .collect();
    all.sort_unstable();
    let (mut clean, mut at) = (Vec::new(), 0);
    let mut all = all.into_iter().peekable();
    while let Some((start, std::cmp::Reverse(mut end), secret)) = all.next() {
        clean.extend_from_slice(&text[at..start]);
        clean.extend_from_slice(format!("${{secret:{}}}", secrets[secret].0).as_bytes());
        while let Some((_, std::cmp::Reverse(other), _)) = all.next_if(|(start, ..)| *start < end) {
            end = end.max(other);
        }
        at = end;
    }
    clean.extend_from_slice(&text[at..]);
    clean
}
