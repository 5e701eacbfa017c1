//! What is printed about the system itself: the table at the end, and on request the load now and then.

use core::future::pending;
use core::time::Duration;

use magpie::log::text;
use magpie::sched::{LoadMonitor, Priority, Rule, Spawn};
use magpie::stats::{self, Details, Table, Worst};
use magpie::{machine, time};

use crate::arguments::seconds;
#[cfg(feature = "traced")]
use crate::trace;

/// With the boot argument `details`, the times of single messages are taken, and printed at the end.
pub(crate) fn begin() {
    stats::set_timing(machine::argument("details").is_some());
    report_load();
    #[cfg(feature = "traced")]
    trace::begin();
}

/// Prints what each core did.
pub(crate) fn print() {
    #[cfg(feature = "traced")]
    trace::end();
    #[cfg(target_os = "none")]
    crate::panic::say_unsaid();
    text!("{Table}");
    if machine::argument("details").is_some() {
        text!("{Details}");
        text!("{Worst}");
        text!("moves refused, by rule:");
        for rule in Rule::ALL {
            text!("  {rule:?} {}", stats::total(|core| core.migrations_refused[rule as usize].get()));
        }
    }
}

/// With the boot argument `load=SECONDS`, prints the load of every core that often. The reporter does not keep
/// the system from having run out of work.
fn report_load() {
    let Some(argument) = machine::argument("load") else { return };
    let Some(every) = seconds(argument) else {
        text!("boot argument load={argument} ignored: it takes seconds, from 0.01 to 3600");
        return;
    };
    // Urgent, because otherwise a loaded system would not report.
    let started = Spawn::new().priority(Priority::High).start(report(every));
    if let Err(error) = started {
        text!("the load is not reported: {error}");
    }
}

async fn report(every: Duration) {
    let mut monitor = match LoadMonitor::new() {
        Ok(monitor) => monitor,
        Err(error) => return text!("the load is not reported: {error}"),
    };
    loop {
        // Ends at the limit, because nothing is waited for.
        let _ = time::background_timeout(every, pending::<()>()).await;
        match monitor.sample() {
            Ok(load) => text!("{load}"),
            Err(error) => text!("the load is not reported this time: {error}"),
        }
    }
}
