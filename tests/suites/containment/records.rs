//! What is written down of a crash: all of it, once, before anybody is told, and by whoever crashes however.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::hint::black_box;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use core::time::Duration;

use magpie::actor::{Actor, AskError, Config, Context, Executor, Receive};
use magpie::arch::CoreId;
use magpie::crash::{self, CrashKind, CrashRecord};
use magpie::sched::{self, JoinError, Spawn};
use magpie::time::Instant;
use magpie::{machine, time};
use magpie_tests::{Failure, Outcome, amount, ensure, ensure_eq, kernel_test};

use crate::ways::{Way, linger};
use crate::{OVERWRITTEN, not_started};

/// Records that are kept.
const KEPT: u64 = 32;

/// A way to crash that has a kind of its own.
#[derive(Clone, Copy, Debug)]
enum How {
    Panics,
    Reads,
    Jumps,
    Undefined,
    Calls,
    Overflows,
    Allocates,
}

impl How {
    const ALL: [Self; 7] = [
        Self::Panics,
        Self::Reads,
        Self::Jumps,
        Self::Undefined,
        Self::Calls,
        Self::Overflows,
        Self::Allocates,
    ];

    #[inline(never)]
    fn crash(self) -> u64 {
        match self {
            Self::Panics => panic!("{} on purpose", black_box(3)),
            Self::Reads => Way::Fault.crash(),
            Self::Jumps => {
                let nowhere = black_box(0x20_usize);
                // SAFETY: deliberately not: there is no code, and who jumps there is to be ended for it.
                (unsafe { core::mem::transmute::<usize, extern "C" fn() -> u64>(nowhere) })()
            }
            Self::Undefined => {
                // SAFETY: an instruction that does not exist does nothing but fault.
                unsafe { core::arch::asm!("udf #7") };
                0
            }
            Self::Calls => {
                // SAFETY: a supervisor call that nobody answers does nothing but fault.
                unsafe { core::arch::asm!("svc #7") };
                0
            }
            Self::Overflows => Way::Overflow.crash(),
            Self::Allocates => black_box(Vec::<u8>::with_capacity(black_box(1 << 45))).len() as u64,
        }
    }

    /// Whether a record is that of such a crash.
    fn check(self, record: &CrashRecord) -> Outcome {
        let (kind, message) = match self {
            Self::Panics => (CrashKind::Panic, "3 on purpose"),
            Self::Reads => (CrashKind::DataAbort, ""),
            Self::Jumps => (CrashKind::InstructionAbort, ""),
            Self::Undefined | Self::Calls => (CrashKind::Undefined, ""),
            Self::Overflows => (CrashKind::StackOverflow, ""),
            Self::Allocates => (CrashKind::OutOfMemory, "memory allocation of 35184372088832 bytes failed"),
        };
        ensure_eq!((record.kind, record.message()), (kind, message), "{record}");
        match (self, record.address) {
            (Self::Reads, Some(8)) | (Self::Jumps, Some(0x20)) | (Self::Overflows, Some(_)) => {}
            (Self::Panics | Self::Undefined | Self::Calls | Self::Allocates, None) => {}
            (_, address) => return Err(Failure(format!("{self:?}: address {address:x?}"))),
        }
        let expected =
            if matches!(self, Self::Jumps) { 0x20..0x21 } else { code_of(How::crash as fn(_) -> _) };
        // Elsewhere is what they share with others.
        if !matches!(self, Self::Overflows | Self::Allocates | Self::Reads) {
            ensure!(expected.contains(&record.pc), "{self:?}: not in {expected:x?}: {record}");
        }
        ensure!(!record.backtrace().is_empty(), "{self:?}: no backtrace: {record}");
        ensure!(record.backtrace().len() <= 16, "{record}");
        Ok(())
    }
}

/// Where the function is that begins here, about.
fn code_of(function: fn(How) -> u64) -> core::ops::Range<usize> {
    let start = function as usize;
    start..start + 512
}

/// The last crash, which is the only one since there were `before`.
fn only_one(before: u64) -> Result<CrashRecord, Failure> {
    ensure_eq!(crash::total(), before + 1, "crashes so far");
    crash::last().ok_or(Failure("there is no last crash".into()))
}

