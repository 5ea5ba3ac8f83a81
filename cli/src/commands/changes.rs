//! `wattle changes`, `wattle apply` and `wattle discard`: the changes of files that a run or a session
//! keeps, because nobody has applied them.

use std::path::PathBuf;

use serde_json::Value as Json;
use wattle_agent::host::TenantStore;
use wattle_agent::host::capability::files::Files;
use wattle_agent::host::journal::{Journal as _, RunFilter, RunRecord, Status};

use crate::args::{ChangesArgs, ChosenChangesArgs};
use crate::changes::{self, Rules};
use crate::config::{Config, Layer};
use crate::confine::confine;
use crate::fault::{Exit, Fault};
use crate::output::{self, visible};
use crate::progress::counted;
use crate::setup::{self, LAST, Session};
use crate::walls::Needs;
use crate::{threads, trust};

/// A session or a run that keeps changes, and the settings of the command.
struct Holder {
    kept: Session,
    /// What it is, with its id.
    shown: String,
    config: Config,
}

/// Lists the changes or prints them as diffs.
pub(crate) fn changes(args: ChangesArgs, flags: &[Layer]) -> Result<Exit, Fault> {
    let holder = open(&args.of, flags, true)?;
    threads::run(async move {
        let after = holder.files().await?;
        let all = changes::of(&after)?;
        if args.json {
            return output::json(&changes::to_json(&all));
        }
        let root = holder.config.root.value.display();
        let count = counted(all.len(), "change");
        output::aside(&visible(&format!("{}: {count} not applied to {root}", holder.shown)));
        let before = setup::overlay(&holder.config)?;
        all.iter().try_for_each(|change| match args.diff {
            true => output::styled(&changes::render(change, &before, &after)),
            false => output::text(&visible(&change.to_string())),
        })
    })
}

/// Applies changes to the workdir.
pub(crate) fn apply(args: ChosenChangesArgs, flags: &[Layer]) -> Result<Exit, Fault> {
    let holder = open(&args.of, flags, false)?;
    let rules = Rules::of(&holder.config);
    edit(holder, "applied", move |files| changes::apply(files, &rules, &args.paths))
}

/// Discards changes.
pub(crate) fn discard(args: ChosenChangesArgs, flags: &[Layer]) -> Result<Exit, Fault> {
    let holder = open(&args.of, flags, true)?;
    edit(holder, "discarded", move |files| changes::discard(files, &args.paths))
}

/// Changes what a run or a session keeps, and reports the number of changes that `work` returns.
fn edit(
    holder: Holder,
    done: &str,
    work: impl FnOnce(&Files) -> Result<usize, Fault>,
) -> Result<Exit, Fault> {
    threads::run(async move {
        let files = setup::overlay(&holder.config)?;
        let count = holder.kept.edit_changes(&files, work).await.map_err(|fault| {
            let is_named = fault.hinted().is_some();
            let hint = format!("`wattle changes {}` lists the changes", holder.kept.name());
            if is_named { fault } else { fault.hint(hint) }
        })?;
        let count = counted(count, "change");
        output::aside(&visible(&format!("{}: {done} {count}", holder.shown)));
        Ok(())
    })
}

impl Holder {
    /// Returns the workdir's files with the changes.
    async fn files(&self) -> Result<Files, Fault> {
        let files = setup::overlay(&self.config)?;
        self.kept.load_files(&files).await?;
        Ok(files)
    }
}

/// Finds the run or the session with an id, and confines the process. The workdir is that of the run,
/// or of the session's newest run, unless a flag names another one.
fn open(named: &str, flags: &[Layer], workdir_stays: bool) -> Result<Holder, Fault> {
    let here = trust::gather(flags)?;
    let (store, run, session) = threads::look_up(find(named, &here))?;
    let root = run.as_ref().and_then(workdir);
    let recorded = root.map(|root| Layer { root: Some(root), ..Layer::default() });
    let layers: Vec<Layer> = flags.iter().cloned().chain(recorded).collect();
    // The project file of another workdir must not name another store.
    let config = Config { store: here.store, tenant: here.tenant, ..trust::gather(&layers)? };
    confine(&config, &Needs { workdir_stays, ..Needs::default() })?;
    let run = run.map(|run| run.id).unwrap_or_default();
    let kept = Session::of_run(&store, &run, session.as_deref());
    let what = if session.is_some() { "session" } else { "run" };
    let shown = format!("the {what} {}", kept.name());
    let kept = Session { store: setup::store(&config)?, ..kept };
    Ok(Holder { kept, shown, config })
}

/// Returns the workdir of a run of the command line.
fn workdir(run: &RunRecord) -> Option<PathBuf> {
    let origin = &run.start.origin;
    origin.get("by").filter(|by| *by == "run")?;
    origin.pointer("/granted/root").and_then(Json::as_str).map(PathBuf::from)
}

/// Returns the store, a run, and the session that keeps its changes, if it is not the run itself.
async fn find(
    named: &str,
    config: &Config,
) -> Result<(TenantStore, Option<RunRecord>, Option<String>), Fault> {
    let store = setup::store(config)?;
    let newest = async |session: Option<String>| {
        let filter = RunFilter { session, limit: Some(1), ..RunFilter::default() };
        store.runs(filter).await.map(|runs| runs.into_iter().next())
    };
    let (run, session) = if named == LAST {
        let run = newest(None).await?;
        let session = store.sessions().await?.into_iter().next();
        match (run, session) {
            (Some(run), Some(session)) if run.session.is_none() && run.used > session.used => {
                (Some(run), None)
            }
            (_, Some(session)) => (None, Some(session.id)),
            (run, None) => (run, None),
        }
    } else {
        match store.run(named).await? {
            Some(run) => {
                // A child run shares the files of the run at the top of its tree.
                let top = run.start.parent.as_ref().map(|parent| parent.root.clone());
                let run = match top {
                    Some(top) => store.run(&top).await?,
                    None => Some(run),
                };
                let session = run.as_ref().and_then(|run| run.session.clone());
                (run, session)
            }
            None if store.has_session(named).await? => (None, Some(named.to_owned())),
            None => (None, None),
        }
    };
    let run = match &session {
        Some(session) => newest(Some(session.clone())).await?,
        None => run,
    };
    match (run, session) {
        (None, None) => Err(Fault::usage(format!("no run or session `{named}` in the store"))
            .hint("`wattle runs` and `wattle session list` list them; a path follows the id")),
        (Some(run), None) if run.status != Status::Ended => {
            Err(Fault::usage(format!("the run `{}` has not ended", run.id))
                .hint("its changes can be applied once it has ended"))
        }
        (run, session) => Ok((store, run, session)),
    }
}
