//! Orphans: blocks of the heap that crashed code owned, and that nobody else can reach.
//!
//! A crash drops nothing, because it may have come in the middle of a change. What the crashed code owned on the heap would
//! stay allocated for ever. So the crash path notes every word that may be a pointer into the heap, in what it gives back:
//! the used part of the stack, the future or the actor's state, the message in hand ([`note`]). Later all of it is looked at together
//! ([`begin`]): a block that a noted word leads to, and that nothing alive leads to, is freed without being dropped. What something alive
//! leads to, or seems to, stays noted, because it may be an orphan later. That is written among the marks of the heap, so there is room for
//! any number, and nothing is ever forgotten: an orphan that was would keep all that it leads to, and whatever is put there later.
//!
//! So a block belongs to whoever can reach it. What was moved to another actor in a message is that actor's, and what
//! is shared is everybody's, without any bookkeeping where memory is allocated or messages are sent.
//!
//! When that is done, and from which roots, is described in `sched::run::collect`.

mod collect;
mod marks;
mod prefix;
mod world;

use core::cell::UnsafeCell;
use core::ops::Range;

use super::heap::HEAP;
#[cfg(target_os = "none")]
use super::stack::StackBlock;
use crate::arch::atomic::{AtomicBool, AtomicUsize, Ordering};
use crate::sync::SpinLock;
use collect::{ADDRESS_BITS, Collector};
use marks::Mark;
pub(super) use world::Memory;
use world::Walk;

/// With more words noted since the last collection it is time to collect.
const ENOUGH: usize = 3072;
/// After a collection that was given up it is time again with so many more.
const MORE: usize = 2048;

/// Words noted since the last collection that came to an end.
static NOTED: AtomicUsize = AtomicUsize::new(0);
/// With more of them it is time to collect.
static DUE_ABOVE: AtomicUsize = AtomicUsize::new(ENOUGH);
/// Whether anything is noted.
static IS_ANY: AtomicBool = AtomicBool::new(false);
/// With fewer free bytes than this it is time to collect.
static COLLECT_BELOW_BYTES: AtomicUsize = AtomicUsize::new(usize::MAX);

/// An allocation failed that a collection might have helped; or a collection was given up.
static WANTED: AtomicBool = AtomicBool::new(false);

/// Notes what a crash leaves in some memory, before that is given back.
///
/// With preemption disabled, or in a core's loop, because a collection that came in the middle would not look at what is being noted. Memory that is no
/// root any more, as a stack that nothing runs on, may be noted piece by piece: what is noted later a later collection finds.
///
/// # Safety
/// The memory is readable, in whole words where it is aligned, and nobody writes to it.
// Once, for the size of an image.
#[inline(never)]
pub unsafe fn note(memory: *const u8, bytes: usize) {
    #[cfg(target_os = "none")]
    debug_assert!(!StackBlock::current().preempt().is_enabled(), "a collection may come while this is noted");
    let skipped = memory.align_offset(size_of::<usize>());
    let words = bytes.saturating_sub(skipped) / size_of::<usize>();
    let first = memory.wrapping_add(skipped).cast::<usize>();
    let marks = HEAP.marked.marks();
    let is_new = |index: &usize| {
        // SAFETY: the caller promised readable memory. Volatile: it may be of any type.
        let word = unsafe { first.add(*index).read_volatile() };
        marks.note(word & ADDRESS_BITS as usize)
    };
    let noted = (0..words).filter(is_new).count();
    if noted > 0 {
        // Relaxed, here and where they are read: they say when to collect, and order nothing.
        NOTED.fetch_add(noted, Ordering::Relaxed);
        IS_ANY.store(true, Ordering::Relaxed);
    }
}

/// Notes what a crash leaves in some memory, and overwrites it: otherwise it would seem to be in use where it lies, in
/// a pool or on a list of what can be used again.
///
/// # Safety
/// The memory is readable and writable, and nobody uses what is in it any more.
pub unsafe fn note_and_clear(memory: *mut u8, bytes: usize) {
    // SAFETY: the caller promised memory that can be written and that nobody uses any more.
    unsafe {
        note(memory, bytes);
        memory.write_bytes(0, bytes);
    }
}

/// Whether enough has accumulated to collect, or memory is short and a collection may free some.
pub fn is_due() -> bool {
    // Relaxed: hints.
    let is_short = || {
        let (used, free) = HEAP.usage();
        free < COLLECT_BELOW_BYTES.load(Ordering::Relaxed).min((used + free) / 4)
    };
    NOTED.load(Ordering::Relaxed) > DUE_ABOVE.load(Ordering::Relaxed)
        || (IS_ANY.load(Ordering::Relaxed) && is_short())
}