struct Victim;

impl Actor for Victim {}

impl Receive<(How, bool)> for Victim {
    type Reply = u64;

    fn receive(&mut self, (how, late): (How, bool), _: &mut Context<Self>) -> u64 {
        if late {
            linger();
        }
        how.crash()
    }
}

kernel_test! {
    async fn of_a_process() -> Outcome {
        for core in (0..machine::cores()).filter_map(CoreId::new) {
            for how in How::ALL {
                let (before, began) = (crash::total(), Instant::now());
                let process = Spawn::new().pinned(core).start(async move { how.crash() }).map_err(not_started)?;
                ensure_eq!(process.await, Err(JoinError::Crashed), "a process that {how:?}");
                let record = only_one(before)?;
                how.check(&record)?;
                ensure_eq!((record.core, record.actor), (core, None), "where {how:?}, and in what");
                ensure!(record.name().contains("records::of_a_process"), "{how:?}: {}", record.name());
                ensure!(began <= record.at && record.at <= Instant::now(), "{how:?}: at another time");
                ensure_eq!(record.number.get(), before + 1, "the number of {how:?}");
                let again = crash::record(record.number).map(|again| again.number);
                ensure_eq!(again, Some(record.number), "found by its number");
                let shown = format!("{record}");
                ensure!(shown.contains(&format!("{} in ", record.kind)), "{shown}");
                ensure!(shown.contains("\n  backtrace 0"), "{shown}");
            }
        }
        Ok(())
    }
}

kernel_test! {
    /// At once, and suspended before: then it is the piece's process that crashes.
    async fn of_an_actor() -> Outcome {
        let executor = Executor::start(&Config::default())?;
        for late in [false, true] {
            for how in How::ALL {
                let victim = executor.handle().spawn(Victim)?;
                let before = crash::total();
                ensure_eq!(victim.ask((how, late)).await, Err(AskError::Crashed), "an actor that {how:?}");
                let record = only_one(before)?;
                how.check(&record)?;
                ensure_eq!(record.actor, Some(core::any::type_name::<Victim>()), "who {how:?}, late: {late}");
                ensure_eq!(record.name(), core::any::type_name::<Victim>(), "the name of who {how:?}");
            }
        }
        executor.stop().await;
        Ok(())
    }
}

#[inline(never)]
fn outer(way: Way) -> u64 {
    middle(black_box(way)) + black_box(1)
}

#[inline(never)]
fn middle(way: Way) -> u64 {
    inner(black_box(way)) + black_box(2)
}

#[inline(never)]
fn inner(way: Way) -> u64 {
    if black_box(true) && way == Way::Panic {
        panic!("in the inmost");
    }
    let nowhere = black_box(8_usize) as *const u64;
    // SAFETY: deliberately not: nothing is mapped there.
    black_box(unsafe { nowhere.read_volatile() }) + black_box(3)
}

kernel_test! {
    async fn a_backtrace_names_the_callers() -> Outcome {
        for way in [Way::Panic, Way::Fault] {
            let before = crash::total();
            ensure_eq!(sched::spawn(async move { outer(way) })?.await, Err(JoinError::Crashed), "{way:?}");
            let record = only_one(before)?;
            let inside = |address: usize, function: fn(Way) -> u64| {
                (function as usize..function as usize + 256).contains(&address)
            };
            let calls = record.backtrace();
            ensure!(inside(record.pc, inner), "{way:?}: not in inner: {record}");
            ensure!(calls.len() >= 3, "{way:?}: too short: {record}");
            ensure!(inside(calls[0], middle), "{way:?}: not from middle: {record}");
            ensure!(inside(calls[1], outer), "{way:?}: not from outer: {record}");
        }
        Ok(())
    }
}

/// What a damaged stack is full of.
#[derive(Clone, Copy, Debug)]
enum Damage {
    Noise,
    /// Addresses of code.
    Code,
    /// Addresses of the stack itself.
    Stack,
    Zero,
}

