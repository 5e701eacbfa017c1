//! The pool of kernel stacks, and the block at the end of each.
//!
//! A stack occupies a slot: guard, stack, and [`StackBlock`], see [`stack_layout`](crate::arch::stack_layout).
//!
//! [`take`] and [`give`] run with interrupts masked in the middle of a preemption. That is safe with a
//! lock: only code with preemption disabled holds it, and such code is never preempted, so the core that
//! waits for it waits for another core.

use core::cell::UnsafeCell;
use core::mem::offset_of;
use core::ptr;

use crate::arch::atomic::{AtomicBool, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, Ordering};
use crate::arch::stack_layout::{BLOCK_BYTES, slot_bytes};
#[cfg(target_os = "none")]
use crate::arch::stack_layout::{RESERVE_BYTES, reserve_start};
#[cfg(target_os = "none")]
use crate::arch::switch;
use crate::arch::switch::Frame;
use crate::arch::{pair, percpu};
use crate::sync::{AccountWord, PreemptWord, SpinLock};

#[cfg(target_os = "none")]
const PAGE_BYTES: usize = 4096;

/// What travels with a stack: the preemption count, and what runs on it.
///
/// Touched only by code on the stack and by interrupts on it, or by the core that suspends or resumes it;
/// the queue that a suspended process passes through orders those. So every access is relaxed.
#[repr(C, align(64))]
pub struct StackBlock {
    // First: `sync::PreemptGuard` finds it there.
    preempt: PreemptWord,
    // Second: `sync::account_here` finds it there.
    account: AccountWord,
    index: u32,
    /// Reductions charged in the turn that runs here.
    charged: AtomicU64,
    /// The sequence that holds a lock, or did last: see `arch::locked_append`.
    sequence: AtomicU64,
    /// Reductions that the turn began with.
    granted: AtomicU64,
    /// The process whose turn runs here, or null; and the same if it has more to do, which nobody else needs to be told: see `yield_now`.
    turn: [AtomicPtr<()>; 2],
    crashes: AtomicU32,
    /// How often code on this stack has crashed; read from any core.
    lives: AtomicU32,
    saved: Saved,
    next_free: AtomicPtr<StackBlock>,
    /// What the code on this stack has crashed of, while it says so; it lies on this stack.
    remembered: AtomicPtr<()>,
    in_reserve: AtomicBool,
    /// How many stretches of code the caller is in that are not to be cut off.
    shields: AtomicU8,
}

/// The registers of the code on a stack while it is interrupted or suspended.
#[repr(C, align(64))]
struct Saved(UnsafeCell<Frame>);

// SAFETY: written and read by the vectors of the core that runs the stack, and by the core that suspends or resumes it,
// one after the other.
unsafe impl Sync for Saved {}

// A checker's atomics are larger than the machine's, and no vectors are there.
#[cfg(target_os = "none")]
const _: () = {
    use crate::arch::stack_layout::{CHARGED_IN_BLOCK, FRAME_IN_BLOCK, SEQUENCE_IN_BLOCK};

    assert!(size_of::<StackBlock>() <= BLOCK_BYTES);
    assert!(offset_of!(StackBlock, account) == size_of::<PreemptWord>());
    assert!(offset_of!(StackBlock, saved) == FRAME_IN_BLOCK, "the vectors write there");
    assert!(offset_of!(StackBlock, charged) == CHARGED_IN_BLOCK, "a sequence that holds a lock writes there");
    assert!(offset_of!(StackBlock, sequence) == SEQUENCE_IN_BLOCK, "so does it, and the vectors read there");
};

/// How many bits of a stack's number of crashes are kept: two lives are taken for one if they are exactly 2^20 apart.
const LIVES_BITS: u32 = 20;

impl StackBlock {
    const ALIGN: u64 = align_of::<Self>() as u64;

