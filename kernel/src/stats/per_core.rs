//! Each core's counters, in statics on cache lines of their own.

use super::activity::TimeSheet;
use super::counter::{Counter, Histogram, Summary};
use super::longest::{Longest, Stretch};
use crate::arch::{CoreId, MAX_CORES, percpu};

/// Rules of the migration policy; `sched::Rule` has as many.
const RULES: usize = 9;

/// What a core's scheduler counted.
#[repr(align(128))]
pub struct CoreStatistics {
    /// Clock ticks that processes waited in a queue, each before one of its turns.
    pub scheduling_latency: Summary,
    /// Reductions charged.
    pub reductions: Counter,
    /// What it spent its time on.
    pub time: TimeSheet,
    /// Times it waited for an event.
    pub dozes: Counter,
    /// Times it waited for an interrupt.
    pub sleeps: Counter,
    /// Clock ticks from another core's waking this one, when it was idle, until it went on.
    pub wake_latency: Summary,
    /// Victims that it tried.
    pub steal_attempts: Counter,
    /// Searches that found processes.
    pub steals: Counter,
    /// Processes taken from other cores.
    pub processes_stolen: Counter,
    /// Searches that found nothing.
    pub steal_failures_empty: Counter,
    /// Searches not made because enough others searched.
    pub steal_failures_not_thief: Counter,
    /// Items that another core took first.
    pub steal_failures_lost_race: Counter,
    /// Processes handed on because this core is offline.
    pub processes_evacuated: Counter,
    /// Turns preempted: suspended on a lent stack.
    pub preemptions: Counter,
    /// Of these, those for something more urgent.
    pub urgent_preemptions: Counter,
    /// Turns of processes with a deadline that ended after it: see [`Spawn::deadline`](crate::sched::Spawn::deadline).
    pub deadlines_missed: Counter,
    /// Turns not preempted because no stack was left.
    pub preemptions_without_stack: Counter,
    /// Turns of residents not preempted because they had nothing to detach.
    pub detachments_refused: Counter,
    /// Turns that ended in a panic or fault.
    pub crashes: Counter,
    /// Bytes of cells, states and tasks of processes and actors that crashed, now free for others.
    pub crash_bytes_returned: Counter,
    /// Bytes of timers, asks and mailboxes of processes and actors that crashed. At most this many stay, because what
    /// they had in hand may belong to others and is not given back on their behalf.
    pub crash_bytes_in_doubt: Counter,
    /// Times that the balancer tried to take processes.
    pub balance_attempts: Counter,
    /// Processes that it took.
    pub processes_balanced: Counter,
    /// Moves refused, by rule of the migration policy.
    pub migrations_refused: [Counter; RULES],
    /// The longest turn that a process has had, or part of one until it was suspended, with the interrupts that came meanwhile; the
    /// process's type or, for a behaviour that was suspended, the actor's, and the process's number. Many behaviours may lie in
    /// one turn of an executor's worker.
    pub longest_turn: Longest,
    /// The longest handler of an interrupt: the timer's or a device's, and what it interrupted. Two readings of the clock, between
    /// which the handler lies; saving and restoring registers, and the way to the handler and back, come to a few hundred instructions
    /// more.
    pub longest_interrupt: Longest,
    /// The longest stretch with interrupts masked that is no more than a handler (see [`Self::longest_masked`] for both): the way into
    /// a preemption, a resumption, a crash or a collection, and the instruction that was interrupted, or zero. The search of
    /// an idle core that ends in a wait for an interrupt is not measured.
    pub(crate) longest_transition: Longest,
    /// The longest that a preemption was postponed by a section with preemption disabled: from the interrupt that wanted it to the end
    /// of the section; the process's type, and the instruction that was interrupted. So it is a part of that section only, and
    /// sections in which no interrupt wanted to preempt are not seen: to count them would cost each of them.
    pub longest_postponement: Longest,
    /// Of the time spent running, the clock ticks that went by between turns: what the kernel takes to end one, and to choose and begin the next.
    /// Counted while a trace is on, because it takes a look at the clock in each turn, and a sum. What the kernel does within a turn, such as
    /// sending, is the turn's.
    #[cfg(feature = "traced")]
    pub kernel: Counter,
}

impl CoreStatistics {
    /// A process that waited since then has its turn. Owner only.
    #[inline(always)]
    pub(crate) fn note_waited(&self, since: u64, now: u64) {
        // SAFETY: that is where the summary lies.
        unsafe {
            Summary::record_time_at::<{ core::mem::offset_of!(Self, scheduling_latency) }>(
                core::ptr::from_ref(self).cast(),
                since,
                now,
            );
        }
    }

    /// Turns given to processes. As each waited before it, this is the number of waits, and not counted again.
    pub fn context_switches(&self) -> u64 {
        self.scheduling_latency.count()
    }

    /// The longest stretch with interrupts masked: a handler, or the way into or out of a suspended turn, a crash or a collection.
    pub fn longest_masked(&self) -> Option<Stretch> {
        let both = [self.longest_interrupt.get(), self.longest_transition.get()];
        both.into_iter().flatten().max_by_key(|stretch| stretch.ticks)
    }

