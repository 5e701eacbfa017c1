//! What does not fit the table: sizes of gulps, waiting times, refusals; summed over all cores.

use core::fmt;

use super::counter::{Histogram, Summary};
use super::longest::nanoseconds;
use super::{CoreStatistics, WorkerStatistics, cores};

/// Formats as a few lines of text.
pub struct Details;

impl fmt::Display for Details {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "gulp sizes:")?;
        let mut sizes = [0; Histogram::BUCKETS];
        for worker in cores().map(super::worker) {
            for (sum, count) in sizes.iter_mut().zip(worker.gulp_sizes.counts()) {
                *sum += count;
            }
        }
        for (bucket, count) in sizes.iter().enumerate().filter(|(_, count)| **count > 0) {
            write!(f, " {}+: {count}", Histogram::least(bucket))?;
        }
        writeln!(f)?;
        times(f, "mail in its mailbox", cores().map(|id| &super::worker(id).mail_latency))?;
        times(f, "process in its queue", cores().map(|id| &super::core(id).scheduling_latency))?;
        times(f, "idle core woken", cores().map(|id| &super::core(id).wake_latency))?;
        let of = |counter: fn(&CoreStatistics) -> u64| super::total(counter);
        let mail = |counter: fn(&WorkerStatistics) -> u64| super::worker_total(counter);
        write!(
            f,
            "mailboxes handled for idle workers {}, sent home {}\n\
             dozes {} sleeps {} | turns {} preemptions for something urgent {} without a stack {} detachments {} refused {} deadlines missed {} batches cut {}\n\
             balancing attempts {} processes {}",
            mail(|worker| worker.guests.get()),
            mail(|worker| worker.guests_sent_home.get()),
            of(|core| core.dozes.get()),
            of(|core| core.sleeps.get()),
            of(|core| core.context_switches()),
            of(|core| core.urgent_preemptions.get()),
            of(|core| core.preemptions_without_stack.get()),
            mail(|worker| worker.detached_behaviours.get()),
            of(|core| core.detachments_refused.get()),
            of(|core| core.deadlines_missed.get()),
            mail(|worker| worker.cut_batches.get()),
            of(|core| core.balance_attempts.get()),
            of(|core| core.processes_balanced.get()),
        )
    }
}

/// A line on how long something took, on average and at most, over all cores.
fn times<'a>(
    f: &mut fmt::Formatter<'_>,
    what: &str,
    cores: impl Iterator<Item = &'a Summary>,
) -> fmt::Result {
    let (mut count, mut sum, mut largest) = (0, 0, 0);
    for summary in cores {
        count += summary.count();
        sum += summary.sum();
        largest = summary.largest().max(largest);
    }
    let microseconds = |ticks| nanoseconds(ticks) / 1000;
    writeln!(
        f,
        "{what}: {count} times, {} us on average, {} us at most",
        microseconds(sum.checked_div(count).unwrap_or(0)),
        microseconds(largest)
    )
}
