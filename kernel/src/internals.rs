//! What the boot crate, and the kernel's own tests and benchmarks, need of the kernel. Not for applications: these
//! items can stop the kernel, or break it. Those that break it at once are `unsafe` and say what must hold.
//!
//! Everything else that is public is for applications, and keeps its promises whatever safe code does with it.

/// Actors.
#[cfg(not(loom))]
pub mod actor {
    /// How to print the actors, for the serial line, if there ever was an executor.
    #[inline(always)]
    pub fn actors_printer() -> Option<fn()> {
        crate::actor::actors_printer()
    }

    /// How to print the mailboxes of executors, likewise.
    #[inline(always)]
    pub fn mailboxes_printer() -> Option<fn()> {
        crate::actor::mailboxes_printer()
    }

    /// Bytes of the chunks that cells of actors lie in.
    pub fn chunk_bytes() -> usize {
        crate::actor::chunk_bytes()
    }
}

/// Supervisors.
#[cfg(not(loom))]
pub mod supervise {
    /// How to print the supervisors and their children, for the serial line, if there ever was a supervisor.
    #[inline(always)]
    pub fn printer() -> Option<fn()> {
        crate::supervise::printer()
    }
}

/// Devices.
#[cfg(all(target_os = "none", not(loom)))]
pub mod device {
    /// At boot: a range that nobody may claim: of memory, or of a device that the kernel drives.
    pub fn keep(start: usize, end: usize) {
        crate::device::keep(start, end);
    }

    /// At boot: the page tables, which nobody else fills from now on.
    ///
    /// # Safety
    /// Boot has mapped all that it maps, and has [kept](keep) all of it.
    #[inline(always)]
    pub unsafe fn adopt(tables: crate::arch::mmu::Tables<'static>) {
        crate::device::adopt(tables);
    }
}

/// Interrupts of devices.
pub mod interrupt {
    pub use crate::interrupt::arrival::Arrival;

    /// At boot: that line is the kernel's own, and nobody can claim it. Sets it up, masked, for the core that boots.
    ///
    /// # Safety
    /// The line is the serial port's; called once, before any application runs.
    #[cfg(all(target_os = "none", not(loom)))]
    pub unsafe fn keep(line: crate::interrupt::Line) {
        // SAFETY: by contract.
        unsafe { crate::interrupt::keep(line) };
    }

    /// A device's interrupt, in its handler. Whether its line was ever claimed.
    #[cfg(all(target_os = "none", not(loom)))]
    #[inline(always)]
    pub fn on_interrupt(number: u32) -> bool {
        crate::interrupt::on_interrupt(number)
    }
}

/// Traces.
#[cfg(not(loom))]
pub mod trace {
    pub use crate::sched::cores::longest::set_tracing;
    pub use crate::trace::event::{Event, Kind};
    pub use crate::trace::frame::{send_core, send_hello, send_statistics};
    pub use crate::trace::{KEPT, is_on, ring};
}

/// The machine.
pub mod arch {
    pub use crate::arch::outcomes::{Full, Steal, SwapOutcome};
    pub use crate::arch::{CoreId, MAX_CORES};

    /// The atomics that the portable structures use.
    pub mod atomic {
        pub use crate::arch::atomic::*;
    }

    /// Barriers.
    pub mod barrier {
        pub use crate::arch::barrier::full;
    }

    /// The clock.
    pub mod clock {
        pub use crate::arch::clock::{ZERO, frequency, now};
    }

    /// The core itself.
    pub mod cpu {
        pub use crate::arch::cpu::*;
    }

    /// The deque's primitives.
    pub mod deque_ops {
        pub use crate::arch::deque_ops::*;
    }

    /// Store-exclusives that fail on demand.
    #[cfg(feature = "forced-failure")]
    pub mod forced_failure {
        pub use crate::arch::forced_failure::*;
    }

    /// What the machine tells of a fault.
    pub mod handlers {
        pub use crate::arch::handlers::{Fault, FaultReason, Verdict};
    }

    /// The shape of stacks.
    pub mod stack_layout {
        pub use crate::arch::stack_layout::*;
    }

    /// Interrupts between cores.
    pub mod ipi {
        pub use crate::arch::ipi::send;
    }

    /// Interrupt masking.
    pub mod irq {
        /// Masks interrupts on this core.
        ///
        /// # Safety
        /// The caller does not return to what was running before it has unmasked them: the core takes no interrupt any more, so
        /// nothing there is preempted, woken or told of anything.
        pub unsafe fn disable() {
            crate::arch::irq::disable();
        }

        /// Unmasks them.
        ///
        /// # Safety
        /// They were masked by the caller, in the same section with preemption disabled.
        pub unsafe fn enable() {
            // SAFETY: by contract.
            unsafe { crate::arch::irq::enable() };
        }
    }

    /// Which core this is.
    pub mod percpu {
        pub use crate::arch::percpu::core_number;
    }

    /// The saved registers of interrupted code.
    pub mod switch {
        pub use crate::arch::switch::{Frame, start_on};
    }

    /// The double swap.
    pub mod swap {
        pub use crate::arch::swap::*;
    }

    #[cfg(target_os = "none")]
    pub use machine::*;

    /// What only the machine has.
    #[cfg(target_os = "none")]
    mod machine {
        /// Appending behind a gate.
        pub mod append {
            pub use crate::arch::append::{
                MOST_BLOCK_BYTES, MOST_WORDS, Words, append, append_block, restart, sequences,
            };
            pub use crate::arch::gate::Gate;
        }

        /// Appending to a locked queue.
        pub mod locked_append {
            pub use crate::arch::locked_append::{append, sequence, withdraw};
            pub use crate::arch::queue_layout::{PLACE_AT, WAITING_AT};
        }

