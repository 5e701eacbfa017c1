//! The benchmarks, a file each; the programs of the Savina suite in a folder of their own.

mod allocate;
mod balance;
mod behind;
mod big;
mod boot;
mod cluster;
mod collection;
mod crashes;
mod executor;
mod fan_in;
mod fork_join;
mod latency;
mod network;
mod ping_pong;
mod process;
mod repeat;
mod savina;
mod send_dynamic;
mod send_self;
mod send_static;
mod send_wait;
mod spawn;
mod supervise;
mod thread_ring;
mod zephyr;

use alloc::boxed::Box;
use magpie::actor::ExecutorHandle;

use crate::failed::Failed;

/// Starts the clock and the first messages; returns how many operations that will be.
pub type Go = Box<dyn FnOnce() -> Result<u64, Failed> + Send>;

/// One benchmark.
pub struct Figure {
    /// The peers' name for it, or Savina's.
    pub name: &'static str,
    /// The parameters that the peers were measured with, where they were.
    pub defaults: &'static [u64],
    /// Makes the actors that there are before time runs.
    pub prepare: fn(&ExecutorHandle, &[u64]) -> Result<Go, Failed>,
    /// Whether memory is of interest: what the actors that are left cost.
    pub bytes_per_operation: bool,
}

const fn figure(
    name: &'static str,
    defaults: &'static [u64],
    prepare: fn(&ExecutorHandle, &[u64]) -> Result<Go, Failed>,
) -> Figure {
    Figure { name, defaults, prepare, bytes_per_operation: false }
}

/// Messages in flight where a window applies; the same for every peer.
const WINDOW: u64 = 1000;

/// All of them.
pub const ALL: &[Figure] = &[
    figure("send-static", &[500_000], send_static::prepare),
    figure("send-self", &[300_000], send_self::prepare),
    figure("send-self-64", &[100_000], send_self::prepare_block::<8>),
    figure("send-self-256", &[100_000], send_self::prepare_block::<32>),
    figure("send-self-1024", &[100_000], send_self::prepare_block::<128>),
    figure("send-dynamic", &[50_000], send_dynamic::prepare),
    figure("ping-pong", &[100_000], ping_pong::prepare),
    figure("thread-ring", &[100, 200_000], thread_ring::prepare),
    figure("executor", &[4000, 100, 10], executor::prepare),
    figure("repeat", &[2000, 50], repeat::prepare),
    figure("fork-join", &[100, 2000], fork_join::prepare),
    figure("fan-in", &[4, 100_000], fan_in::prepare),
    figure("big", &[200, 500], big::prepare),
    Figure { bytes_per_operation: true, ..figure("spawn", &[50_000], spawn::prepare) },
    figure("balance-one", &[4000, 20, 200], balance::prepare_one),
    figure("balance-multi", &[4000, 20, 200], balance::prepare_multi),
    figure("process-one", &[1000, 200, 100], process::prepare_one),
    figure("process-each", &[1000, 200, 100], process::prepare_each),
    figure("yield-200", &[200, 500, 0], process::prepare_one),
    figure("yield-1000", &[1000, 100, 0], process::prepare_one),
    figure("yield-2", &[2, 50_000, 0], process::prepare_one),
    figure("allocate", &[100_000], allocate::prepare),
    figure("allocate-beside", &[100_000], allocate::prepare_beside),
    figure("allocate-limited", &[100_000], allocate::prepare_limited),
    figure("collection", &[16_384], collection::prepare),
    figure("mutex-free", &[100_000], zephyr::prepare_free_mutex),
    figure("semaphore-switch", &[100_000], zephyr::prepare_switch),
    figure("process-end", &[50_000], zephyr::prepare_end),
    figure("restart", &[20_000], supervise::prepare_restart),
    figure("boot", &[], boot::prepare),
    figure("wake-idle", &[2000], latency::prepare_process::<0>),
    figure("wake-hogs", &[2000], latency::prepare_process::<1>),
    figure("wake-thieves", &[2000], latency::prepare_process::<2>),
    figure("wake-timers", &[2000], latency::prepare_process::<3>),
    figure("wake-offline", &[2000], latency::prepare_process::<4>),
    figure("mail-idle", &[2000], latency::prepare_message::<0>),
    figure("mail-hogs", &[2000], latency::prepare_message::<1>),
    figure("mail-thieves", &[2000], latency::prepare_message::<2>),
    figure("mail-timers", &[2000], latency::prepare_message::<3>),
    figure("mail-offline", &[2000], latency::prepare_message::<4>),
    figure("irq-idle", &[2000], latency::prepare_interrupt::<0>),
    figure("irq-claimed", &[2000], latency::prepare_claimed),
    figure("irq-hogs", &[2000], latency::prepare_interrupt::<1>),
    figure("irq-thieves", &[2000], latency::prepare_interrupt::<2>),
    figure("irq-timers", &[2000], latency::prepare_interrupt::<3>),
    figure("irq-offline", &[2000], latency::prepare_interrupt::<4>),
    figure("irq-mail-idle", &[2000], latency::prepare_interrupt_message::<0>),
    figure("irq-mail-hogs", &[2000], latency::prepare_interrupt_message::<1>),
    figure("irq-mail-thieves", &[2000], latency::prepare_interrupt_message::<2>),
    figure("irq-mail-timers", &[2000], latency::prepare_interrupt_message::<3>),
    figure("irq-mail-offline", &[2000], latency::prepare_interrupt_message::<4>),
    figure("behind", &[20, 192], behind::prepare),
    figure("crashes", &[5], crashes::prepare),
    figure("send-wait", &[1000, 20, 16], send_wait::prepare),
    figure("datagram", &[2000], network::prepare_datagrams),
    figure("stream", &[4000], network::prepare_stream),
    figure("remote-call", &[500, 1], cluster::prepare),
    figure("remote-calls", &[4000, 64], cluster::prepare),
    figure("bank", &[20, 100, 500], savina::bank::prepare),
    figure("chameneos", &[100, 20_000], savina::chameneos::prepare),
    figure("philosophers", &[20, 500], savina::philosophers::prepare),
    figure("barber", &[1000, 200, 500, 500], savina::barber::prepare),
    figure("sieve", &[20_000, 200], savina::sieve::prepare),
    figure("quicksort", &[50_000, 1024], savina::quicksort::prepare),
    figure("n-queens", &[20, 9, 4], savina::queens::prepare),
    figure("dictionary", &[20, 1000, 10], savina::dictionary::prepare),
];