/// An allocation failed. If crashes have left something, a collection is wanted. How soon it comes after others that were in vain is
/// for `sched::run::collect` to say.
pub(super) fn want_if_any() {
    if IS_ANY.load(Ordering::Relaxed) {
        // Relaxed, here and where it is read and taken back: it is a request, and orders nothing.
        WANTED.store(true, Ordering::Relaxed);
    }
}

/// Whether a collection is wanted though nothing crashes.
pub fn is_wanted() -> bool {
    WANTED.load(Ordering::Relaxed)
}

/// What collections have done so far: they free what crashed code owned on the heap.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Collections {
    /// How many came to an end.
    pub finished: u64,
    /// How many were given up, because a core did not stand still in time, or looking took too long.
    pub given_up: u64,
    /// Blocks of the heap that they freed.
    pub blocks: u64,
    /// The bytes of those blocks.
    pub bytes: u64,
    /// The longest time that all cores stood still, in clock ticks.
    pub longest_ticks: u64,
}

static COLLECTIONS: SpinLock<Collections> =
    SpinLock::new(Collections { finished: 0, given_up: 0, blocks: 0, bytes: 0, longest_ticks: 0 });

/// What collections have done so far.
pub fn collections() -> Collections {
    *COLLECTIONS.lock()
}

/// The collector's own memory, for the holder of the [`Collection`].
struct Place(UnsafeCell<Collector>);

// SAFETY: used only by the caller that has set `IS_BUSY`.
unsafe impl Sync for Place {}

static PLACE: Place = Place(UnsafeCell::new(Collector::new()));
static IS_BUSY: AtomicBool = AtomicBool::new(false);

/// A collection in progress; one at a time.
pub struct Collection {
    is_finished: bool,
    /// Bytes.
    freed: usize,
}

/// Begins a collection, unless one is in progress.
pub fn begin() -> Option<Collection> {
    // Acquire: pairs with the release at the end of the one before.
    (!IS_BUSY.swap(true, Ordering::Acquire)).then_some(Collection { is_finished: false, freed: 0 })
}

impl Collection {
    /// Frees what nobody can reach any more. `each_root` shows all memory outside of the heap where pointers into it may be,
    /// `each_unused` an address in each block of the heap that nobody reads before it is written to. `forget` is called with what says of an
    /// address in the first 16 bytes of a block whether that is about to be freed, if anything is. If the search is not complete at
    /// the time `end`, in clock ticks, nothing is freed.
    ///
    /// # Safety
    /// Nobody else is in the heap or changes any memory meanwhile, and pointers into the heap are nowhere else.
    pub unsafe fn run(
        &mut self,
        each_root: impl Fn(&mut dyn FnMut(Range<usize>)),
        each_unused: impl Fn(&mut dyn FnMut(usize)),
        forget: impl Fn(&dyn Fn(usize) -> bool),
        end: u64,
    ) {
        let marks = HEAP.marked.marks();
        // SAFETY: this is the collection in progress.
        let collector = unsafe { &mut *PLACE.0.get() };
        // SAFETY: by contract, here and below; blocks of the heap are readable.
        let walk = unsafe { Walk::new(&HEAP, &each_root, &each_unused, end) };
        // SAFETY: as above.
        if !unsafe { collector.mark(&walk, &marks) } {
            marks.settle();
            return;
        }
        if marks.next_candidate(marks.base()).is_some() {
            forget(&|address| marks.get(address) == Mark::Candidate);
        }
        // SAFETY: as above; nobody can reach what is still a candidate.
        let (blocks, bytes) = unsafe { world::free_candidates(&HEAP, &marks) };
        // Relaxed: all others stand still.
        IS_ANY.store(marks.settle(), Ordering::Relaxed);
        NOTED.store(0, Ordering::Relaxed);
        let mut collections = COLLECTIONS.lock();
        collections.finished += 1;
        collections.blocks += blocks;
        collections.bytes += bytes;
        drop(collections);
        self.is_finished = true;
        self.freed = bytes as usize;
    }

    /// Ends, after all cores stood still for so many clock ticks. Returns whether it was worth it.
    pub fn end(self, ticks: u64) -> bool {
        let mut collections = COLLECTIONS.lock();
        collections.longest_ticks = collections.longest_ticks.max(ticks);
        drop(collections);
        if !self.is_finished {
            return self.give_up();
        }
        let (used, free) = HEAP.usage();
        // A collection that finds little is not repeated for every crash. Relaxed: a hint.
        COLLECT_BELOW_BYTES.store(free / 2, Ordering::Relaxed);
        WANTED.store(false, Ordering::Relaxed);
        DUE_ABOVE.store(ENOUGH, Ordering::Relaxed);
        self.freed > (used + free) / 16
    }

