//! Where the names are that `docs/actors.md` uses: that page shows these lines. That they compile is the test.
#![expect(unused_imports, reason = "nothing is done with them here")]

use magpie::actor::{ActorState, Recipient, Reply, Shared, Signal, StaticActor, actors, stop};
use magpie::actor::{AskError, Bound, Limits, SendError, WhenFull};
use magpie::crash::{self, CrashKind};
use magpie::group::{Group, Publish, Subscribe};
use magpie::mem::MemoryLimit;
use magpie::message::{SendAfter, SendInterval};
use magpie::mutex::{Mutex, Poisoned};
use magpie::prelude::*;
use magpie::sched::CpuShare;
use magpie::stats;
use magpie::time::{Elapsed, Instant};
use magpie::watch::{Ended, Exit, link};

/// The counters that `docs/statistics.md` names exist, and are all that it names.
#[test]
fn the_page_of_statistics_names_counters() {
    const PAGE: &str = include_str!("../../docs/statistics.md");
    macro_rules! counters {
        ($name:ident: $type:ty { $($counter:ident)* }) => {{
            $(let _ = |$name: &$type| _ = &$name.$counter;)*
            [$(concat!("`", stringify!($name), ".", stringify!($counter), "`")),*]
        }};
    }
    let worker = counters! { worker: stats::WorkerStatistics {
        messages_handled gulps missed_gulps mailbox_steal_attempts mailboxes_stolen steal_failures_no_candidate
        steal_failures_lost_thief_slot steal_failures_lost_victim_slot steal_failures_victim_slot_null
    } };
    let core = counters! { core: stats::CoreStatistics { processes_stolen preemptions time } };
    for counter in worker.iter().chain(&core) {
        assert!(PAGE.contains(counter), "{counter}");
    }
    let named = PAGE.matches("`worker.").count() + PAGE.matches("`core.").count();
    assert_eq!(named, worker.len() + core.len());
}
