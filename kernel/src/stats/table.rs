//! The table at the end of a run.

use core::fmt;

use super::activity::Activity;
use super::per_core::{core, worker};
use crate::arch::{CoreId, clock};
use crate::machine;

/// What every core did, a line each; formats as text.
pub struct Table;

const HEADINGS: [&str; 10] = [
    "messages",
    "gulps",
    "missed",
    "attempts",
    "mb-stolen",
    "no-cand",
    "lost",
    "p-stolen",
    "preempted",
    "idle-ms",
];

fn row(id: CoreId) -> [u64; HEADINGS.len()] {
    let (scheduler, mail) = (core(id), worker(id));
    let lost = mail.steal_failures_lost_thief_slot.get()
        + mail.steal_failures_lost_victim_slot.get()
        + mail.steal_failures_victim_slot_null.get();
    [
        mail.messages_handled.get(),
        mail.gulps.get(),
        mail.missed_gulps.get(),
        mail.mailbox_steal_attempts.get(),
        mail.mailboxes_stolen.get(),
        mail.steal_failures_no_candidate.get(),
        lost,
        scheduler.processes_stolen.get(),
        scheduler.preemptions.get(),
        scheduler.time.ticks(Activity::Idle) * 1000 / clock::frequency().max(1),
    ]
}

fn line(f: &mut fmt::Formatter<'_>, values: &[u64]) -> fmt::Result {
    values.iter().try_for_each(|value| write!(f, "{value:>10}"))
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "core ")?;
        for heading in HEADINGS {
            write!(f, "{heading:>10}")?;
        }
        let mut sums = [0; HEADINGS.len()];
        for id in (0..machine::cores()).filter_map(CoreId::new) {
            let values = row(id);
            for (sum, value) in sums.iter_mut().zip(values) {
                *sum += value;
            }
            write!(f, "\n{:>4} ", id.index())?;
            line(f, &values)?;
        }
        write!(f, "\n all ")?;
        line(f, &sums)
    }
}
