//! `json.query`: a jq filter, run as a guest of the sandbox, so that one without an end meets a clock and a memory of its own.

use std::time::{Duration, Instant};

use wattle_rt::{Account, Code, Failure, GuestBounds, GuestFault, Run, quote};

use super::MOST;
use crate::QUOTED;
use crate::guests::LazyGuest;

/// Built from `shell/toolbox/jq`.
static JQ: LazyGuest = LazyGuest::new("jq", include_bytes!("jq.wasm"));
/// The most memory that a filter may use, in bytes.
const MEMORY: usize = 128 << 20;
/// The longest filter, in bytes.
const FILTER: usize = 16 << 10;
/// The most bytes of output; the guest has the same bound.
const OUTPUT: usize = 9 << 20;

pub(super) async fn query(run: &mut Run, doc: String, filter: String) -> Result<Vec<u8>, Failure> {
    let now = crate::sys::now_ms(run) as f64 / 1_000.0;
    apply(run.account(), &filter, doc.as_bytes(), now, run.deadline()).await
}

/// Gives what a jq filter puts out for a JSON document of at most 16 MiB, one value a line. It runs in a sandbox of its own; `now` is what
/// it takes for the time, in seconds since 1970, and at the deadline it ends.
///
/// # Errors
/// Where the filter or the document cannot be read, the filter fails, or it takes too much time or memory.
pub async fn jq(filter: &str, doc: &[u8], now: f64, deadline: Instant) -> Result<Vec<u8>, Failure> {
    apply(&Account::of_process(usize::MAX), filter, doc, now, deadline).await
}

async fn apply(account: &Account, filter: &str, doc: &[u8], now: f64, until: Instant) -> Result<Vec<u8>, Failure> {
    let filter_words = quote(filter, QUOTED);
    if filter.len() > FILTER {
        return Err(Failure::new(Code::EPARSE, format!("the filter has {} bytes, more than {FILTER}", filter.len())));
    }
    if doc.len() > MOST {
        let words =
            format!("the document has {} bytes, more than 16 MiB; take it apart with `str.lines` first", doc.len());
        return Err(Failure::new(Code::ENOMEM, words));
    }
    let bounds = GuestBounds { memory: MEMORY, cpu: Duration::MAX, output: OUTPUT, until };
    let answer = JQ.get().await?.call(account, (filter.as_bytes(), doc), now, bounds).await;
    let answer = answer.map_err(|fault| match fault {
        GuestFault::Time => {
            Failure::new(Code::ETIME, format!("the filter {filter_words} did not end in the run's time"))
        }
        GuestFault::Stack => {
            let words = "nests too deep; a recursion needs an end, and `reduce`, `foreach` and `limit` nest nothing";
            Failure::new(Code::EBOUND, format!("the filter {filter_words} or the document {words}"))
        }
        GuestFault::Memory | GuestFault::Output => {
            Failure::new(Code::ENOMEM, format!("the filter {filter_words} takes more than 128 MiB"))
        }
        GuestFault::Crash => {
            let words = "made jq crash, which is a bug of jq; write it in another way";
            Failure::new(Code::ENOMEM, format!("the filter {filter_words} {words}"))
        }
        GuestFault::Account(failure) => failure,
        GuestFault::Engine(error) => Failure::new(Code::EREMOTE, format!("jq failed: {error}")),
    })?;
    let reason = || String::from_utf8_lossy(&answer.output).into_owned();
    match answer.status {
        0 => Ok(answer.output),
        1 => Err(Failure::new(Code::EPARSE, format!("the filter {filter_words} is no jq: {}", reason()))),
        2 => Err(Failure::new(Code::EPARSE, format!("the text is no JSON: {}", reason()))),
        3 => Err(Failure::new(Code::ETRFM, format!("the filter {filter_words} failed: {}", reason()))),
        _ => Err(Failure::new(Code::ENOMEM, format!("the filter {filter_words} puts out more than 8 MiB"))),
    }
}
