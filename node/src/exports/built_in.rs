//! The functions of the module `magpie` that every node has: `load/0`, `load/1` (of a core), `crashes/0`, `settings/0`, `processes/0`. They only look.

use alloc::string::String;
use alloc::vec::Vec;

use magpie::arch::CoreId;
use magpie::stats::{self, Activity};
use magpie::{crash, machine, sched};
use magpie_dist::term::AtomBuf;

use super::{Exports, Function};

/// The module's name.
const MODULE: &str = "magpie";

/// What one core has done since it was started.
struct Load {
    core: u32,
    /// Of its time so much in a thousand went to turns; the rest it was idle, or the kernel's.
    running_permille: u64,
    turns: u64,
    messages: u64,
    processes_stolen: u64,
    mailboxes_stolen: u64,
}
magpie_dist::term! { struct Load as map { core, running_permille, turns, messages, processes_stolen, mailboxes_stolen } }

/// One of the last crashes.
struct Crash {
    number: u64,
    name: String,
    message: String,
}
magpie_dist::term! { struct Crash as map { number, name, message } }

fn load(core: CoreId) -> Load {
    let counted = stats::core(core);
    let worker = stats::worker(core);
    let all: u64 = Activity::ALL.map(|activity| counted.time.ticks(activity)).iter().sum();
    Load {
        core: core.index() as u32,
        running_permille: counted.time.ticks(Activity::Running).saturating_mul(1000) / all.max(1),
        turns: counted.context_switches(),
        messages: worker.messages_handled.get(),
        processes_stolen: counted.processes_stolen.get(),
        mailboxes_stolen: worker.mailboxes_stolen.get(),
    }
}

fn cores() -> impl Iterator<Item = CoreId> {
    (0..machine::cores()).filter_map(CoreId::new)
}

pub fn add(exports: &mut Exports) {
    exports.add_function(Function::new(MODULE, "load", |(): ()| cores().map(load).collect::<Vec<_>>()));
    exports.add_function(Function::new(MODULE, "load", |(core,): (usize,)| {
        cores().find(|known| known.index() == core).map(load)
    }));
    exports.add_function(Function::new(MODULE, "crashes", |(): ()| {
        let crashes = crash::records().map(|record| Crash {
            number: record.number.get(),
            name: record.name().into(),
            message: record.message().into(),
        });
        crashes.collect::<Vec<_>>()
    }));
    exports.add_function(Function::new(MODULE, "settings", |(): ()| {
        let settings = sched::settings().filter_map(|(name, value)| Some((AtomBuf::new(name).ok()?, value)));
        settings.collect::<Vec<_>>()
    }));
    exports.add_function(Function::new(MODULE, "processes", |(): ()| sched::live_processes()));
}
