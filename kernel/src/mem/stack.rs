//! The pool of kernel stacks, and the block at the end of each.
//!
//! A stack occupies a slot of 64 KiB, aligned to its size. The lowest 4 KiB are not mapped (the guard page),
//! the highest [`BLOCK_BYTES`] are its [`StackBlock`], the rest is stack. The vectors rely on this shape.
//!
//! [`take`] and [`give`] run with interrupts masked in the middle of a preemption. That is safe with a
//! lock: only code with preemption disabled holds it, and such code is never preempted, so the core that
//! waits for it waits for another core.

use core::ptr;

use crate::arch::atomic::{AtomicI64, AtomicPtr, AtomicU32, Ordering};
use crate::arch::percpu;
use crate::arch::switch::Frame;
use crate::sync::{PreemptWord, SpinLock};

/// Bytes of a slot, and its alignment.
pub const SLOT_BYTES: usize = 64 * 1024;
/// Bytes at the end of a slot that are the block.
pub const BLOCK_BYTES: usize = 512;

/// What travels with a stack: the preemption count, and what runs on it.
///
/// Touched only by code on the stack and by interrupts on it, or by the core that suspends or resumes it;
/// the queue that a suspended process passes through orders those. So every access is relaxed.
#[repr(C, align(64))]
pub struct StackBlock {
    // First: `sync::PreemptGuard` finds it there.
    preempt: PreemptWord,
    index: u32,
    reductions: AtomicI64,
    process: AtomicPtr<()>,
    frame: AtomicPtr<Frame>,
    next_free: AtomicPtr<StackBlock>,
}

const _: () = assert!(size_of::<StackBlock>() <= BLOCK_BYTES);

impl StackBlock {
    /// The block of a stack that is not in use, with preemption disabled once.
    pub const fn new(index: u32) -> Self {
        Self {
            preempt: PreemptWord::new(1),
            index,
            reductions: AtomicI64::new(0),
            process: AtomicPtr::new(ptr::null_mut()),
            frame: AtomicPtr::new(ptr::null_mut()),
            next_free: AtomicPtr::new(ptr::null_mut()),
        }
    }

    /// The block of the stack that the caller runs on: a core loop's.
    #[inline(always)]
    pub fn current() -> &'static Self {
        // SAFETY: on a core, boot and every switch of stacks set the pointer to a block that is never
        // unmapped.
        unsafe { &*percpu::stack_block().cast::<Self>() }
    }

    /// The process whose turn the caller is part of, by its number; 0 for none.
    #[inline(always)]
    pub fn running_process() -> usize {
        Self::current().process() as usize
    }

    /// Its preemption count.
    #[inline(always)]
    pub fn preempt(&self) -> &PreemptWord {
        &self.preempt
    }

    /// Its number in the pool.
    pub fn index(&self) -> u32 {
        self.index
    }

    /// The process whose turn runs on this stack, or null.
    #[inline(always)]
    pub fn process(&self) -> *mut () {
        self.process.load(Ordering::Relaxed)
    }

    /// Says whose turn runs on this stack.
    #[inline(always)]
    pub fn set_process(&self, process: *mut ()) {
        self.process.store(process, Ordering::Relaxed);
    }

    /// Says that no turn runs on this stack, and returns whose did.
    #[inline(always)]
    pub fn take_process(&self) -> *mut () {
        let process = self.process();
        self.set_process(ptr::null_mut());
        process
    }

    /// The registers of the code that is suspended on this stack.
    pub fn frame(&self) -> *mut Frame {
        self.frame.load(Ordering::Relaxed)
    }

    /// Remembers the registers of the code that is suspended on this stack.
    pub fn set_frame(&self, frame: *mut Frame) {
        self.frame.store(frame, Ordering::Relaxed);
    }

    /// Reductions left in the turn that runs on this stack; below zero when more were charged.
    #[inline(always)]
    pub fn reductions(&self) -> i64 {
        self.reductions.load(Ordering::Relaxed)
    }

    /// Sets the reductions left.
    #[inline(always)]
    pub fn set_reductions(&self, reductions: i64) {
        self.reductions.store(reductions, Ordering::Relaxed);
    }
}

