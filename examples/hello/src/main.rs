//! The smallest application: a process on every core says where it runs.
#![cfg_attr(target_os = "none", no_std, no_main)]

use magpie::ExitCode;
use magpie::arch::CoreId;
use magpie::log::text;
use magpie::{machine, sched};

magpie::entry!(hello);

async fn hello() -> ExitCode {
    for core in (0..machine::cores()).filter_map(CoreId::new) {
        let started = sched::Spawn::new().pinned(core).start(async {
            let here = sched::current_core().map_or(0, CoreId::index);
            text!("hello from core {here}");
        });
        let Ok(handle) = started else { return ExitCode::Failure };
        if handle.await.is_err() {
            return ExitCode::Failure;
        }
    }
    ExitCode::Success
}
