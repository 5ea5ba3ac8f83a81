//! `wattle man`: writes the manual pages.

use std::path::Path;

use crate::args;
use crate::fault::Fault;
use crate::output;

/// Writes a page for `wattle` and for each of its commands to a folder, which is created if it does
/// not exist. Pages of an earlier version are replaced.
pub(crate) fn man(folder: &Path) -> Result<(), Fault> {
    let written = std::fs::create_dir_all(folder)
        .and_then(|()| clap_mangen::generate_to(args::command(), folder));
    let failed = |error| Fault::failed(format!("{}: {error}", folder.display()));
    written.map_err(failed)?;
    output::aside(&format!("`man -l {}` shows the first page", folder.join("wattle.1").display()));
    Ok(())
}
