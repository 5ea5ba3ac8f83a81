//! `json.query`: applies a jq filter in a sandboxed guest, within a memory limit and the run's
//! deadline.

use std::time::{Duration, Instant};

use wattle_rt::tape::RecordedValue;
use wattle_rt::{Account, Code, Failure, GuestBounds, GuestFault, Run, quote};

use super::{MAX_DOCUMENT, document};
use crate::QUOTED;
use crate::guests::LazyGuest;
use crate::map;

/// The jq guest, built from `shell/toolbox/jq`.
static JQ: LazyGuest = LazyGuest::new("jq", include_bytes!("jq.wasm.zst"));
/// Maximum memory of a filter, in bytes.
const MAX_MEMORY: usize = 128 << 20;
/// Maximum length of a filter, in bytes.
const MAX_FILTER: usize = 16 << 10;
/// Maximum size of the output, in bytes. The guest itself fails if its output exceeds 8 MiB.
const MAX_OUTPUT: usize = 9 << 20;

pub(crate) async fn query(run: &mut Run, doc: String, filter: String) -> Result<Vec<u8>, Failure> {
    query_with(run, doc, filter, None).await
}

pub(super) async fn query_with(
    run: &mut Run,
    doc: String,
    filter: String,
    vars: Option<i32>,
) -> Result<Vec<u8>, Failure> {
    let now = clock(run, &filter)? as f64 / 1_000.0;
    let vars = match vars {
        Some(map) => variables(run, map)?,
        None => "{}".to_owned(),
    };
    let doc = wattle_rt::without_bom(&doc).as_bytes();
    apply(run.account(), &vars, &filter, doc, now, run.deadline()).await
}

/// Returns the time that the filter's `now` returns, in milliseconds since 1970. The time is the
/// filter's only input that is not an argument, so it is recorded on the run's tape.
fn clock(run: &mut Run, filter: &str) -> Result<i64, Failure> {
    // A filter can read the clock only by the name `now`. For other filters, nothing is recorded.
    if !filter.contains("now") {
        return Ok(0);
    }
    let fresh = |run: &mut Run| Ok(crate::sys::now_ms(run));
    let again = |recorded| if let RecordedValue::Long(ms) = recorded { Some(ms) } else { None };
    run.recall("sys.time", |_| {}, fresh, again)
}

/// Encodes a filter's variables as a JSON object. `map` is the handle of the map that contains
/// them. Fails if a key is not a valid variable name.
fn variables(run: &mut Run, map: i32) -> Result<String, Failure> {
    let is_name = |name: &str| {
        name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    if let Some(name) = map::of(run, map)?.keys().find(|name| !is_name(name)) {
        let message = format!(
            "{} cannot be a variable of the filter: a name has letters, digits and _, and does \
             not start with a digit",
            quote(name, QUOTED)
        );
        return Err(Failure::new(Code::EPARSE, message));
    }
    super::make(run, map)
}

/// Applies a jq filter to a JSON document of at most 16 MiB. Returns the values that the filter
/// outputs, one per line. The filter runs in a sandbox and is stopped at the deadline. `now` is the
/// current time that the filter sees, in seconds since 1970.
///
/// # Errors
/// If the filter or the document is invalid, or if the filter fails or needs too much time or
/// memory.
pub async fn jq(filter: &str, doc: &[u8], now: f64, deadline: Instant) -> Result<Vec<u8>, Failure> {
    apply(&Account::of_process(usize::MAX), "{}", filter, doc, now, deadline).await
}

/// Memory for checking a document, in bytes per byte of its source: the keys of its open objects.
const CHECK_MEMORY: usize = 16;

/// Checks that a document is JSON, as all functions on JSON do.
fn check(account: &Account, doc: &[u8]) -> Result<(), Failure> {
    let _held = account.hold(doc.len().saturating_mul(CHECK_MEMORY).min(MAX_MEMORY))?;
    let text = std::str::from_utf8(doc).map_err(|error| {
        let place = error.valid_up_to();
        Failure::new(Code::EPARSE, format!("the text is not JSON: byte {place} is not UTF-8"))
    })?;
    document::check(text)
}

async fn apply(
    account: &Account,
    vars: &str,
    filter: &str,
    doc: &[u8],
    now: f64,
    until: Instant,
) -> Result<Vec<u8>, Failure> {
    let quoted_filter = quote(filter, QUOTED);
    if filter.len() > MAX_FILTER {
        return Err(Failure::new(
            Code::EPARSE,
            format!("the filter has {} bytes, more than {MAX_FILTER}", filter.len()),
        ));
    }
    if doc.len() > MAX_DOCUMENT {
        let message = format!(
            "the document has {} bytes, more than 16 MiB; split it with `str.lines` first",
            doc.len()
        );
        return Err(Failure::new(Code::ENOMEM, message));
    }
    // jq itself also reads NaN, comments and repeated keys.
    check(account, doc)?;
    if vars.len() > MAX_DOCUMENT {
        let message = format!("the variables have {} bytes, more than 16 MiB", vars.len());
        return Err(Failure::new(Code::ENOMEM, message));
    }
    let head = format!("{vars}\0{filter}");
    let bounds = GuestBounds { memory: MAX_MEMORY, cpu: Duration::MAX, output: MAX_OUTPUT, until };
    let answer = JQ.get().await?.call(account, head.as_bytes(), doc, now, bounds).await;
    let answer = answer.map_err(|fault| match fault {
        GuestFault::Time => Failure::new(
            Code::ETIME,
            format!("the filter {quoted_filter} did not end within the run's time"),
        ),
        GuestFault::Stack => {
            let reason = "is nested too deeply; end the recursion, or use `reduce`, `foreach` or \
                          `limit`, which do not nest";
            Failure::new(
                Code::EBOUND,
                format!("the filter {quoted_filter} or the document {reason}"),
            )
        }
        GuestFault::Memory | GuestFault::Output => Failure::new(
            Code::ENOMEM,
            format!("the filter {quoted_filter} needs more than 128 MiB"),
        ),
        GuestFault::Crash => {
            let reason = "crashed jq, which is a bug of jq; write the filter another way";
            Failure::new(Code::ENOMEM, format!("the filter {quoted_filter} {reason}"))
        }
        GuestFault::Account(failure) => failure,
        GuestFault::Engine(error) => Failure::new(Code::EREMOTE, format!("jq failed: {error}")),
    })?;
    let reason = || String::from_utf8_lossy(&answer.output).into_owned();
    match answer.status {
        0 => Ok(answer.output),
        1 => Err(Failure::new(
            Code::EPARSE,
            format!("the filter {quoted_filter} is not valid jq: {}", reason()),
        )),
        2 => Err(Failure::new(Code::EPARSE, format!("the text is not JSON: {}", reason()))),
        3 => Err(Failure::new(
            Code::ETRFM,
            format!("the filter {quoted_filter} failed: {}", reason()),
        )),
        _ => Err(Failure::new(
            Code::ENOMEM,
            format!("the filter {quoted_filter} outputs more than 8 MiB"),
        )),
    }
}
