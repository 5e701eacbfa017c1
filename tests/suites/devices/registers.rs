//! Registers that are claimed, and the memory that hangs on them: who is refused, and what becomes of both in a crash. The device is the
//! clock of QEMU's `virt`, a PL031, which asks by a level.

use alloc::vec::Vec;
use core::hint::black_box;
use core::ops::Range;
use core::sync::atomic::{AtomicU64, Ordering};

use magpie::arch::CoreId;
use magpie::device::{ClaimError, DMA_PAGE_BYTES, DmaMemory, Registers};
use magpie::internals::mem::heap::HEAP;
use magpie::interrupt::{Interrupt, Trigger};
use magpie::sched::{self, JoinError, Spawn};
use magpie::time::Instant;
use magpie::{machine, time};
use magpie_boot::tree::{self, Device};
use magpie_tests::{Failure, HANGS_AFTER, amount, ensure, ensure_eq, kernel_test};

// Registers of a PL031 (Arm DDI 0224B).
const DATA: usize = 0x00;
const MATCH: usize = 0x04;
const INTERRUPT_MASK: usize = 0x10;
const INTERRUPT_CLEAR: usize = 0x1c;
const PART_NUMBER: usize = 0xfe0;

/// How often the clock was made quiet.
static QUIETED: AtomicU64 = AtomicU64::new(0);

fn quiet(clock: &Registers) {
    clock.write_u32(INTERRUPT_MASK, 0);
    QUIETED.fetch_add(1, Ordering::AcqRel);
}

/// The clock, if the machine has one: the Raspberry Pi 4 has none.
fn clock() -> Option<Device<'static>> {
    tree::find("arm,pl031").next()
}

/// Registers that nobody else drives: the clock's, or on the Raspberry Pi 4 those of its pins.
fn range() -> Result<Range<usize>, Failure> {
    let pins = || (board() == "rpi4").then_some(0xfe20_0000..0xfe20_00f4);
    Ok(clock().and_then(|clock| clock.registers(0)).or_else(pins).ok_or("no device to drive")?)
}

fn board() -> &'static str {
    machine::get().map_or("", |machine| machine.board)
}

fn claim() -> Result<Registers, Failure> {
    fn leave(_: &Registers) {
        QUIETED.fetch_add(1, Ordering::AcqRel);
    }
    let quiet = if board() == "virt" { quiet } else { leave };
    // SAFETY: the machine has this device, and it reads and writes no memory by itself.
    Ok(unsafe { Registers::claim(range()?, quiet)? })
}

fn refused(range: Range<usize>) -> Option<ClaimError> {
    // SAFETY: the tests that call this are refused, and drop at once what they are not.
    unsafe { Registers::claim(range, |_| ()) }.err()
}

fn cores() -> impl Iterator<Item = CoreId> {
    (0..machine::cores()).filter_map(CoreId::new)
}

kernel_test! {
    /// The tree says where the clock is and how it asks; its interrupt comes, for each core that has the line.
    async fn a_device_of_the_tree_is_driven() -> Outcome {
        ensure!(tree::all().count() > 3, "the tree describes next to nothing");
        let Some(device) = clock() else {
            ensure_eq!(board(), "rpi4", "the board without a PL031");
            return Ok(());
        };
        ensure!(device.is_compatible("arm,primecell"), "{device:?} is no primecell");
        let clock = claim()?;
        ensure_eq!(clock.read_u32(PART_NUMBER) & 0xff, 0x31, "the part number");
        let line = device.line(0)?;
        ensure_eq!(line.trigger, Trigger::Level, "how it asks");
        let mut interrupt = Interrupt::claim(line)?;
        for core in cores() {
            interrupt.route(core)?;
            // It has reached that already, so it asks at once.
            clock.write_u32(MATCH, clock.read_u32(DATA));
            clock.write_u32(INTERRUPT_MASK, 1);
            interrupt.wait().await?;
            // Not quiet yet, so it goes on asking.
            interrupt.wait().await?;
            clock.write_u32(INTERRUPT_CLEAR, 1);
            clock.write_u32(INTERRUPT_MASK, 0);
        }
        Ok(())
    }
}

