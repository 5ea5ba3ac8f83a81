//! The charge for the files that runs and programs keep in memory.

use std::sync::Arc;

use wattle_capability::files::FilesError;
use wattle_capability::fs::{self, Fs};
use wattle_capability::publish::Publish;
use wattle_rt::{Account, Grants, Runtime};

/// Charges the memory of the granted files to an account. Unless `again` is true, files that are
/// already charged to an account stay charged to that one.
pub(crate) fn charge_files(
    grants: &Grants,
    account: &Account,
    again: bool,
) -> Result<(), FilesError> {
    let files = grants.config::<Fs>().map(|fs| Arc::clone(&fs.0));
    let public = grants.config::<Publish>().and_then(|publish| publish.0.clone());
    let mut charged = files.iter().chain(&public).filter(|files| again || !files.is_charged());
    charged.try_for_each(|files| fs::charge(files, account, 0))
}

/// Returns the grants for a program outside of a run. If they have no account, opens one for the
/// program and for its files.
///
/// # Errors
/// If the owner of the runtime has no memory for the files.
pub fn with_account(runtime: &Runtime, grants: &Arc<Grants>) -> Result<Arc<Grants>, FilesError> {
    if grants.account().is_some() {
        return Ok(Arc::clone(grants));
    }
    let account = runtime.open_account();
    charge_files(grants, &account, false)?;
    Ok(Arc::new(grants.as_ref().clone().charged_to(account)))
}
