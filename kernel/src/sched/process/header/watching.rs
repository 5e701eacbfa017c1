//! The end of a process, for those who watch it: who may, and what they are told.

use super::Header;
use crate::arch::atomic::Ordering;
use crate::mem::OutOfMemory;
use crate::sync::Identity;
use crate::watch::{self, Exit, Watch, Watcher};

impl Header {
    /// Its run state says by now that it has ended. Whether somebody may watch it, who is then to be told.
    #[inline(always)]
    pub(crate) fn is_watched_at_end(&self) -> bool {
        self.watched.after_end()
    }

    /// What those who watch it are told when it has ended so.
    pub(crate) fn told(&self, exit: Exit) -> Exit {
        if exit == Exit::Normal && self.has_failed() { Exit::Failed } else { exit }
    }

    /// It says itself, in its last turn, that it has failed.
    pub(crate) fn note_failed(&self) {
        // Relaxed: read after its end, which is seen through its run state, or on the core that it ended on.
        self.has_failed.store(true, Ordering::Relaxed);
    }

    pub(crate) fn identity(&self) -> Identity {
        Identity::Process(core::ptr::from_ref(self).addr())
    }

    /// Has `watcher` told when the process ends, whatever ends it: exactly once, and at once if it has ended already. See
    /// [`watch`](mod@crate::watch).
    ///
    /// ```
    /// use magpie::mem::OutOfMemory;
    /// use magpie::sched::ProcessRef;
    /// use magpie::watch::{Watch, Watcher};
    /// fn watch_all(processes: &[ProcessRef], watcher: &impl Watcher) -> Result<Vec<Watch>, OutOfMemory> {
    ///     processes.iter().map(|process| process.watch(watcher)).collect()
    /// }
    /// ```
    ///
    /// # Errors
    /// When there is no memory for it: 64 bytes.
    pub fn watch(&self, watcher: &impl Watcher) -> Result<Watch, OutOfMemory> {
        watch::watch(self.identity(), watcher, &self.watched, || !self.is_done())
    }

    /// Whether it has said itself that it failed: a [supervisor](crate::supervise) that gave up, or a child that returned an error.
    pub fn has_failed(&self) -> bool {
        // Relaxed: see `note_failed`.
        self.has_failed.load(Ordering::Relaxed)
    }
}