    /// Ends without having seen everything. What was noted stays for now, and another collection is wanted; for crashes only
    /// when they have left more, or each would wait for one. This one counts as not worth it.
    pub fn give_up(self) -> bool {
        WANTED.store(true, Ordering::Relaxed);
        COLLECTIONS.lock().given_up += 1;
        // Relaxed: a hint.
        DUE_ABOVE.store(NOTED.load(Ordering::Relaxed).max(ENOUGH - MORE) + MORE, Ordering::Relaxed);
        false
    }
}

impl Drop for Collection {
    fn drop(&mut self) {
        // Release: pairs with the acquire in `begin`.
        IS_BUSY.store(false, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::collect::{Collector, MOST_WAITING};
    use super::world::{Walk, free_candidates};
    use crate::mem::heap::TestHeap;
    use alloc::boxed::Box;
    use alloc::vec::Vec;
    use core::alloc::{GlobalAlloc, Layout};
    use core::ops::Range;

    /// One collection, in which `roots` are all that lives. Returns how many blocks were freed.
    fn collect(heap: &TestHeap, roots: &[usize]) -> u64 {
        let (marks, mut collector) = (heap.marked.marks(), Box::new(Collector::new()));
        let start = roots.as_ptr().expose_provenance();
        let each_root = |visit: &mut dyn FnMut(Range<usize>)| visit(start..start + size_of_val(roots));
        let each_unused = |_: &mut dyn FnMut(usize)| ();
        // SAFETY: nobody else uses the heap, nor what only was noted leads to.
        unsafe {
            let walk = Walk::new(heap, &each_root, &each_unused, u64::MAX);
            assert!(collector.mark(&walk, &marks));
            let (blocks, _) = free_candidates(heap, &marks);
            marks.settle();
            blocks
        }
    }

    fn allocate(heap: &TestHeap, words: usize) -> *mut usize {
        let layout = Layout::array::<usize>(words).expect("small");
        // SAFETY: the sizes are not zero.
        unsafe { heap.alloc_zeroed(layout).cast() }
    }

    /// A list of the dead that leads to `count` blocks, which something alive seems to lead to, too: later they come back, though
    /// the list is freed first.
    fn behind_what_is_freed(count: usize) {
        let heap = TestHeap::new(4 << 20);
        let list = allocate(&heap, count);
        let pieces: Vec<usize> = (0..count).map(|_| allocate(&heap, 2).expose_provenance()).collect();
        // SAFETY: it has room for as many.
        unsafe { list.copy_from_nonoverlapping(pieces.as_ptr(), count) };
        // The middle of it.
        heap.marked.marks().note(list.expose_provenance() + size_of::<usize>() * (count / 2));
        assert_eq!(collect(&heap, &pieces), 1, "only the list is dead");
        assert_eq!(collect(&heap, &pieces[..count / 2]), (count - count / 2) as u64);
        assert_eq!(collect(&heap, &[]), (count / 2) as u64);
        assert_eq!(heap.usage().0, 0, "{count}");
        assert_eq!(collect(&heap, &[]), 0);
    }

    #[test]
    fn what_lies_behind_a_freed_block_comes_back_later() {
        for count in [1, 16, 500, MOST_WAITING + 1, 20_000] {
            behind_what_is_freed(count);
        }
    }

    /// Whatever many crashes leave, and however long something seems to lead to it, it comes back.
    #[test]
    fn nothing_is_forgotten() {
        let heap = TestHeap::new(4 << 20);
        let dead: Vec<usize> = (0..20_000).map(|_| allocate(&heap, 2).expose_provenance()).collect();
        for address in &dead {
            assert!(heap.marked.marks().note(*address));
        }
        for _ in 0..100 {
            assert_eq!(collect(&heap, &dead), 0);
        }
        assert_eq!(collect(&heap, &[]), dead.len() as u64);
        assert_eq!(heap.usage().0, 0);
    }

    /// What was noted, and its owner gave back, is nothing special when somebody else has it.
    #[test]
    fn what_is_used_again_is_not_the_dead_ones() {
        let heap = TestHeap::new(1 << 20);
        let block = allocate(&heap, 2);
        heap.marked.marks().note(block.expose_provenance());
        // SAFETY: allocated with this layout.
        unsafe { heap.dealloc(block.cast(), Layout::new::<[usize; 2]>()) };
        assert_eq!(collect(&heap, &[]), 0);
        let others = allocate(&heap, 2);
        assert_eq!(others, block);
        assert_eq!(collect(&heap, &[]), 0, "it leads nowhere that is known, and is nobody's orphan");
    }
}
