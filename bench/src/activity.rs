//! What the kernel did during a benchmark, beside the messages themselves: the kernel's counters, summed over all
//! cores, when the clock was stopped less when it was started.
//!
//! With the feature `uncounted` they are all zero.

use core::fmt;

use magpie::stats;

/// The counters; as text, the words of a `@bench` line.
#[derive(Clone, Copy)]
pub struct Activity {
    /// Turns of processes, the workers among them.
    turns: u64,
    /// Idle cores woken by another core.
    wakes: u64,
    /// Mailboxes stolen.
    mailbox_steals: u64,
    /// Processes stolen.
    process_steals: u64,
    /// Searches for a mailbox to steal.
    mailbox_attempts: u64,
    /// Victims tried for a process to steal.
    process_attempts: u64,
    /// Times a core waited for an event.
    dozes: u64,
    /// Times a core waited for an interrupt.
    sleeps: u64,
}

impl Activity {
    /// Nothing.
    pub const NONE: Self = Self {
        turns: 0,
        wakes: 0,
        mailbox_steals: 0,
        process_steals: 0,
        mailbox_attempts: 0,
        process_attempts: 0,
        dozes: 0,
        sleeps: 0,
    };

    /// The counters as they are. The other cores count on meanwhile.
    pub fn now() -> Self {
        Self {
            turns: stats::total(|core| core.context_switches()),
            wakes: stats::total(|core| core.wake_latency.count()),
            mailbox_steals: stats::worker_total(|worker| worker.mailboxes_stolen.get()),
            process_steals: stats::total(|core| core.processes_stolen.get()),
            mailbox_attempts: stats::worker_total(|worker| worker.mailbox_steal_attempts.get()),
            process_attempts: stats::total(|core| core.steal_attempts.get()),
            dozes: stats::total(|core| core.dozes.get()),
            sleeps: stats::total(|core| core.sleeps.get()),
        }
    }

    /// What has been counted since `earlier`.
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            turns: self.turns - earlier.turns,
            wakes: self.wakes - earlier.wakes,
            mailbox_steals: self.mailbox_steals - earlier.mailbox_steals,
            process_steals: self.process_steals - earlier.process_steals,
            mailbox_attempts: self.mailbox_attempts - earlier.mailbox_attempts,
            process_attempts: self.process_attempts - earlier.process_attempts,
            dozes: self.dozes - earlier.dozes,
            sleeps: self.sleeps - earlier.sleeps,
        }
    }
}

impl fmt::Display for Activity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "turns={} wakes={} mailbox_steals={} process_steals={} mailbox_attempts={} process_attempts={} \
             dozes={} sleeps={}",
            self.turns,
            self.wakes,
            self.mailbox_steals,
            self.process_steals,
            self.mailbox_attempts,
            self.process_attempts,
            self.dozes,
            self.sleeps
        )
    }
}
