//! Tests of generated edits to a trace or its ledger.

use wattle_agent::host::STEPS_FILE;
use wattle_agent::host::ledger::{FinalSeal, LEDGER_FILE};

use super::traces::{TraceFolder, in_turn, is_valid, recorder, step_line};

/// A line-based or byte-based edit of a file.
#[derive(Clone, Debug)]
enum Edit {
    Remove(usize),
    RemoveMany(usize, usize),
    Swap(usize, usize),
    Copy(usize, usize),
    Insert(usize, String),
    Byte(usize, u8),
    Truncate(usize),
}

impl Edit {
    fn apply(&self, text: &[u8]) -> Vec<u8> {
        let mut lines: Vec<Vec<u8>> =
            text.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
        let count = lines.len();
        match self {
            Edit::Remove(at) => drop(lines.remove(at % count)),
            Edit::RemoveMany(from, many) => {
                let from = from % count;
                drop(lines.drain(from..(from + many).min(count)));
            }
            Edit::Swap(one, other) => lines.swap(one % count, other % count),
            Edit::Copy(from, to) => lines.insert(to % (count + 1), lines[from % count].clone()),
            Edit::Insert(at, line) => {
                lines.insert(at % (count + 1), format!("{line}\n").into_bytes())
            }
            Edit::Byte(at, byte) => {
                let mut text = text.to_vec();
                let at = at % text.len();
                text[at] = *byte;
                return text;
            }
            Edit::Truncate(at) => return text[..at % text.len()].to_vec(),
        }
        lines.concat()
    }
}

fn edits() -> impl proptest::strategy::Strategy<Value = Edit> {
    use proptest::prelude::*;
    prop_oneof![
        any::<usize>().prop_map(Edit::Remove),
        (any::<usize>(), 1..12_usize).prop_map(|(from, many)| Edit::RemoveMany(from, many)),
        (any::<usize>(), any::<usize>()).prop_map(|(one, other)| Edit::Swap(one, other)),
        (any::<usize>(), any::<usize>()).prop_map(|(from, to)| Edit::Copy(from, to)),
        (any::<usize>(), "[ \r{}a\"]{0,3}").prop_map(|(at, line)| Edit::Insert(at, line)),
        (any::<usize>(), any::<u8>()).prop_map(|(at, byte)| Edit::Byte(at, byte)),
        any::<usize>().prop_map(Edit::Truncate),
    ]
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig {
        failure_persistence: None,
        cases: 400,
        ..Default::default()
    })]

    /// With the final seals from the store, every change to the trace or the ledger is detected.
    #[test]
    fn every_edit_of_a_line_or_a_run_is_detected(in_ledger: bool, edit in edits()) {
        thread_local! {
            static SEALED: (TraceFolder, Vec<FinalSeal>) = {
                let (traces, mut known) = in_turn(&["a", "b"]);
                let (mut one, mut other) = (
                    recorder(&traces.folder, &traces.keys, "c"),
                    recorder(&traces.folder, &traces.keys, "d"),
                );
                for step in 1..=3 {
                    one.line(&step_line("c", step)).unwrap();
                    other.line(&step_line("d", step)).unwrap();
                }
                known.extend([one.end().unwrap().unwrap(), other.end().unwrap().unwrap()]);
                (traces, known)
            };
        }
        SEALED.with(|(traces, known)| {
            let path = traces.folder.path().join(if in_ledger { LEDGER_FILE } else { STEPS_FILE });
            let text = std::fs::read(&path).unwrap();
            let edited = edit.apply(&text);
            std::fs::write(&path, &edited).unwrap();
            let verified = traces.verified(known);
            std::fs::write(&path, &text).unwrap();
            assert_eq!(is_valid(&verified), edited == text, "{edit:?}: {verified:?}");
        });
    }
}