/// A stack, to run on or to give back.
pub struct StackRef(&'static StackBlock);

impl StackRef {
    /// The stack that the caller runs on.
    ///
    /// # Safety
    /// The caller is a core loop that is about to leave its stack for good.
    pub unsafe fn current() -> Self {
        Self(StackBlock::current())
    }

    /// Where its first frame goes, 16-byte aligned.
    pub fn top(&self) -> *mut u8 {
        Self::top_of(self.0)
    }

    /// Where the first frame of the stack with this block goes.
    pub fn top_of(block: &StackBlock) -> *mut u8 {
        ptr::from_ref(block).cast_mut().cast()
    }

    /// Its block.
    pub fn block(&self) -> &'static StackBlock {
        self.0
    }
}

static FREE: SpinLock<Free> = SpinLock::new(Free { first: ptr::null_mut() });
static FREE_COUNT: AtomicU32 = AtomicU32::new(0);
static LEAST_FREE: AtomicU32 = AtomicU32::new(u32::MAX);
static TOTAL: AtomicU32 = AtomicU32::new(0);

struct Free {
    first: *mut StackBlock,
}

// SAFETY: the list's blocks belong to nobody else, on any core.
unsafe impl Send for Free {}

/// The block at the end of slot `index` of a region.
pub fn block_address(region_start: usize, index: usize) -> usize {
    region_start + (index + 1) * SLOT_BYTES - BLOCK_BYTES
}

/// Makes the pool from `slots` slots at `region_start`. The first `in_use` are running already.
///
/// # Safety
/// The region is aligned to [`SLOT_BYTES`], mapped but for its guard pages, and used for nothing else. The
/// blocks of the slots in use were set up by boot. Called once.
pub unsafe fn init(region_start: usize, slots: usize, in_use: usize) {
    TOTAL.store(slots as u32, Ordering::Relaxed);
    for index in in_use..slots {
        let block = ptr::with_exposed_provenance_mut::<StackBlock>(block_address(region_start, index));
        // SAFETY: by contract, memory of a slot that nobody uses.
        unsafe { block.write(StackBlock::new(index as u32)) };
        // SAFETY: just written, and never unmapped.
        give(StackRef(unsafe { &*block }));
    }
    LEAST_FREE.store((slots - in_use) as u32, Ordering::Relaxed);
}

/// A free stack, unless all are in use.
pub fn take() -> Option<StackRef> {
    let mut free = FREE.lock();
    // SAFETY: blocks on the list are alive for ever.
    let block = unsafe { free.first.as_ref() }?;
    // Relaxed, here and below: written under the lock; read elsewhere as statistics.
    free.first = block.next_free.load(Ordering::Relaxed);
    let left = FREE_COUNT.load(Ordering::Relaxed) - 1;
    FREE_COUNT.store(left, Ordering::Relaxed);
    LEAST_FREE.store(left.min(LEAST_FREE.load(Ordering::Relaxed)), Ordering::Relaxed);
    Some(StackRef(block))
}

/// Gives a stack back that nothing runs on any more.
pub fn give(stack: StackRef) {
    let mut free = FREE.lock();
    stack.0.next_free.store(free.first, Ordering::Relaxed);
    free.first = ptr::from_ref(stack.0).cast_mut();
    FREE_COUNT.store(FREE_COUNT.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
}

/// How many stacks there are, how many are free, and the least that ever were.
pub fn usage() -> (u32, u32, u32) {
    (TOTAL.load(Ordering::Relaxed), FREE_COUNT.load(Ordering::Relaxed), LEAST_FREE.load(Ordering::Relaxed))
}
