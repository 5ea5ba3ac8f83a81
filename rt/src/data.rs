//! The initial content of a program's memory.
//!
//! The engine would compile a function that initializes the memory, and run it on a stack of its
//! own in each new instance. Therefore, modules are compiled without their data, and the host
//! copies the data.

use std::borrow::Cow;
use std::ops::Range;

use wasmparser::{Data, DataKind, MemoryType, Operator, Parser, Payload};

use crate::host::PAGE;

/// Length of the magic number and the version at the start of a binary, in bytes.
const HEADER: usize = 8;

/// A part of the memory's initial content.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    /// The addresses in the memory, all within its initial size.
    pub(crate) addresses: Range<usize>,
    /// The position of the content in the module's binary.
    pub(crate) content: Range<usize>,
}

/// Removes the data from a binary. Returns the rest, in which the offsets of all functions are the
/// same, and the data. Returns the unchanged binary and no data if the module does more with its
/// data than to initialize its memory, or if the data does not fit in the memory, which is an error
/// that the engine reports.
pub(crate) fn separate(binary: &[u8]) -> (Cow<'_, [u8]>, Vec<Segment>) {
    let separated = find(binary).and_then(|(section, segments)| {
        let (before, after) = (binary.get(..section.start)?, binary.get(section.end..)?);
        Some(([before, after].concat().into(), segments))
    });
    separated.unwrap_or((Cow::Borrowed(binary), Vec::new()))
}

/// Returns the position of the data section, including its head, and its segments.
fn find(binary: &[u8]) -> Option<(Range<usize>, Vec<Segment>)> {
    let mut end = HEADER;
    let mut size = None;
    let mut found = None;
    for payload in Parser::new(0).parse_all(binary) {
        let payload = payload.ok()?;
        let content = payload.as_section().map(|(_, content)| content);
        match payload {
            // A start function would run before the data is copied. A module counts its segments
            // only if instructions refer to them.
            Payload::StartSection { .. } | Payload::DataCountSection { .. } => return None,
            Payload::MemorySection(memories) => {
                size = memories.into_iter().next()?.ok().as_ref().and_then(initial_size);
            }
            Payload::DataSection(segments) => {
                let segments = segments.into_iter().map(|data| segment(&data.ok()?, size?));
                found = Some((end..content.clone()?.end, segments.collect::<Option<_>>()?));
            }
            _ => {}
        }
        end = content.map_or(end, |content| content.end);
    }
    found
}

/// Returns the initial size of a memory in bytes, or `None` if it has pages of another size.
fn initial_size(memory: &MemoryType) -> Option<usize> {
    let pages = memory.page_size_log2.is_none().then_some(memory.initial)?;
    usize::try_from(pages.checked_mul(PAGE)?).ok()
}

/// Returns a segment that is copied to a constant address of the first memory, whose size in bytes
/// is `size`.
fn segment(data: &Data<'_>, size: usize) -> Option<Segment> {
    let DataKind::Active { memory_index: 0, offset_expr } = &data.kind else { return None };
    let mut offset = offset_expr.get_operators_reader();
    let Ok(Operator::I32Const { value }) = offset.read() else { return None };
    let Ok(Operator::End) = offset.read() else { return None };
    let start = usize::try_from(value.cast_unsigned()).ok()?;
    let addresses = start..start.checked_add(data.data.len())?;
    let content = data.range.end.checked_sub(data.data.len())?..data.range.end;
    (addresses.end <= size).then_some(Segment { addresses, content })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests may panic")]

    use super::*;

    fn binary(fields: &str) -> Vec<u8> {
        let text = format!("(module (memory 1) (func) {fields})");
        let buffer = wast::parser::ParseBuffer::new(&text).unwrap();
        wast::parser::parse::<wast::Wat<'_>>(&buffer).unwrap().encode().unwrap()
    }

    #[test]
    fn data_is_removed_and_its_content_found() {
        let whole = binary(r#"(data (i32.const 8) "ab") (data (i32.const 65533) "xyz")"#);
        let (rest, segments) = separate(&whole);
        assert_eq!(*rest, binary(""));
        let found = segments.iter().map(|s| (s.addresses.clone(), &whole[s.content.clone()]));
        assert_eq!(found.collect::<Vec<_>>(), [(8..10, &b"ab"[..]), (65_533..65_536, b"xyz")]);
    }

    #[test]
    fn data_that_the_host_cannot_copy_stays_in_the_binary() {
        for fields in [
            "",
            r#"(data (i32.const 65535) "ab")"#,
            r#"(data (i32.const -1) "a")"#,
            r#"(data "ab")"#,
            r#"(data (i32.const 0) "ab") (start 0)"#,
            r#"(data (i32.const 0) "ab") (func (data.drop 0))"#,
            r#"(global i32 (i32.const 8)) (data (global.get 0) "ab")"#,
            r#"(data (i32.add (i32.const 1) (i32.const 2)) "ab")"#,
        ] {
            let whole = binary(fields);
            assert_eq!(separate(&whole), (Cow::Borrowed(&*whole), Vec::new()), "{fields}");
        }
    }

    #[test]
    fn an_invalid_binary_is_unchanged() {
        let whole = binary(r#"(data (i32.const 8) "ab")"#);
        for length in 0..whole.len() {
            let (rest, segments) = separate(&whole[..length]);
            assert_eq!((rest.len(), segments.len()), (length, 0));
        }
    }
}