/// Overwrites what its callers have on the stack, but not what is above the stack, and faults.
#[inline(never)]
fn damage(damage: Damage, words: usize) -> u64 {
    let local = black_box([0_u64; 4]);
    let start = black_box(local.as_ptr().cast_mut());
    for word in 0..words {
        let at = start.wrapping_add(word);
        let value = match damage {
            Damage::Noise => OVERWRITTEN ^ word as u64,
            Damage::Code => middle as fn(Way) -> u64 as usize as u64 + 4 * (word as u64 % 8),
            Damage::Stack => at.addr() as u64 + 16,
            Damage::Zero => 0,
        };
        // SAFETY: deliberately not: these are the callers' frames, to which nothing returns any more.
        unsafe { at.write_volatile(value) };
    }
    Way::Fault.crash()
}

#[inline(never)]
fn deep(depth: usize, kind: Damage) -> u64 {
    let frame = black_box([depth as u64; 8]);
    let below = if depth == 0 { damage(kind, 200) } else { deep(depth - 1, kind) };
    below + frame[black_box(1)]
}

kernel_test! {
    async fn a_damaged_stack_ends_the_backtrace() -> Outcome {
        for kind in [Damage::Noise, Damage::Code, Damage::Stack, Damage::Zero] {
            let before = crash::total();
            // Deep enough for everything that is overwritten to be frames of these.
            let process = sched::spawn(async move { deep(black_box(40), kind) })?;
            ensure_eq!(process.await, Err(JoinError::Crashed), "{kind:?}");
            let record = only_one(before)?;
            ensure_eq!((record.kind, record.address), (CrashKind::DataAbort, Some(8)), "{kind:?}: {record}");
            ensure!(record.backtrace().len() <= 16, "{kind:?}: {record}");
        }
        Ok(())
    }
}

/// Says something, and fails.
struct Failing(Way);

impl fmt::Display for Failing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("so far")?;
        self.0.crash();
        f.write_str("and no further")
    }
}

/// Says a lot.
struct Long(char, usize);

impl fmt::Display for Long {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (0..self.1).try_for_each(|_| write!(f, "{}", self.0))
    }
}

kernel_test! {
    /// The first failure is on record, with what was said until the second.
    async fn what_a_panic_says_may_fail() -> Outcome {
        for way in Way::ALL {
            let before = crash::total();
            let process = sched::spawn(async move {
                let failing = Failing(way);
                if black_box(true) {
                    panic!("{failing}");
                }
            });
            ensure_eq!(process?.await, Err(JoinError::Crashed), "{way:?} in what a panic says");
            let record = only_one(before)?;
            ensure_eq!((record.kind, record.message()), (CrashKind::Panic, "so far"), "{way:?}");
            ensure!(!record.backtrace().is_empty(), "{way:?}: {record}");
        }
        for (long, kept) in [(Long('x', 5000), 120), (Long('\u{20ac}', 41), 120), (Long('\u{1f600}', 31), 120)] {
            let (before, letter) = (crash::total(), long.0);
            ensure_eq!(sched::spawn(async move { panic!("{long}") })?.await, Err::<(), _>(JoinError::Crashed), "{letter}");
            let record = only_one(before)?;
            ensure_eq!(record.message().len(), kept, "of {letter}");
            ensure!(record.message().chars().all(|c| c == letter), "{}", record.message());
        }
        let before = crash::total();
        let cut = sched::spawn(async { panic!("x{}", Long('\u{20ac}', 100)) })?;
        ensure_eq!(cut.await, Err::<(), _>(JoinError::Crashed), "a letter that is cut off");
        ensure_eq!(only_one(before)?.message().len(), 118, "whole letters");
        Ok(())
    }
}