    /// The block of a stack that is not in use, with preemption disabled once.
    pub const fn new(index: u32) -> Self {
        Self {
            preempt: PreemptWord::new(1),
            account: AccountWord::new(),
            index,
            charged: AtomicU64::new(0),
            sequence: AtomicU64::new(0),
            granted: AtomicU64::new(0),
            turn: [const { AtomicPtr::new(ptr::null_mut()) }; 2],
            next_free: AtomicPtr::new(ptr::null_mut()),
            crashes: AtomicU32::new(0),
            in_reserve: AtomicBool::new(false),
            shields: AtomicU8::new(0),
            lives: AtomicU32::new(0),
            saved: Saved(UnsafeCell::new(Frame::EMPTY)),
            remembered: AtomicPtr::new(ptr::null_mut()),
        }
    }

    /// The block of the stack that the caller runs on: a core loop's.
    #[inline(always)]
    pub(crate) fn current() -> &'static Self {
        // SAFETY: on a core, boot and every switch of stacks set the pointer to a block that is never
        // unmapped.
        unsafe { &*percpu::stack_block().cast::<Self>() }
    }

    /// The process whose turn the caller is part of, by its number; 0 for none.
    #[inline(always)]
    pub(crate) fn running_process() -> usize {
        Self::current().process() as usize
    }

    /// Its preemption count.
    #[inline(always)]
    pub(crate) fn preempt(&self) -> &PreemptWord {
        &self.preempt
    }

    /// Who pays for what the code on it allocates.
    #[inline(always)]
    pub(crate) fn account(&self) -> &AccountWord {
        &self.account
    }

    /// Its number in the pool.
    pub fn index(&self) -> u32 {
        self.index
    }

    /// The process whose turn runs on this stack, or null.
    #[inline(always)]
    pub(crate) fn process(&self) -> *mut () {
        self.turn[0].load(Ordering::Relaxed)
    }

    /// Says whose turn runs on this stack.
    #[inline(always)]
    pub(crate) fn set_process(&self, process: *mut ()) {
        self.turn[0].store(process, Ordering::Relaxed);
    }

    /// Says that no turn runs on this stack, and returns whose did, and the same if that has said that it has more to do; otherwise another.
    #[inline(always)]
    pub(crate) fn end_turn(&self) -> [*mut (); 2] {
        // SAFETY: the two lie there, in a block that stays.
        unsafe { pair::take_pointers::<{ offset_of!(Self, turn) }, ()>(core::ptr::from_ref(self).cast()) }
    }

    /// The registers of the code that is interrupted or suspended on this stack.
    pub(crate) fn saved(&self) -> *mut Frame {
        self.saved.0.get()
    }

    /// Maps the reserve, or unmaps it. On a host there is none.
    ///
    /// # Safety
    /// The caller is on the core that runs this stack, and nothing is in the reserve that is used after it is unmapped.
    pub(crate) unsafe fn map_reserve(&self, is_mapped: bool) {
        self.in_reserve.store(is_mapped, Ordering::Relaxed);
        #[cfg(target_os = "none")]
        for page in 0..RESERVE_BYTES / PAGE_BYTES {
            let start = reserve_start(ptr::from_ref(self) as usize);
            // SAFETY: by contract; boot unmapped the page as one of a stack's reserve.
            unsafe { crate::arch::mmu::map_page(start + page * PAGE_BYTES, is_mapped) };
        }
    }

    /// The part of this stack, as far as it is mapped, that is in use by code with its stack pointer at `sp`: its
    /// start, and its bytes.
    #[cfg(target_os = "none")]
    pub(crate) fn in_use(&self, sp: usize) -> (*const u8, usize) {
        let top = ptr::from_ref(self) as usize;
        let reserve = reserve_start(top);
        let lowest = if self.is_in_reserve() { reserve } else { reserve + RESERVE_BYTES };
        let from = sp.clamp(lowest, top);
        (ptr::with_exposed_provenance(from), top - from)
    }

    /// Overwrites what is left below the caller's frame, so that it does not seem to be in use later, when other frames lie
    /// there: not all of a frame is written by the code that it belongs to.
    ///
    /// # Safety
    /// Called by code on this stack, with nothing below its frame that is used again.
    #[cfg(target_os = "none")]
    #[inline(always)]
    pub(crate) unsafe fn clear_below(&self) {
        // SAFETY: the caller promised that nothing below its frame is used; that part of the stack is mapped.
        unsafe { switch::clear_stack_from(reserve_start(ptr::from_ref(self) as usize) + RESERVE_BYTES) };
    }

    /// As on a machine; a host has no stacks of its own.
    #[cfg(not(target_os = "none"))]
    pub(crate) fn in_use(&self, _sp: usize) -> (*const u8, usize) {
        (ptr::null(), 0)
    }

    /// Whether the code on this stack ran out of it in a section of the kernel's, after which it must end.
    pub(crate) fn is_in_reserve(&self) -> bool {
        self.in_reserve.load(Ordering::Relaxed)
    }

    /// The code on this stack begins a stretch in which it must not be ended from outside, or ends one.
    pub(crate) fn shield(&self, begins: bool) {
        let shields = self.shields.load(Ordering::Relaxed);
        self.shields.store(if begins { shields + 1 } else { shields.saturating_sub(1) }, Ordering::Relaxed);
    }

    /// Whether it is in one.
    #[inline(always)]
    pub(crate) fn is_shielded(&self) -> bool {
        self.shields.load(Ordering::Relaxed) != 0
    }

    /// It failed in one, and goes on no more.
    pub(crate) fn end_shields(&self) {
        self.shields.store(0, Ordering::Relaxed);
    }

    /// How often the code on this stack has failed in the turn that this failure ends: more than once if reporting the
    /// failure failed.
    pub(crate) fn crashes(&self) -> u32 {
        self.crashes.load(Ordering::Relaxed)
    }

    /// Sets how often.
    pub(crate) fn set_crashes(&self, crashes: u32) {
        self.crashes.store(crashes, Ordering::Relaxed);
    }

    /// What the code on this stack has crashed of, if it is saying so.
    pub(crate) fn remembered(&self) -> *mut () {
        self.remembered.load(Ordering::Relaxed)
    }

    /// Says what.
    pub(crate) fn remember(&self, crash: *mut ()) {
        self.remembered.store(crash, Ordering::Relaxed);
    }

    /// How often code on this stack has crashed, in whatever turn.
    fn lives(&self) -> u32 {
        self.lives.load(Ordering::Relaxed)
    }

    /// A number below 2^62 for the code that runs on this stack, different from that of any other code: the block's
    /// place, and as many bits as fit of how often code there has crashed.
    pub(crate) fn life(&self) -> u64 {
        let place = ptr::from_ref(self).expose_provenance() as u64 / Self::ALIGN;
        (place << LIVES_BITS) | (u64::from(self.lives()) % (1 << LIVES_BITS))
    }

    /// Whether the code with this number has crashed since.
    ///
    /// # Safety
    /// `life` came from [`Self::life`].
    pub(crate) unsafe fn life_has_ended(life: u64) -> bool {
        if cfg!(not(target_os = "none")) {
            // A host's stacks come and go, and a crash there ends the program.
            return false;
        }
        let place = (life >> LIVES_BITS) * Self::ALIGN;
        // SAFETY: the place of a block, by contract; blocks are never unmapped.
        let block = unsafe { &*ptr::with_exposed_provenance::<Self>(place as usize) };
        block.life() != life
    }

    /// The code on this stack has crashed.
    pub(crate) fn end_life(&self) {
        // Relaxed load and store: only the code that ends what runs on the stack does this. A reader that must not miss
        // it takes a lock that the caller takes afterwards.
        self.lives.store(self.lives().wrapping_add(1), Ordering::Relaxed);
    }

    /// Charges the turn that runs on this stack. What is charged beyond what was granted is counted, too.
    #[inline(always)]
    pub(crate) fn charge(&self, reductions: u64) {
        self.charged.store(self.charged.load(Ordering::Relaxed).wrapping_add(reductions), Ordering::Relaxed);
    }

    /// What the turn that runs on this stack was charged.
    pub(crate) fn charged(&self) -> u64 {
        self.charged.load(Ordering::Relaxed)
    }

    /// Whether the turn has used up what it was granted.
    #[inline(always)]
    pub(crate) fn is_exhausted(&self) -> bool {
        self.charged.load(Ordering::Relaxed) >= self.granted.load(Ordering::Relaxed)
    }

    /// A turn begins, or goes on, with so many reductions, and each that follows it begins so, unless others are granted. What was charged
    /// before is forgotten.
    #[inline(always)]
    pub(crate) fn grant(&self, reductions: u64) {
        self.granted.store(reductions, Ordering::Relaxed);
        self.charged.store(0, Ordering::Relaxed);
    }

    /// The turn has used up what it was granted from now on.
    pub(crate) fn exhaust(&self) {
        self.granted.store(0, Ordering::Relaxed);
    }

    /// Whether [`Self::exhaust`] was called in this turn.
    pub(crate) fn is_asked_to_end(&self) -> bool {
        self.granted.load(Ordering::Relaxed) == 0
    }

    /// What was charged in the turn that has ended, or goes on, if anything was.
    #[inline(always)]
    pub(crate) fn take_charged(&self) -> Option<u64> {
        let charged = self.charged.load(Ordering::Relaxed);
        if charged == 0 {
            return None;
        }
        self.charged.store(0, Ordering::Relaxed);
        Some(charged)
    }

    /// The process whose turn runs on this stack, which is this one, has more to do.
    #[inline(always)]
    pub(crate) fn note_yield(&self, process: *mut ()) {
        self.turn[1].store(process, Ordering::Relaxed);
    }

    /// It has not, whatever it said.
    #[inline(always)]
    pub(crate) fn forget_yield(&self) {
        self.turn[1].store(ptr::null_mut(), Ordering::Relaxed);
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

    /// The stack with this block.
    ///
    /// # Safety
    /// Nothing runs on it, or is suspended there, and it is the caller's alone.
    pub(crate) unsafe fn abandoned(block: &'static StackBlock) -> Self {
        Self(block)
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
    region_start + (index + 1) * slot_bytes() - BLOCK_BYTES
}

/// The first slot's block.
static FIRST_BLOCK: AtomicPtr<StackBlock> = AtomicPtr::new(ptr::null_mut());

/// The blocks of all stacks, in use or not.
#[cfg(target_os = "none")]
pub(crate) fn all() -> impl Iterator<Item = &'static StackBlock> {
    // Relaxed: as `TOTAL`, written once, before there is another core.
    let first = FIRST_BLOCK.load(Ordering::Relaxed);
    // SAFETY: boot has set it up, and it stays.
    let boot = unsafe { crate::arch::image::boot_stack_block().cast::<StackBlock>().as_ref() };
    let pool = (0..TOTAL.load(Ordering::Relaxed) as usize).filter_map(move |index| {
        // SAFETY: the pool's slots lie one behind the other, and each block is alive for ever.
        unsafe { first.wrapping_byte_add(index * slot_bytes()).as_ref() }
    });
    boot.into_iter().chain(pool)
}

/// Makes the pool from `slots` slots at `region_start`. The first `in_use` are running already.
///
/// # Safety
/// The region is aligned to [`slot_bytes`], mapped but for its guards and reserves, and used for nothing else. The
/// blocks of the slots in use were set up by boot. Called once.
pub unsafe fn init(region_start: usize, slots: usize, in_use: usize) {
    TOTAL.store(slots as u32, Ordering::Relaxed);
    FIRST_BLOCK.store(ptr::with_exposed_provenance_mut(block_address(region_start, 0)), Ordering::Relaxed);
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
