//! What the host tool draws: events and statistics, sent over the serial line while the system runs.
//!
//! - Boot argument `trace`, or the command `trace start`: frequent events are written down, too, and all events are sent every 2 ms.
//! - Boot argument `series=SECONDS`, or the command `series SECONDS`: each core's statistics, that often.
//!
//! One process does both. It is urgent, because otherwise a loaded system would not be seen, and it does not keep the system from
//! having run out of work. What it has not sent when the application ends is sent then. `kernel/src/trace/frame.rs` has the format.

use core::future::pending;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use core::time::Duration;

use magpie::arch::{CoreId, MAX_CORES};
use magpie::internals::sched::waiting;
use magpie::internals::trace::{KEPT, is_on, ring, send_core, send_hello, send_statistics, set_tracing};
use magpie::log::text;
use magpie::sched::{Priority, Spawn};
use magpie::stats::{self, Activity};
use magpie::{machine, time};

use crate::arguments::seconds;

/// How long the sender waits between two looks.
const EVERY_MICROSECONDS: u64 = 2_000;
/// How long at most when there are only statistics to send: a trace may begin meanwhile.
const LOOK_MICROSECONDS: u64 = 100_000;
/// Names that are known to have been sent; one more takes another's place, which is then sent again.
const NAMES: usize = 64;

/// The number of each core's event that is sent next.
static SENT: [AtomicU64; MAX_CORES] = [const { AtomicU64::new(0) }; MAX_CORES];
/// There is a process that sends.
static IS_SENT: AtomicBool = AtomicBool::new(false);
/// How far apart statistics are sent, in microseconds; 0 for never.
static SERIES: AtomicU64 = AtomicU64::new(0);

// Relaxed throughout: numbers, from which nothing else is inferred. One process sends, and at the end who ends the system, perhaps while the
// process is suspended with a frame half made: whoever moves the number on has sent what is before it.

/// Does what the boot arguments ask for.
pub(crate) fn begin() {
    if let Some(argument) = machine::argument("series") {
        match seconds(argument) {
            Some(every) => series(every),
            None => {
                text!("boot argument series={argument} ignored: it takes seconds, from 0.01 to 3600");
            }
        }
    }
    match machine::argument("trace") {
        // For those who measure what events cost.
        Some("unsent") => set_tracing(true),
        Some(_) => start(),
        None => {}
    }
}

/// The command `trace`.
#[cfg(target_os = "none")]
pub(crate) fn switch(on: bool) {
    match (on, is_on()) {
        (true, _) => start(),
        (false, true) => {
            stop();
            text!("the trace has ended");
        }
        (false, false) => text!("there is no trace"),
    }
}

/// The command `series`.
#[cfg(target_os = "none")]
pub(crate) fn series_of(argument: &str) {
    if argument == "0" {
        SERIES.store(0, Ordering::Relaxed);
        return text!("no statistics are sent any more");
    }
    match seconds(argument) {
        Some(every) => {
            text!("statistics are sent every {argument} s from now on");
            series(every);
        }
        None => text!("series takes seconds, from 0.01 to 3600, or 0; nothing has changed"),
    }
}

/// Begins a trace, or goes on with one.
fn start() {
    for core in cores() {
        // What was before is the flight recorder's.
        SENT[core.index()].store(ring(core).written(), Ordering::Relaxed);
    }
    set_tracing(true);
    text!("a trace is sent from now on");
    begin_sending();
}

fn stop() {
    set_tracing(false);
    send_all();
}

/// Sends statistics this often from now on.
fn series(every: Duration) {
    SERIES.store(every.as_micros() as u64, Ordering::Relaxed);
    begin_sending();
}

/// The application has ended: sends the rest.
pub(crate) fn end() {
    if IS_SENT.load(Ordering::Relaxed) && is_on() {
        stop();
    }
    if SERIES.swap(0, Ordering::Relaxed) != 0 {
        cores().for_each(send_values);
    }
}

fn cores() -> impl Iterator<Item = CoreId> {
    (0..machine::cores()).filter_map(CoreId::new)
}

fn begin_sending() {
    send_hello();
    if IS_SENT.swap(true, Ordering::Relaxed) {
        return;
    }
    if let Err(error) = Spawn::new().priority(Priority::High).pinned(CoreId::BOOT).start(send()) {
        IS_SENT.store(false, Ordering::Relaxed);
        text!("neither traces nor statistics are sent: {error}");
    }
}

async fn send() {
    let mut next_values = time::Instant::now();
    loop {
        let every = SERIES.load(Ordering::Relaxed);
        if is_on() {
            send_all();
        } else if every == 0 {
            IS_SENT.store(false, Ordering::Relaxed);
            return;
        }
        if every != 0 && time::Instant::now() >= next_values {
            cores().for_each(send_values);
            next_values = time::Instant::now() + Duration::from_micros(every);
        }
        let wait = if is_on() { EVERY_MICROSECONDS } else { every.min(LOOK_MICROSECONDS) };
        // Ends at the limit, because nothing is waited for.
        let _ = time::background_timeout(Duration::from_micros(wait), pending::<()>()).await;
    }
}

/// Sends the events that are there. Each core's at most twice as many as it keeps, or a line that is too slow would have it here for ever.
fn send_all() {
    let mut known = [0_u32; NAMES];
    for core in cores() {
        let sent = &SENT[core.index()];
        // What is there now, and as much again that comes meanwhile. Not counted from what was sent: what is lost in between costs nothing.
        let end = ring(core).written() + KEPT as u64;
        loop {
            let at = sent.load(Ordering::Relaxed);
            let is_known = |name: u32| {
                let place = &mut known[name as usize % NAMES];
                core::mem::replace(place, name) == name
            };
            let claim = |next| sent.compare_exchange(at, next, Ordering::Relaxed, Ordering::Relaxed).is_ok();
            let next = send_core(core, at, is_known, claim);
            if next == at || next >= end {
                break;
            }
        }
    }
}

/// Sends what a core has counted. The host tool has the meaning of each place: `xtask/tool/src/trace/values.rs`.
fn send_values(core: CoreId) {
    let (scheduler, mail) = (stats::core(core), stats::worker(core));
    let [running, stealing, idle, interrupt] = Activity::ALL.map(|activity| scheduler.time.ticks(activity));
    let [max, high, normal, low] = waiting(core).map(|waiting| waiting as u64);
    let lost = mail.steal_failures_lost_thief_slot.get()
        + mail.steal_failures_lost_victim_slot.get()
        + mail.steal_failures_victim_slot_null.get();
    send_statistics(
        core,
        &[
            time::Instant::now().ticks(),
            running,
            stealing,
            idle,
            interrupt,
            scheduler.context_switches(),
            scheduler.preemptions.get(),
            scheduler.processes_stolen.get(),
            mail.messages_handled.get(),
            mail.gulps.get(),
            mail.missed_gulps.get(),
            mail.mailbox_steal_attempts.get(),
            mail.mailboxes_stolen.get(),
            mail.steal_failures_no_candidate.get(),
            lost,
            scheduler.reductions.get(),
            scheduler.crashes.get(),
            max,
            high,
            normal,
            low,
            scheduler.kernel.get(),
        ],
    );
}
