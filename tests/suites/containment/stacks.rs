//! Stacks that run out: in the application, in the kernel's own sections, and under an interrupt.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt::{self, Display, Formatter};
use core::hint::black_box;
use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;

use magpie::actor::{Actor, Config, Context, Executor, Receive};
use magpie::arch::CoreId;
use magpie::log::text;
use magpie::sched::{self, Priority, Setting, Spawn};
use magpie::{machine, time};
use magpie_tests::{Changed, Failure, Outcome, amount, ensure, ensure_eq, kernel_test};

/// Every core runs processes, and its timer fires.
pub(crate) async fn all_cores_are_well() -> Outcome {
    for core in (0..machine::cores()).filter_map(CoreId::new) {
        let process = Spawn::new().pinned(core).start(async move {
            time::sleep(Duration::from_micros(100)).await;
            core
        })?;
        ensure_eq!(process.await, Ok(core), "what a process on a core gives back");
    }
    Ok(())
}

/// How far down its stack the caller is, in bytes: slots are aligned to their size.
#[inline(never)]
fn depth_left() -> usize {
    let here = black_box(0_u64);
    (&raw const here).addr() % slot_bytes()
}

/// The boot argument `stack_kib`, or else what a slot has without one.
fn slot_bytes() -> usize {
    let given = machine::argument("stack_kib").and_then(|kib| kib.parse::<usize>().ok());
    given.unwrap_or(64) * 1024
}

/// Guard and reserve: with no more than this left, the stack has run out.
const UNMAPPED_BYTES: usize = 12 * 1024;

/// Spins with so many bytes left of the caller's stack until the flag is set, which only other code on this core does. So
/// when it comes back the timer has interrupted it there, and its stack was lent. Gives back what was put into other
/// registers.
///
/// An exact stack pointer cannot be had without assembly. Nothing is written below it.
fn spin_with_exactly(left: usize, flag: &AtomicBool) -> [u64; 2] {
    let here = black_box(0_u64);
    let address = (&raw const here).addr();
    let target = address - address % slot_bytes() + UNMAPPED_BYTES + left;
    let (mut one, mut other) = (ONE, 0_u64);
    // SAFETY: the stack pointer stays in this stack, whose memory below the caller's is unused, and is put back; the flag
    // lives as long as the reference.
    unsafe {
        core::arch::asm!(
            "mov {saved}, sp",
            "mov sp, {target}",
            "fmov {vector:d}, {one}",
            "2: ldrb {seen:w}, [{flag}]",
            "cbz {seen:w}, 2b",
            "fmov {other}, {vector:d}",
            "mov sp, {saved}",
            saved = out(reg) _,
            target = in(reg) target,
            flag = in(reg) flag.as_ptr(),
            seen = out(reg) _,
            vector = out(vreg) _,
            one = inout(reg) one,
            other = inout(reg) other,
        );
    }
    [one, other]
}

const ONE: u64 = 0x1234_5678_9abc_def0;

kernel_test! {
    /// With anything from nothing to 4 KiB of its stack left, at every place where a stack pointer can be, a process is
    /// interrupted by the timer and its stack is lent; then it goes on.
    #[machine("stacks of its own")]
    async fn an_interrupt_may_come_with_any_room_left() -> Outcome {
        let _slice = Changed::new(&[(Setting::SliceMicroseconds, 50)])?;
        for (round, left) in (0..=4096).step_by(16).enumerate() {
            let core = CoreId::new(round % machine::cores()).ok_or("no such core")?;
            let spinner = Spawn::new().pinned(core).start(async move {
                let flag = Arc::new(AtomicBool::new(false));
                let other = {
                    let flag = flag.clone();
                    Spawn::new().pinned(core).start(async move { flag.store(true, Ordering::Relaxed) })?
                };
                let registers = spin_with_exactly(left, &flag);
                other.await?;
                Ok::<_, Failure>(registers)
            })?;
            ensure_eq!(spinner.await??, [ONE; 2], "registers of what was interrupted");
        }
        all_cores_are_well().await
    }
}

/// Goes down until less than `left` bytes of stack are left, then spins without a call.
#[inline(never)]
fn spin_with(left: usize, turns: u64) -> u64 {
    if depth_left() < UNMAPPED_BYTES + left {
        let mut sum = turns;
        for turn in 0..turns {
            sum = black_box(sum.wrapping_mul(31).wrapping_add(turn));
        }
        return sum;
    }
    // Kept across the call, so that each call has a frame.
    let frame = black_box([turns; 1]);
    spin_with(left, turns) ^ frame[0]
}

