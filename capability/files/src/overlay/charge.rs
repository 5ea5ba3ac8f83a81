//! The charge for the memory that an overlay uses.

use std::fmt;

use super::Overlay;
use crate::error::FilesError;
use crate::path::RunPath;

/// A port through which an overlay charges its memory to an account.
pub trait MemoryCharge: Send + fmt::Debug {
    /// Charges this number of bytes instead of the current number. Charging fewer bytes always
    /// succeeds.
    ///
    /// # Errors
    /// If the account has no memory for them. The error is the reason for the run's author, and the
    /// charge is unchanged.
    fn resize(&mut self, bytes: u64) -> Result<(), String>;
}

/// The charge of an overlay, if its memory is charged to an account.
#[derive(Debug, Default)]
pub(super) struct Charged {
    charge: Option<Box<dyn MemoryCharge>>,
    bytes: u64,
}

impl Charged {
    /// Charges at least this number of bytes. `path` is the entry that needs them, if there is only
    /// one.
    pub(super) fn grow_to(&mut self, path: Option<&RunPath>, bytes: u64) -> Result<(), FilesError> {
        let Some(charge) = self.charge.as_mut().filter(|_| bytes > self.bytes) else {
            return Ok(());
        };
        charge.resize(bytes).map_err(|why| match path {
            Some(path) => FilesError::no_memory(path, &why),
            None => FilesError::no_memory_for_files(&why),
        })?;
        self.bytes = bytes;
        Ok(())
    }
}

impl Overlay {
    /// Charges the memory to another account. If that fails, the memory is charged to none.
    pub(crate) fn charge(&mut self, charge: Box<dyn MemoryCharge>) -> Result<(), FilesError> {
        // The earlier charge is released first, because both may be for the same account.
        drop(std::mem::take(&mut self.charged));
        let mut charged = Charged { charge: Some(charge), bytes: 0 };
        charged.grow_to(None, self.layer.used())?;
        self.charged = charged;
        Ok(())
    }

    /// Returns true if the memory is charged to an account.
    pub(crate) fn is_charged(&self) -> bool {
        self.charged.charge.is_some()
    }

    /// Adjusts the charge to the memory that the overlay uses. Nodes for removed entries of the base
    /// are charged here alone, because a removal is never refused for lack of memory.
    pub(crate) fn settle(&mut self) {
        let (used, Charged { charge, bytes }) = (self.layer.used(), &mut self.charged);
        if let Some(charge) = charge.as_mut().filter(|_| used != *bytes)
            && charge.resize(used).is_ok()
        {
            *bytes = used;
        }
    }
}