kernel_test! {
    /// None of the kernel's, no memory, nothing twice, nothing that is nothing.
    async fn claims_are_refused_for_a_reason() -> Outcome {
        let local = 0_u64;
        let stack = (&raw const local).addr() & !0xfff;
        ensure_eq!(refused(stack..stack + 0x1000), Some(ClaimError::Kernels), "the stack");
        ensure_eq!(refused(0..0x1000), Some(ClaimError::Kernels), "the first page");
        ensure_eq!(refused(0..8), Some(ClaimError::Kernels), "null");
        ensure_eq!(refused(0x2000..0x2000), Some(ClaimError::Unfit), "nothing");
        let reversed = Range { start: 0x3000, end: 0x2000 };
        ensure_eq!(refused(reversed), Some(ClaimError::Unfit), "less than nothing");
        ensure_eq!(refused(usize::MAX - 8..usize::MAX), Some(ClaimError::Unfit), "the end of all");
        ensure_eq!(refused(1 << 45..(1 << 45) + 8), Some(ClaimError::Unfit), "beyond what can be mapped");
        for name in ["arm,pl011", "arm,cortex-a15-gic", "arm,gic-400", "arm,gic-v3"] {
            for device in tree::find(name) {
                // The Raspberry Pi 4 has other ports of the kind.
                let is_kernels = name != "arm,pl011" || device.registers(0).is_some_and(|range| board() == "virt" || range.start == 0xfe20_1000);
                let range = device.registers(0).ok_or("no registers")?;
                ensure!(!is_kernels || refused(range) == Some(ClaimError::Kernels), "{device:?} can be claimed");
            }
        }
        if board() == "rpi4" {
            // Another serial port (UART3), beside the console in its page.
            ensure_eq!(refused(0xfe20_1600..0xfe20_1800), None, "a port beside the kernel's");
            ensure_eq!(refused(0xfe20_11fc..0xfe20_1204), Some(ClaimError::Kernels), "the kernel's end");
        }
        let first = claim()?;
        let range = range()?;
        ensure_eq!(refused(range.clone()), Some(ClaimError::Taken), "the same again");
        ensure_eq!(refused(range.end - 4..range.end), Some(ClaimError::Taken), "its last register");
        drop(first);
        drop(claim()?);
        // As many as can be driven; then no more.
        let slots: Vec<_> = (0..65).map(|slot| range.start + 4 * slot).collect();
        let mut all = Vec::new();
        for (number, start) in slots.into_iter().enumerate() {
            // SAFETY: nothing is read or written.
            match unsafe { Registers::claim(start..start + 4, |_| ()) } {
                Ok(registers) => all.push(registers),
                Err(error) => ensure_eq!((number, error), (64, ClaimError::TooMany), "a refusal"),
            }
        }
        ensure_eq!(all.len(), 64, "claims at a time");
        Ok(())
    }
}

kernel_test! {
    /// Whoever asks for a register that there is not crashes, and the device is quiet.
    #[machine("crashes")]
    async fn what_is_outside_is_not_touched() -> Outcome {
        for offset in [range()?.len(), usize::MAX, range()?.len() - 1, 2] {
            let before = QUIETED.load(Ordering::Acquire);
            let reads = sched::spawn(async move {
                if let Ok(registers) = claim() {
                    black_box(registers.read_u32(black_box(offset)));
                }
            })?;
            ensure!(matches!(reads.await, Err(JoinError::Crashed)), "a read at {offset:#x} went well");
            ensure_eq!(QUIETED.load(Ordering::Acquire), before + 1, "devices made quiet");
            drop(claim()?);
        }
        Ok(())
    }
}

kernel_test! {
    /// A device is quiet as soon as its driver has crashed, and its registers are the next one's; also when they were moved.
    #[machine("crashes")]
    async fn a_crash_makes_the_device_quiet() -> Outcome {
        for core in cores() {
            let registers = claim()?;
            let before = QUIETED.load(Ordering::Acquire);
            let drives = Spawn::new().pinned(core).start(async move {
                if board() == "virt" {
                    registers.write_u32(INTERRUPT_MASK, 1);
                }
                let owned = registers.belong_to_caller();
                assert!(owned.is_err(), "on purpose");
            })?;
            ensure!(matches!(drives.await, Err(JoinError::Crashed)), "it has not crashed");
            ensure_eq!(QUIETED.load(Ordering::Acquire), before + 1, "devices made quiet");
            let next = claim()?;
            if board() == "virt" {
                ensure_eq!(next.read_u32(INTERRUPT_MASK), 0, "the mask, by the one before");
            }
        }
        Ok(())
    }
}

