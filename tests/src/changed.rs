//! Settings that a test changes for its own time.

use alloc::vec::Vec;

use magpie::sched::{self, Setting};

use crate::Failure;

/// Settings that were changed; dropped, they are as before.
pub struct Changed(Vec<(Setting, u64)>);

impl Changed {
    /// Changes these, in this order.
    ///
    /// # Errors
    /// When a value is out of range; what was changed is as before.
    pub fn new(changes: &[(Setting, u64)]) -> Result<Self, Failure> {
        let mut before = Self(Vec::new());
        for (setting, value) in changes {
            before.0.push((*setting, sched::setting(*setting)));
            if sched::set_setting(*setting, *value).is_err() {
                return Err(Failure(alloc::format!("{setting:?} cannot be {value}")));
            }
        }
        Ok(before)
    }

    /// A slice so long that nothing is suspended: for promises that a suspension would rightly change, such as
    /// who finds a mailbox full while a behaviour runs.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn no_preemption() -> Result<Self, Failure> {
        Self::new(&[(Setting::SliceMicroseconds, 1_000_000)])
    }
}

impl Drop for Changed {
    fn drop(&mut self) {
        for (setting, value) in self.0.drain(..).rev() {
            // It had this value before, so it is in range.
            let _ = sched::set_setting(setting, value);
        }
    }
}