        /// The exception vectors.
        pub mod exceptions {
            pub use crate::arch::exceptions::*;
        }

        /// The interrupt controller.
        pub mod gic {
            pub use crate::arch::gic::*;
        }

        /// Translation tables, and caches.
        pub mod mmu {
            pub use crate::arch::mmu::*;
        }

        /// The firmware.
        pub mod psci {
            pub use crate::arch::psci::*;
        }

        /// The timer that the kernel does not use.
        pub mod second_timer {
            pub use crate::arch::second_timer::*;
        }

        /// Starting cores.
        pub mod start {
            pub use crate::arch::start::*;
        }

        /// Zeroing much memory.
        pub mod zero {
            pub use crate::arch::zero::*;
        }
    }
}

/// The queues that carry pointers between cores.
pub mod queue {
    pub use crate::arch::outcomes::{Full, Steal};
    pub use crate::queue::*;
}

/// Numbers that look random.
pub use crate::random::Random;

/// What is taken of a crash while it is reported.
#[cfg(not(loom))]
pub mod crash {
    pub use crate::crash::message::Message;
}

/// The console.
#[cfg(not(loom))]
pub mod console {
    pub use crate::log::console::{Sink, enter_panic, notice, register};
}

/// Memory.
#[cfg(not(loom))]
pub mod mem {
    /// The heap's central part, for comparisons.
    pub mod central {
        pub use crate::mem::central::Central;
    }

    /// The heap.
    pub mod heap {
        pub use crate::mem::heap::{HEAP, Heap};
    }

    /// Limits.
    pub mod limit {
        pub use crate::mem::limit::limit_here;
    }

    /// What crashed code leaves behind.
    pub mod orphans {
        pub use crate::mem::orphans::{Collection, begin, is_due, is_wanted, note};
    }

    /// Allocations that are refused on demand.
    #[cfg(feature = "checks")]
    pub mod refusal {
        pub use crate::mem::refusal::{refuse_one_after, refuse_one_in};
    }

    /// The pool of stacks.
    pub mod stack {
        pub use crate::mem::stack::{StackBlock, StackRef, block_address, give, init, take, usage};
    }
}

/// The scheduler's start and end, and the end of what crashes.
#[cfg(not(loom))]
pub mod sched {
    pub use crate::sched::run::crash::{
        can_end_current, can_end_faulted, end_faulted, end_panicked, lend_reserve, say_stack,
    };
    #[cfg(feature = "checks")]
    pub mod damage {
        pub use crate::sched::run::damage::*;
    }
    pub use crate::sched::cores::here::name_here;
    pub use crate::sched::cores::load::waiting;
    #[cfg(target_os = "none")]
    pub use crate::sched::run::kernel_panic::{note_fault, stop_the_system};
    #[cfg(target_os = "none")]
    pub use crate::sched::run::look_round::whereabouts;
    #[cfg(target_os = "none")]
    pub mod watchdog {
        pub use crate::sched::run::watchdog::{found, restarts, use_hardware};
    }
    pub use crate::sched::run::reserve::reserves;
    pub use crate::sched::run::start::{enter, prepare};
    pub use crate::sched::run::stop::on_deadlock;
}

/// What each core waits for.
#[cfg(not(loom))]
pub mod time {
    pub use crate::time::timers::per_core::{next_deadline, next_urgent_deadline};
}

/// What the kernel's protocols are made of. Its locks are held with preemption disabled, so whoever keeps one keeps the
/// core.
pub mod sync {
    pub use crate::actor::mail::extent::Extent;
    pub use crate::actor::mail::gone_flag::GoneFlag;
    pub use crate::actor::mail::guest_flag::GuestFlag;
    pub use crate::actor::mail::owner_hint::OwnerHint;
    pub use crate::actor::mail::processing_flag::ProcessingFlag;
    pub use crate::actor::run::live_count::LiveCount;
    pub use crate::actor::storage::word_cell::WordCell;
    pub use crate::mem::limit::accounts::{Accounts, Payer};
    pub use crate::mutex::lock_word::{Holder, LockWord, Taken};
    pub use crate::sched::cores::chosen::Chosen;
    pub use crate::sched::cores::held::Held;
    pub use crate::sched::cores::idle_flag::{Depth, IdleFlag};
    pub use crate::sched::cores::in_turn::InTurn;
    pub use crate::sched::cores::preemption::{Found, decide};
    pub use crate::sched::cores::raised_flag::RaisedFlag;
    pub use crate::sched::cores::ready_mask::ReadyMask;
    pub use crate::sched::cores::standstill::Standstill;
    pub use crate::sched::process::budget::Budget;
    pub use crate::sched::process::kill_count::{KillCount, Unended};
    pub use crate::sched::process::run_state::RunState;
    pub use crate::sched::run::quiescence::{Looked, Quiescence};
    pub use crate::sched::run::written::Written;
    pub use crate::sync::{Entered, SectionLock, SpinWait};
    pub use crate::sync::{Identity, PreemptGuard, PreemptWord, ReferenceCount};
    pub use crate::sync::{SpinGuard, SpinLock, preemption_is_disabled};
    pub use crate::time::timers::call_state::CallState;
    pub use crate::time::timers::state::{State as TimerIs, TimerState};
    pub use crate::trace::ring::{Reading, Ring};

    /// Watches.
    pub mod watch {
        pub use crate::watch::lists::Lists;
        pub use crate::watch::node::{Act, Asked, Data, Node};
        pub use crate::watch::watched::Watched;
    }

    /// Actors held aside.
    pub mod detachment {
        pub use crate::actor::run::detachment::*;
    }
}