kernel_test! {
    /// The same in safe code, which overflows where it goes too far down.
    #[machine("stacks of its own")]
    async fn who_goes_too_far_down_ends_alone() -> Outcome {
        let _slice = Changed::new(&[(Setting::SliceMicroseconds, 50)])?;
        let (mut ended, mut crashed) = (0, 0);
        for left in (0..1024).step_by(amount("step", 32) as usize) {
            // Something else waits, so that the stack is lent.
            let other = sched::spawn(async {
                for _ in 0..3 {
                    sched::yield_now().await;
                }
            })?;
            match sched::spawn(async move { spin_with(left, 200_000) })?.await {
                Ok(_) => ended += 1,
                Err(_) => crashed += 1,
            }
            other.await?;
        }
        text!("{ended} ended, {crashed} crashed");
        ensure!(ended > 0 && crashed > 0, "{ended} ended, {crashed} crashed: not both were tried");
        all_cores_are_well().await
    }
}

fn cores() -> impl Iterator<Item = CoreId> {
    (0..machine::cores()).filter_map(CoreId::new)
}

/// Goes down for ever, doing `what` on the way.
#[inline(never)]
#[expect(unconditional_recursion, reason = "that is the point")]
pub(crate) fn descend(what: &dyn Fn(), depth: u64) -> u64 {
    what();
    let frame = black_box([depth; 3]);
    descend(what, depth + 1) ^ frame[1]
}

/// Processes that go down for ever, doing so on the way, end alone; so many of them, one after the other on each core.
async fn ends_alone(what: impl Fn() + Send + Clone + 'static) -> Outcome {
    for core in cores() {
        let what = what.clone();
        let process = Spawn::new().pinned(core).start(async move { descend(&what, black_box(0)) })?;
        ensure!(process.await.is_err(), "it went down for ever and ended well");
    }
    all_cores_are_well().await
}

kernel_test! {
    #[machine("stacks of its own")]
    async fn recursion_alone() -> Outcome {
        ends_alone(|| {}).await
    }
}

kernel_test! {
    /// Through the heap's lock.
    #[machine("stacks of its own")]
    async fn recursion_that_allocates() -> Outcome {
        ends_alone(|| {
            black_box(alloc::vec::Vec::<u8>::with_capacity(black_box(100)));
            black_box(alloc::vec::Vec::<u8>::with_capacity(black_box(100_000)));
        })
        .await
    }
}

kernel_test! {
    /// Through the console's.
    #[machine("stacks of its own")]
    async fn recursion_that_prints() -> Outcome {
        ends_alone(|| text!("deeper")).await
    }
}

kernel_test! {
    #[machine("stacks of its own")]
    async fn recursion_that_spawns() -> Outcome {
        ends_alone(|| drop(black_box(sched::spawn(async {})))).await
    }
}

kernel_test! {
    /// More processes go on for ever than there are stacks to suspend them on. Every core stays there for what is urgent, and
    /// for timers.
    #[machine("stacks of its own")]
    async fn more_hogs_than_stacks() -> Outcome {
        let hogs = magpie::internals::mem::stack::usage().0 + 30;
        let is_over = Arc::new(AtomicBool::new(false));
        let mut handles = Vec::new();
        for _ in 0..hogs {
            let is_over = is_over.clone();
            handles.push(Spawn::new().priority(Priority::Low).start(async move {
                while !is_over.load(Ordering::Relaxed) {
                    black_box(0);
                }
            })?);
        }
        let judge = Spawn::new().priority(Priority::Max).start(async {
            // Until no stack is free any more.
            while magpie::internals::mem::stack::usage().1 > 0 {
                time::sleep(Duration::from_millis(2)).await;
            }
            for _ in 0..3 {
                time::sleep(Duration::from_millis(2)).await;
                for core in cores() {
                    let urgent = Spawn::new().pinned(core).priority(Priority::High).start(async move { core })?;
                    ensure_eq!(urgent.await, Ok(core), "what an urgent process on a core gives back");
                }
            }
            Ok::<(), Failure>(())
        })?;
        let judged = judge.await;
        is_over.store(true, Ordering::Relaxed);
        for handle in handles {
            ensure!(handle.await.is_ok(), "a hog did not end well");
        }
        judged??;
        all_cores_are_well().await
    }
}

struct Sink;

impl Actor for Sink {}

impl Receive<u64> for Sink {
    type Reply = ();