kernel_test! {
    /// Whoever waits for it, on whatever core.
    async fn before_anybody_is_told() -> Outcome {
        let executor = Executor::start(&Config::default())?;
        for round in 0..amount("rounds", 100) {
            let core = CoreId::new(round as usize % machine::cores()).unwrap_or(CoreId::BOOT);
            let process = Spawn::new().pinned(core).start(async move { panic!("round {round}") });
            let joined: Result<(), _> = process?.await;
            let last = crash::last();
            ensure_eq!(joined, Err(JoinError::Crashed), "round {round}");
            let message = format!("round {round}");
            ensure!(last.is_some_and(|last| last.message() == message), "joined before: {last:?}");
            let victim = executor.handle().spawn(Victim)?;
            let before = crash::total();
            let asked = victim.ask((How::Reads, false)).await;
            let last = crash::last();
            ensure_eq!(asked, Err(AskError::Crashed), "round {round}");
            ensure!(last.is_some_and(|last| last.number.get() == before + 1), "answered before: {last:?}");
        }
        executor.stop().await;
        Ok(())
    }
}

/// A message that shows whether it is whole.
fn numbered(number: u64) -> String {
    format!("{number} {:037} {:037} {number}", number * 7919, number * 104_729)
}

/// The number of such a message.
fn number_of(record: &CrashRecord) -> Result<u64, Failure> {
    let torn = || Failure(format!("a torn record: {record}"));
    let number = record.message().split(' ').next().and_then(|word| word.parse().ok()).ok_or_else(torn)?;
    if record.message() == numbered(number) && record.kind == CrashKind::Panic {
        Ok(number)
    } else {
        Err(torn())
    }
}

/// Reads the records until it is over. How many it has seen.
async fn watch(before: u64, over: &'static AtomicBool, seen: &'static AtomicU64) -> Outcome {
    while !over.load(Ordering::Relaxed) {
        let mut last = 0;
        for record in crash::records().filter(|record| record.number.get() > before) {
            number_of(&record)?;
            ensure!(record.number.get() > last, "{} after {last}", record.number);
            last = record.number.get();
            seen.fetch_add(1, Ordering::Relaxed);
        }
        time::sleep(Duration::from_micros(50)).await;
    }
    Ok(())
}

kernel_test! {
    /// On all cores at once, while all cores read.
    async fn of_many_crashes() -> Outcome {
        static OVER: AtomicBool = AtomicBool::new(false);
        static SEEN: AtomicU64 = AtomicU64::new(0);
        OVER.store(false, Ordering::Relaxed);
        let (crashes, before) = (amount("crashes", 400), crash::total());
        let cores: Vec<_> = (0..machine::cores()).filter_map(CoreId::new).collect();
        let mut readers = Vec::new();
        for &core in &cores {
            readers.push(Spawn::new().pinned(core).start(watch(before, &OVER, &SEEN))?);
        }
        let mut culprits = Vec::new();
        for &core in &cores {
            let numbers = (0..crashes).skip(core.index()).step_by(cores.len());
            culprits.push(sched::spawn(async move {
                for number in numbers {
                    let process = Spawn::new().pinned(core).start(async move { panic!("{}", numbered(number)) });
                    ensure_eq!(process?.await, Err::<(), _>(JoinError::Crashed), "{number}");
                }
                Ok(())
            })?);
        }
        for culprit in culprits {
            culprit.await??;
        }
        OVER.store(true, Ordering::Relaxed);
        for reader in readers {
            reader.await??;
        }
        ensure_eq!(crash::total() - before, crashes, "crashes that were counted");
        let records: Vec<_> = crash::records().collect();
        let numbers: Vec<_> = records.iter().map(|record| record.number.get()).collect();
        let expected: Vec<_> = (before + crashes - KEPT + 1..=before + crashes).collect();
        ensure_eq!(numbers, expected, "the last records");
        let mut told = records.iter().map(number_of).collect::<Result<Vec<_>, _>>()?;
        told.sort_unstable();
        told.dedup();
        ensure_eq!(told.len() as u64, KEPT, "crashes with a record of their own");
        let oldest = records.first().map(|record| record.number);
        ensure!(SEEN.load(Ordering::Relaxed) > 0, "nothing was read meanwhile");
        ensure_eq!(sched::spawn(async { panic!("one more") })?.await, Err::<(), _>(JoinError::Crashed), "one more");
        ensure!(oldest.is_some_and(|oldest| crash::record(oldest).is_none()), "the oldest is still there");
        Ok(())
    }
}
