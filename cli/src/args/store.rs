//! The commands for whole stores.

use clap::{Args, Subcommand};

use crate::config::StoreLocation;

/// The commands of `store`.
#[derive(Debug, Subcommand)]
pub(crate) enum StoreCommand {
    /// Copy a store to a new one; run it again to continue
    Copy {
        /// The store to copy: a file, or a URL `postgres://…`
        from: StoreLocation,
        /// The new store: a file, or a URL `postgres://…`
        to: StoreLocation,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Check the file of a store, its references and its records
    Check(StoreArgs),
    /// Compact a store and print its size before and after
    Vacuum(StoreArgs),
    /// Show the rows, the sizes and the runs of a store
    Stats(StoreArgs),
    /// Accept the keys that are here in place of lost ones
    AcceptKeys(StoreArgs),
}

/// Arguments of the commands for one store.
#[derive(Debug, Args)]
pub(crate) struct StoreArgs {
    /// The store: a file, or a URL `postgres://…` [default: the setting]
    pub(crate) store: Option<StoreLocation>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Arguments of `prune`.
#[derive(Debug, Args)]
pub(crate) struct PruneArgs {
    /// The store: a file, or a URL `postgres://…` [default: the setting]
    pub(crate) store: Option<StoreLocation>,
    /// Show what would be removed, and remove nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}
