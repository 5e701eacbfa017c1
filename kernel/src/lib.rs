//! Magpie: a bare-metal actor kernel for multicore 64-bit Arm.
//!
//! The rooms stand on floors, from the ground up in `kernel/rooms.txt`, and each uses only those below it.
//! `docs/architecture.md` has the contracts between them, and the way of a message through them.
//!
//! An application names the crate `magpie`, a facade in front of this one: what is public here but for `internals`, where
//! nothing, used as the compiler allows, can harm the kernel or another application. What the boot crate and the kernel's own
//! tests need besides is in `internals`.
#![cfg_attr(target_os = "none", no_std)]
#![warn(clippy::missing_errors_doc, clippy::missing_panics_doc)]
#![cfg_attr(
    any(loom, shuttle),
    allow(dead_code, unused_imports, reason = "what uses it is not there, or is a simulation")
)]

extern crate alloc;

pub mod arch;
mod sync;

mod queue;

#[cfg(any(all(test, not(any(loom, shuttle))), feature = "checks"))]
#[path = "../tests/checks/mod.rs"]
pub mod checks;
mod in_place;
mod random;

#[doc(hidden)]
pub mod internals;

// The rooms below keep atomics in statics, and loom's cannot be made in a constant: its models check what
// stands above, and what these rooms' protocols have been factored into, file by file.
#[cfg(loom)]
mod actor {
    pub mod mail {
        pub mod extent;
        pub mod gone_flag;
        pub mod guest_flag;
        pub mod owner_hint;
        pub mod processing_flag;
    }
    pub mod run {
        pub mod detachment;
        pub mod live_count;
    }
    pub mod storage {
        pub mod word_cell;
    }
}
#[cfg(loom)]
mod mem {
    pub mod limit {
        pub mod accounts;
    }
}
#[cfg(loom)]
mod mutex {
    pub mod lock_word;
}
#[cfg(loom)]
mod sched {
    pub mod cores {
        pub mod chosen;
        pub mod held;
        pub mod idle_flag;
        pub mod in_turn;
        pub mod preemption;
        pub mod raised_flag;
        pub mod ready_mask;
        pub mod standstill;
    }
    pub mod process {
        pub mod budget;
        pub mod kill_count;
        pub mod run_state;
    }
    pub mod run {
        pub mod quiescence;
        pub mod written;
    }
}
#[cfg(loom)]
mod trace {
    pub mod ring;
}
#[cfg(loom)]
mod time {
    pub mod timers {
        pub mod call_state;
        pub mod state;
    }
}
#[cfg(not(loom))]
pub mod actor;
#[cfg(not(loom))]
pub mod channel;
#[cfg(not(loom))]
pub mod crash;
#[cfg(not(loom))]
pub mod device;
#[cfg(not(loom))]
pub mod group;
pub mod interrupt;
#[cfg(not(loom))]
pub mod log;
#[cfg(not(loom))]
pub mod machine;
#[cfg(not(loom))]
pub mod mem;
#[cfg(not(loom))]
pub mod message;
#[cfg(not(loom))]
pub mod mutex;
#[cfg(not(loom))]
pub mod registry;
#[cfg(not(loom))]
mod roll;
#[cfg(not(loom))]
pub mod sched;
#[cfg(not(loom))]
pub mod stats;
#[cfg(not(loom))]
pub mod supervise;
#[cfg(not(any(target_os = "none", loom, shuttle)))]
pub mod testing;
#[cfg(not(loom))]
pub mod time;
#[cfg(not(loom))]
pub mod trace;
#[cfg(doctest)]
mod variance;
pub mod watch;
