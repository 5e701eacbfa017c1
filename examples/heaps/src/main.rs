//! What the heap costs, and what its central part would cost as `linked_list_allocator`: the figures of `docs/heap.md`.
//!
//!     cargo xtask qemu heaps --icount --smp 1
//!
//! A nanosecond is an instruction then. The clock has steps of 16, so has each figure. Everything is repeated by the next
//! run. Without `--icount` the figures mean nothing. This is no model for an application: it uses the kernel's own parts.
#![cfg_attr(target_os = "none", no_std, no_main)]

extern crate alloc;

mod central;
mod cost;
mod designs;
mod region;
mod whole;

use designs::{LinkedList, Talc};
use magpie::log::text;
use magpie::sched::{self, Setting};
use magpie_boot::ExitCode;

magpie_boot::entry!(heaps);

async fn heaps() -> ExitCode {
    // Longer than any part takes, so that no timer comes in between.
    if sched::set_setting(Setting::SliceMicroseconds, 1_000_000).is_err() {
        return ExitCode::Failure;
    }
    text!("cost in instructions; central heap, in 32 MiB:");
    let parts: [fn() -> Option<()>; 11] = [
        central::trace::<LinkedList>,
        central::equal::<LinkedList>,
        central::holes::<LinkedList>,
        central::trace::<Talc>,
        central::equal::<Talc>,
        central::holes::<Talc>,
        || whole::one_size(0, 16),
        || whole::one_size(1, 64),
        || whole::one_size(2, 300),
        || whole::one_size(3, 2048),
        whole::shortage,
    ];
    for part in parts {
        if part().is_none() {
            text!("there is not enough memory");
            return ExitCode::Failure;
        }
        // The next has a slice of its own.
        sched::yield_now().await;
    }
    ExitCode::Success
}
