//! `wattle store`: copies, checks, compacts and measures whole stores.

use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use wattle_agent::Store;
use wattle_agent::host::{CopyPhase, CopyProgress, StoreAddress, StoreStats, copy_store};

use crate::args::{StoreArgs, StoreCommand};
use crate::config::{Config, Layer, StoreLocation};
use crate::fault::{Exit, Fault};
use crate::output::{self, visible};
use crate::progress::{Bar, counted, size};
use crate::{setup, trust};

/// Number of hexadecimal digits printed for each hash.
const HASH: usize = 16;

/// Runs a `store` command.
pub(crate) async fn store(command: StoreCommand, flags: &[Layer]) -> Result<Exit, Fault> {
    match command {
        StoreCommand::Copy { from, to, json } => copy(&from, &to, json).await?,
        StoreCommand::Check(args) => return check(args, flags).await,
        StoreCommand::Vacuum(args) => vacuum(args, flags).await?,
        StoreCommand::Stats(args) => stats(args, flags).await?,
        StoreCommand::AcceptKeys(args) => accept_keys(args, flags).await?,
    }
    Ok(Exit::Done)
}

/// Opens the store named by the arguments or the settings. The store must exist.
fn open(args: &StoreArgs, flags: &[Layer]) -> Result<(Config, Store), Fault> {
    let named = Layer { store: args.store.clone().map(Some), ..Layer::default() };
    let config = trust::gather(&[&[named], flags].concat())?;
    let Some(store) = setup::store_if_there(&config)? else {
        let shown = config.store.value.as_ref().map(ToString::to_string).unwrap_or_default();
        return Err(Fault::usage(format!("there is no store `{shown}`"))
            .hint("name the file or the URL of a store"));
    };
    let store = store.file().clone();
    Ok((config, store))
}

fn address(location: &StoreLocation) -> StoreAddress {
    match location {
        StoreLocation::File(path) => StoreAddress::File(path.clone()),
        StoreLocation::Database(url) => StoreAddress::Database(url.clone()),
    }
}

async fn copy(from: &StoreLocation, to: &StoreLocation, json: bool) -> Result<(), Fault> {
    let bars: Mutex<Option<(CopyPhase, Bar)>> = Mutex::default();
    let has_begun = AtomicBool::new(false);
    let on_progress = move |progress: CopyProgress| {
        if !has_begun.swap(true, Ordering::Relaxed) && progress.done > 0 {
            output::note(&format!("continuing after {} of {} rows", progress.done, progress.total));
        }
        show(&mut bars.lock(), progress);
    };
    let done = copy_store(&address(from), &address(to), on_progress).await?;
    if json {
        return output::json(&done);
    }
    let line = |table: &wattle_agent::host::CopiedTable| {
        format!("{:<14} {:>9} rows  {}\n", table.table, table.rows, short(&table.hash))
    };
    output::data(done.tables.iter().map(line).collect::<String>().as_bytes())?;
    output::note(
        "both stores have the same content; records that are encrypted need the same folder `keys`",
    );
    Ok(())
}

/// Updates the progress bar of a store copy. Each phase of the copy has its own bar.
fn show(shown: &mut Option<(CopyPhase, Bar)>, progress: CopyProgress) {
    let CopyProgress { phase, done, total } = progress;
    let count = |rows: u64| usize::try_from(rows).unwrap_or(usize::MAX);
    if shown.as_ref().is_none_or(|(of, _)| *of != phase) {
        let noun = match phase {
            CopyPhase::Copying => "rows copied",
            CopyPhase::Verifying => "rows compared",
        };
        // The previous bar must disappear before the next one is shown.
        drop(shown.take());
        *shown = Some((phase, Bar::new(count(total), noun)));
    }
    if let Some((_, bar)) = shown {
        bar.set(count(done));
    }
}

fn short(hash: &str) -> &str {
    hash.get(..HASH).unwrap_or(hash)
}

async fn check(args: StoreArgs, flags: &[Layer]) -> Result<Exit, Fault> {
    let (config, store) = open(&args, flags)?;
    let found = store.inspect(setup::keys(&config)).await?;
    let exit = Exit::of(found.findings.is_empty());
    if args.json {
        output::json(&found)?;
        return Ok(exit);
    }
    let lines = found.findings.iter().map(|finding| format!("{}\n", visible(&finding.to_string())));
    output::data(lines.collect::<String>().as_bytes())?;
    if found.locked > 0 {
        let message =
            format!("{} encrypted records have no key here, and were not read", found.locked);
        output::warn(&message);
    }
    let rows = counted(found.rows, "row");
    output::note(&format!("{rows} checked, {}", counted(found.findings.len(), "finding")));
    Ok(exit)
}

async fn accept_keys(args: StoreArgs, flags: &[Layer]) -> Result<(), Fault> {
    let (config, store) = open(&args, flags)?;
    let Some(keys) = setup::keys(&config) else { return Err(Fault::failed("there are no keys")) };
    let forgotten = store.accept_keys(&keys).await?;
    let lines: Vec<String> = forgotten.iter().map(ToString::to_string).collect();
    if args.json {
        return output::json(&serde_json::json!({"forgotten": lines}));
    }
    if lines.is_empty() {
        output::note("the store knows all keys that are here");
    }
    lines.iter().try_for_each(|line| output::text(&visible(&format!("accepted: {line}"))))
}

async fn vacuum(args: StoreArgs, flags: &[Layer]) -> Result<(), Fault> {
    let (_, store) = open(&args, flags)?;
    let (before, after) = store.vacuum().await?;
    if args.json {
        output::json(&serde_json::json!({"before": before, "after": after}))
    } else {
        output::text(&format!("{} before, {} after", size(before), size(after)))
    }
}

async fn stats(args: StoreArgs, flags: &[Layer]) -> Result<(), Fault> {
    let (_, store) = open(&args, flags)?;
    let stats = store.stats().await?;
    if args.json { output::json(&stats) } else { output::data(as_text(&stats).as_bytes()) }
}

fn as_text(stats: &StoreStats) -> String {
    let mut text = String::new();
    for table in &stats.tables {
        let line =
            format!("{:<14} {:>9} rows  {:>10}\n", table.table, table.rows, size(table.bytes));
        text.push_str(&line);
    }
    let runs: Vec<String> =
        stats.runs.iter().map(|(status, count)| format!("{count} {status}")).collect();
    let runs = if runs.is_empty() { "none".to_owned() } else { runs.join(", ") };
    let oldest = stats
        .oldest_run
        .map_or("-".to_owned(), |made| format!("{} ago", super::session::ago(made)));
    let StoreStats { bytes, sessions, queued, replicas, .. } = stats;
    text + &format!(
        "size           {}\nruns           {runs}\nqueued         {queued}\noldest run     \
         {oldest}\nsessions       {sessions}\nother users    {replicas}\n",
        size(*bytes)
    )
}