kernel_test! {
    /// Whole pages, zeroed, at one address for both; given back when they are dropped.
    async fn shared_memory_is_whole_and_comes_back() -> Outcome {
        let registers = claim()?;
        let mut peak = 0;
        for round in 0..amount("work", 300) {
            let before = mem_used();
            let memory = DmaMemory::new(&registers, round as usize * 100 + 1, round % 2 == 0)?;
            ensure!(memory.bytes() > round as usize * 100, "fewer bytes than asked for");
            ensure_eq!(memory.bytes() % DMA_PAGE_BYTES, 0, "bytes beyond whole pages");
            ensure_eq!(memory.address() as usize % DMA_PAGE_BYTES, 0, "its place in a page");
            let mut last = [1];
            memory.read(memory.bytes() - 1, &mut last);
            ensure_eq!(last, [0], "what was there before");
            memory.write(memory.bytes() - 4, b"last");
            memory.sync();
            let mut read = [0; 4];
            memory.read(memory.bytes() - 4, &mut read);
            ensure_eq!(&read, b"last", "what was written");
            drop(memory);
            peak = peak.max(mem_used().saturating_sub(before));
        }
        // Spans that the heap keeps for the next.
        ensure!(peak < 64 << 10, "{peak} bytes did not come back");
        ensure!(matches!(DmaMemory::new(&registers, usize::MAX, true), Err(ClaimError::OutOfMemory)), "all of it");
        ensure!(matches!(DmaMemory::new(&registers, 1 << 40, true), Err(ClaimError::OutOfMemory)), "a terabyte");
        Ok(())
    }
}

fn mem_used() -> usize {
    HEAP.usage().0
}

kernel_test! {
    /// What drivers that crash have shared is found by the collection, and nothing is while it is shared.
    #[machine("crashes")]
    async fn a_crash_loses_no_memory() -> Outcome {
        const ROUNDS: u32 = 192;
        static SHARED: AtomicU64 = AtomicU64::new(0);
        // Memory has to be used up several times: on a machine with much of it that takes minutes.
        if HEAP.usage().1 > 256 << 20 {
            return Ok(());
        }
        // Shared, and reached by nothing but the claim.
        let registers = claim()?;
        let kept = DmaMemory::new(&registers, DMA_PAGE_BYTES, true)?;
        kept.write(0, b"stays");
        // As no collection can see it.
        let hidden = !kept.address();
        core::mem::forget(kept);
        // Three times the memory that there is, in pieces of which a few may seem to be in use.
        let bytes = HEAP.usage().1 / 64;
        crash_with_memory(ROUNDS, move || {
            let mut local = Vec::<u8>::new();
            local.try_reserve_exact(bytes).is_ok() && black_box(&local).is_empty() && {
                // With it.
                assert!(!black_box(true), "on purpose");
                true
            }
        })
        .await?;
        let address = core::ptr::with_exposed_provenance::<[u8; 5]>(!black_box(hidden) as usize);
        // SAFETY: shared still, so it was not given back.
        let text = unsafe { address.read_volatile() };
        ensure_eq!(&text, b"stays", "what is shared");
        drop(registers);
        SHARED.store(0, Ordering::Relaxed);
        crash_with_memory(ROUNDS, move || {
            let Ok(registers) = claim() else { return false };
            let Ok(memory) = DmaMemory::new(&registers, bytes, true) else { return false };
            SHARED.fetch_add(1, Ordering::AcqRel);
            assert!(black_box(memory.bytes()) < bytes, "on purpose");
            true
        })
        .await?;
        ensure_eq!(SHARED.load(Ordering::Acquire), u64::from(ROUNDS), "drivers that had memory");
        Ok(())
    }
}

/// Runs it in a process that crashes, so many times, or more often where there was no memory for it yet.
async fn crash_with_memory(
    times: u32,
    body: impl Fn() -> bool + Copy + Send + 'static,
) -> Result<(), Failure> {
    let began = Instant::now();
    for _ in 0..times {
        loop {
            let crashes = sched::spawn(async move {
                let had_memory = body();
                assert!(!black_box(had_memory), "on purpose");
            })?;
            if crashes.await == Err(JoinError::Crashed) {
                break;
            }
            ensure!(began.elapsed() < HANGS_AFTER, "what crashed keeps its memory");
            time::sleep(core::time::Duration::from_millis(1)).await;
        }
    }
    Ok(())
}