    fn receive(&mut self, number: u64, _: &mut Context<Self>) {
        black_box(number);
    }
}

kernel_test! {
    #[machine("stacks of its own")]
    async fn recursion_that_sends() -> Outcome {
        let executor = Executor::start(&Config::default())?;
        let sink = executor.handle().spawn(Sink)?;
        ends_alone(move || _ = black_box(sink.send(7_u64))).await?;
        executor.stop().await;
        Ok(())
    }
}

struct Deep;

impl Actor for Deep {}

impl Receive<u64> for Deep {
    type Reply = ();

    fn receive(&mut self, _: u64, _: &mut Context<Self>) {
        black_box(descend(&|| drop(black_box(alloc::vec::Vec::<u8>::with_capacity(black_box(300)))), 0));
    }
}

kernel_test! {
    /// A behaviour in place of a process: its worker lives on.
    #[machine("stacks of its own")]
    async fn recursion_of_a_behaviour_that_allocates() -> Outcome {
        let executor = Executor::start(&Config::default())?;
        for core in executor.handle().cores().iter() {
            executor.handle().spawn_on(core, Deep)?.send(1_u64)?;
        }
        sched::out_of_work().await;
        executor.stop().await;
        all_cores_are_well().await
    }
}

/// Fails while it is printed.
#[derive(Clone, Copy)]
enum Hostile {
    Prints,
    Panics,
    Overflows,
    PanicsWithItself,
}

impl Display for Hostile {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Prints => {
                text!("a line within a line");
                f.write_str("hostile")
            }
            Self::Panics => panic!("within a line"),
            Self::Overflows => write!(f, "{}", descend(&|| {}, 0)),
            Self::PanicsWithItself => panic!("{self}"),
        }
    }
}

kernel_test! {
    /// The application's `Display` runs while a line is printed, and while a panic is said.
    #[machine("crashes that end alone")]
    async fn what_is_printed_may_fail() -> Outcome {
        let printed = sched::spawn(async { text!("{}", Hostile::Prints) })?;
        ensure!(printed.await.is_ok(), "a line within a line was not printed");
        for hostile in [Hostile::Panics, Hostile::Overflows, Hostile::PanicsWithItself] {
            for core in cores() {
                let process = Spawn::new().pinned(core).start(async move { text!("{hostile}") })?;
                ensure!(process.await.is_err(), "it failed while it was printed, and ended well");
                let process = Spawn::new().pinned(core).start(async move {
                    if black_box(true) {
                        panic!("{hostile}");
                    }
                })?;
                ensure!(process.await.is_err(), "it panicked and ended well");
            }
        }
        all_cores_are_well().await
    }
}

/// Fails while a log frame is made of it.
struct Frame(Hostile);

impl defmt::Format for Frame {
    fn format(&self, f: defmt::Formatter<'_>) {
        match self.0 {
            Hostile::Prints => text!("a line within a frame"),
            Hostile::Overflows => defmt::write!(f, "{=u64}", descend(&|| {}, 0)),
            Hostile::Panics | Hostile::PanicsWithItself => panic!("within a frame"),
        }
    }
}

kernel_test! {
    /// A log frame that is too long for the line is dropped, and nothing else is. What is said of it the host tool's own test
    /// reads (`decode::a_frame_that_is_too_long_is_named`).
    async fn what_is_logged_may_be_too_long() -> Outcome {
        let long = core::str::from_utf8(&[b'x'; 700]).map_err(|_| "no text")?;
        defmt::info!("as long as {=str}", long);
        defmt::info!("and short again");
        Ok(())
    }
}

kernel_test! {
    /// The application's `Format` runs while a log frame is made. The next frame is whole again.
    #[machine("crashes that end alone")]
    async fn what_is_logged_may_fail() -> Outcome {
        for core in cores() {
            let printed = Spawn::new().pinned(core).start(async { defmt::error!("{}", Frame(Hostile::Prints)) })?;
            ensure!(printed.await.is_ok(), "a line within a frame was not printed");
            for hostile in [Hostile::Panics, Hostile::Overflows] {
                let process = Spawn::new().pinned(core).start(async move { defmt::error!("{}", Frame(hostile)) })?;
                ensure!(process.await.is_err(), "it failed while it was logged, and ended well");
            }
            let process = Spawn::new().pinned(core).start(async { defmt::error!("a frame after those that failed") })?;
            ensure!(process.await.is_ok(), "nothing can be logged any more");
        }
        all_cores_are_well().await
    }
}
