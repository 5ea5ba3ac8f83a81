//! `wattle expand`: prints the module that a program expands to.

use wattle_agent::host::capability;
use wattle_agent::host::rt::{Signatures, assemble};

use crate::args::ExpandArgs;
use crate::fault::{Exit, Fault};
use crate::{input, output};

/// Prints the module's source. Errors in the program go to stderr.
pub(crate) fn expand(args: &ExpandArgs) -> Result<Exit, Fault> {
    let source = input::text(&args.file)?;
    let functions = capability::ALL.iter().flat_map(|c| c.functions);
    match assemble(&source, &Signatures::new(functions.map(|f| f.signature))) {
        Ok(assembled) => {
            assembled
                .warnings
                .iter()
                .for_each(|w| output::note(&output::visible(w.to_string().trim_end())));
            output::text(&assembled.module).map(Exit::from)
        }
        Err(diagnostic) => {
            output::note(&output::visible(diagnostic.to_string().trim_end()));
            Ok(Exit::Failed)
        }
    }
}