    const fn new() -> Self {
        Self {
            scheduling_latency: Summary::new(),
            reductions: Counter::new(),
            time: TimeSheet::new(),
            dozes: Counter::new(),
            sleeps: Counter::new(),
            wake_latency: Summary::new(),
            steal_attempts: Counter::new(),
            steals: Counter::new(),
            processes_stolen: Counter::new(),
            steal_failures_empty: Counter::new(),
            steal_failures_not_thief: Counter::new(),
            steal_failures_lost_race: Counter::new(),
            processes_evacuated: Counter::new(),
            preemptions: Counter::new(),
            urgent_preemptions: Counter::new(),
            deadlines_missed: Counter::new(),
            preemptions_without_stack: Counter::new(),
            detachments_refused: Counter::new(),
            crashes: Counter::new(),
            crash_bytes_returned: Counter::new(),
            crash_bytes_in_doubt: Counter::new(),
            balance_attempts: Counter::new(),
            processes_balanced: Counter::new(),
            migrations_refused: [const { Counter::new() }; RULES],
            longest_turn: Longest::new(),
            longest_interrupt: Longest::new(),
            longest_transition: Longest::new(),
            longest_postponement: Longest::new(),
            #[cfg(feature = "traced")]
            kernel: Counter::new(),
        }
    }
}

/// What the workers on a core counted.
#[repr(align(128))]
pub struct WorkerStatistics {
    /// Actors spawned here.
    pub actors_created: Counter,
    /// Actors whose behaviour ended them.
    pub actors_ended: Counter,
    /// Actors whose behaviour panicked or faulted.
    pub actors_crashed: Counter,
    /// Messages delivered to a behaviour.
    pub messages_handled: Counter,
    /// Batches: mailboxes whose mail was taken, by the worker or by a sender on its core.
    pub gulps: Counter,
    /// Mailboxes found empty after all.
    pub empty_gulps: Counter,
    /// Mailboxes from which another worker was still handling a batch.
    pub missed_gulps: Counter,
    /// Messages in a batch. Those that senders on the same core added to one that was gulped are not in it.
    pub gulp_sizes: Histogram,
    /// Clock ticks from the first message in a mailbox until it was gulped; taken only while
    /// [`timing`](super::set_timing) is on.
    pub mail_latency: Summary,
    /// Searches for a mailbox to steal.
    pub mailbox_steal_attempts: Counter,
    /// Mailboxes stolen.
    pub mailboxes_stolen: Counter,
    /// Messages in them.
    pub messages_stolen: Counter,
    /// Searches that found no mailbox to swap.
    pub steal_failures_no_candidate: Counter,
    /// Swaps lost on the thief's own slot.
    pub steal_failures_lost_thief_slot: Counter,
    /// Swaps lost on the victim's slot.
    pub steal_failures_lost_victim_slot: Counter,
    /// Swaps not tried because the victim was swapping that slot.
    pub steal_failures_victim_slot_null: Counter,
    /// Mailboxes of idle workers that this one was given to handle.
    pub guests: Counter,
    /// Guests that waited too long, so that their owner was woken.
    pub guests_sent_home: Counter,
    /// The most mailboxes that a worker has had in hand at once.
    pub most_in_hand: Counter,
    /// Messages dropped because their actor had ended.
    pub dead_letters: Counter,
    /// Behaviours that outlived their slice, and went on apart from their worker.
    pub detached_behaviours: Counter,
    /// Batches that stopped between two messages, because a slice had ended, and went on in the next turn.
    pub cut_batches: Counter,
}

impl WorkerStatistics {
    const fn new() -> Self {
        Self {
            actors_created: Counter::new(),
            actors_ended: Counter::new(),
            actors_crashed: Counter::new(),
            messages_handled: Counter::new(),
            gulps: Counter::new(),
            empty_gulps: Counter::new(),
            missed_gulps: Counter::new(),
            gulp_sizes: Histogram::new(),
            mail_latency: Summary::new(),
            mailbox_steal_attempts: Counter::new(),
            mailboxes_stolen: Counter::new(),
            messages_stolen: Counter::new(),
            steal_failures_no_candidate: Counter::new(),
            steal_failures_lost_thief_slot: Counter::new(),
            steal_failures_lost_victim_slot: Counter::new(),
            steal_failures_victim_slot_null: Counter::new(),
            guests: Counter::new(),
            guests_sent_home: Counter::new(),
            most_in_hand: Counter::new(),
            dead_letters: Counter::new(),
            detached_behaviours: Counter::new(),
            cut_batches: Counter::new(),
        }
    }
}

static CORES: [CoreStatistics; MAX_CORES] = [const { CoreStatistics::new() }; MAX_CORES];
static WORKERS: [WorkerStatistics; MAX_CORES] = [const { WorkerStatistics::new() }; MAX_CORES];

/// What `core`'s scheduler counted.
pub fn core(core: CoreId) -> &'static CoreStatistics {
    &CORES[core.index()]
}

/// What the workers on `core` counted.
pub fn worker(core: CoreId) -> &'static WorkerStatistics {
    &WORKERS[core.index()]
}

/// The schedulers' counters of the core that runs the caller, which has disabled preemption.
pub fn core_here() -> &'static CoreStatistics {
    &CORES[percpu::core_number()]
}

/// The workers' counters of the core that runs the caller, which has disabled preemption.
#[inline(always)]
pub fn worker_here() -> &'static WorkerStatistics {
    worker_by_number(percpu::core_number())
}

/// The same of the core with this number.
#[inline(always)]
pub fn worker_by_number(core: usize) -> &'static WorkerStatistics {
    &WORKERS[core]
}
