//! Running the scheduler on std threads: a core is a thread. For tests, and for trying an application
//! without an emulator. Under shuttle the threads are shuttle's: a simulation, in which a seed decides every choice.

use core::fmt;
use core::future::Future;
use std::boxed::Box;
#[cfg(not(shuttle))]
use std::thread;

#[cfg(shuttle)]
use shuttle::thread;

use crate::arch::handlers::{Fault, Verdict};
use crate::arch::switch::Frame;
use crate::arch::{CoreId, MAX_CORES, percpu};
use crate::mem::stack::StackBlock;
use crate::sched::run::{start, stop};
use crate::sched::spawn::{JoinError, Spawn, SpawnError};

/// Runs `main` on `cores` threads, until it ends, and returns its result.
///
/// A process that panics ends the program with status 101, because unlike the booted kernel's a thread's stack cannot
/// be abandoned. Tests, of which others are to go on, are run by `magpie::testing::run`.
///
/// One scheduler exists in a program. A second call waits until the first has returned, and then starts it anew. What has not
/// ended by then, and what was registered, stays.
///
/// # Errors
/// As for spawning `main`, and when it crashed.
///
/// # Panics
/// If `cores` is not from 1 to [`MAX_CORES`], or the caller runs in that scheduler.
///
/// ```
/// let sum = magpie::sched::run_on_threads(2, 1, async { 1 + 1 });
/// assert_eq!(sum, Ok(2));
/// ```
pub fn run_on_threads<F>(cores: usize, seed: u64, main: F) -> Result<F::Output, HostError>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    assert!((1..=MAX_CORES).contains(&cores), "a host run takes 1 to {MAX_CORES} cores, not {cores}");
    assert!(percpu::core_block().is_null(), "there is one scheduler in a program, and the caller runs in it");
    #[cfg(not(shuttle))]
    let _alone = ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    stop::reset();
    // SAFETY: one scheduler at a time, by the lock; the threads of the last one were joined below.
    unsafe { start::prepare(cores, seed, |_| {}, no_fault, || std::process::exit(0)) };
    for id in (0..cores).filter_map(CoreId::new) {
        percpu::announce_core(id);
        start::online(id);
    }
    let handle = Spawn::new()
        .start(async move {
            let result = main.await;
            stop::request();
            result
        })
        .map_err(HostError::Spawn)?;
    thread::scope(|scope| {
        for id in (0..cores).filter_map(CoreId::new) {
            #[cfg(shuttle)]
            scope.spawn(move || run_core(id));
            #[cfg(not(shuttle))]
            thread::Builder::new()
                .name(std::format!("core {}", id.index()))
                .spawn_scoped(scope, move || run_core(id))
                .expect("the host has no thread for a core");
        }
    });
    match handle.try_take() {
        Some(Ok(output)) => Ok(output),
        Some(Err(error)) => Err(HostError::Main(error)),
        None => Err(HostError::Stopped),
    }
}

/// Who runs a scheduler: its state is the program's.
#[cfg(not(shuttle))]
static ALONE: std::sync::Mutex<()> = std::sync::Mutex::new(());

/// Why there is no result of a host run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum HostError {
    /// The main process could not be started.
    Spawn(SpawnError),
    /// The main process crashed.
    Main(JoinError),
    /// The scheduler was stopped before the main process had ended.
    Stopped,
}

impl fmt::Display for HostError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Spawn(error) => write!(f, "the main process was not started: {error}"),
            Self::Main(error) => write!(f, "the main process has no result: {error}"),
            Self::Stopped => f.write_str("the scheduler was stopped before the main process had ended"),
        }
    }
}

impl core::error::Error for HostError {}

unsafe fn no_fault(_: &Fault, _: *mut Frame) -> Verdict {
    Verdict::Stop
}

/// Ends the program when its thread panics: the other cores would wait for this one for ever.
struct EndsTheProgram;

impl Drop for EndsTheProgram {
    fn drop(&mut self) {
        if std::thread::panicking() {
            std::process::exit(101);
        }
    }
}

fn run_core(id: CoreId) {
    let _guard = EndsTheProgram;
    percpu::become_core(id);
    let block = Box::new(StackBlock::new(0));
    block.preempt().reset(1);
    // SAFETY: the block outlives the loop below, and no other stack uses it.
    unsafe { percpu::set_stack_block(core::ptr::from_ref::<StackBlock>(&block).cast_mut().cast()) };
    // SAFETY: the core was prepared, and this thread stands in for it; preemption is disabled once.
    unsafe { start::enter(id) };
}
