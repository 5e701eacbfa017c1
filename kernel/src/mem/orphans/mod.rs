//! Orphans: blocks of the heap that crashed code owned, and that nobody else can reach.
//!
//! A crash drops nothing, because it may have come in the middle of a change. What the crashed code owned on the heap would
//! stay allocated for ever. So the crash path notes every word that may be a pointer into the heap, in what it gives back:
//! the used part of the stack, the future or the actor's state, the message in hand ([`note`]). Later all of it is looked at together
//! ([`begin`]): a block that a noted word leads to, and that nothing alive leads to, is freed without being dropped.
//!
//! So a block belongs to whoever can reach it. What was moved to another actor in a message is that actor's, and what
//! is shared is everybody's, without any bookkeeping where memory is allocated or messages are sent.
//!
//! When that is done, and from which roots, is described in `sched::run::collect`.

mod collect;
mod marks;
mod world;

use core::cell::UnsafeCell;
use core::ops::Range;

use super::heap::HEAP;
use crate::arch::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use crate::sync::SpinLock;
use collect::{Collector, World};
use marks::Marks;
pub(super) use world::Memory;
use world::Walk;

/// How many words are kept until they are looked at. When looking takes too long, again and again, it must be long until
/// there is no room.
const MOST_NOTED: usize = 10240;
/// With more of them it is time to collect.
const ENOUGH: usize = 6144;
/// After a collection that was given up it is time again with so many more.
const MORE: usize = 2048;
/// How many of them a collection leaves to the next ones.
const MOST_KEPT: usize = 3072;
/// How many there may be with those that a collection found behind what it freed.
const MOST_LEFT: usize = MOST_KEPT + collect::MOST_WAITING;
/// In how many collections a word is looked at.
const MOST_LOOKS: u8 = 32;
/// A crash notes the same word once, as far as this remembers.
const REMEMBERED: usize = 64;

/// What crashes have left: words that lie in the heap. They are kept inverted, because this list must not seem to hold
/// pointers to blocks.
struct Noted {
    words: [usize; MOST_NOTED],
    /// In how many collections each was looked at.
    looks: [u8; MOST_NOTED],
    count: usize,
    remembered: [usize; REMEMBERED],
}

static NOTED: SpinLock<Noted> = SpinLock::new(Noted::new());

/// Words for which there was no room.
static LOST: AtomicU64 = AtomicU64::new(0);
/// With more noted words than this it is time to collect.
static DUE_ABOVE: AtomicUsize = AtomicUsize::new(ENOUGH);
/// With fewer free bytes than this it is time to collect.
static COLLECT_BELOW_BYTES: AtomicUsize = AtomicUsize::new(usize::MAX);

/// An allocation failed that a collection might have helped; or a collection was given up.
static WANTED: AtomicBool = AtomicBool::new(false);

impl Noted {
    const fn new() -> Self {
        Self { words: [0; MOST_NOTED], looks: [0; MOST_NOTED], count: 0, remembered: [0; REMEMBERED] }
    }

    fn note(&mut self, word: usize) {
        let remembered = &mut self.remembered[(word >> 4) % REMEMBERED];
        if *remembered == !word {
            return;
        }
        *remembered = !word;
        match self.words.get_mut(self.count) {
            Some(place) => {
                *place = !word;
                self.looks[self.count] = 0;
                self.count += 1;
            }
            None => lose(1),
        }
    }

    /// Keeps those words, the newest first, for which `is_live` says that their blocks may become free later: something
    /// alive has a pointer to them for now, or seems to. Not for ever, because most of them belong to the living.
    fn keep_live(&mut self, mut is_live: impl FnMut(usize) -> bool) {
        let mut first = self.count;
        for index in (0..self.count).rev() {
            let looks = self.looks[index] + 1;
            if looks < MOST_LOOKS && is_live(!self.words[index]) {
                if self.count - first == MOST_KEPT {
                    lose(1);
                    continue;
                }
                first -= 1;
                self.words[first] = self.words[index];
                self.looks[first] = looks;
            }
        }
        self.words.copy_within(first..self.count, 0);
        self.looks.copy_within(first..self.count, 0);
        self.count -= first;
        self.remembered.fill(0);
    }

    /// There must be room for more, though nothing was looked at.
    fn forget_oldest(&mut self) {
        let first = self.count.saturating_sub(MOST_KEPT);
        lose(first);
        self.words.copy_within(first..self.count, 0);
        self.looks.copy_within(first..self.count, 0);
        self.count -= first;
        self.remembered.fill(0);
    }

    /// After a mark phase: keeps what leads to blocks that may become free later.
    fn keep_what_stays(&mut self, collector: &mut Collector, world: &impl World, marks: &Marks<'_>) {
        self.keep_live(|word| collect::is_first_of_live(world, marks, word));
        lose(collector.left_out());
        for word in collector.behind() {
            // It was looked at.
            self.words[self.count] = !word;
            self.looks[self.count] = 1;
            self.count += 1;
        }
    }
}

const _: () = assert!(
    MOST_LEFT < ENOUGH && ENOUGH + MORE < MOST_NOTED,
    "after a collection there must be room for more"
);

/// There was no room for so many words.
fn lose(words: usize) {
    // Relaxed: a statistic.
    LOST.fetch_add(words as u64, Ordering::Relaxed);
}

/// Notes what a crash leaves in some memory, before that is given back.
///
/// # Safety
/// The memory is readable, in whole words where it is aligned, and nobody writes to it.
pub unsafe fn note(memory: *const u8, bytes: usize) {
    let skipped = memory.align_offset(size_of::<usize>());
    let words = bytes.saturating_sub(skipped) / size_of::<usize>();
    let first = memory.wrapping_add(skipped).cast::<usize>();
    let mut noted = NOTED.lock();
    for index in 0..words {
        // SAFETY: the caller promised readable memory. Volatile: it may be of any type.
        let word = unsafe { first.add(index).read_volatile() };
        if HEAP.marked.holds(word) {
            noted.note(word);
        }
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
    let count = NOTED.lock().count;
    // Relaxed: a hint.
    let is_short = || {
        let (used, free) = HEAP.usage();
        free < COLLECT_BELOW_BYTES.load(Ordering::Relaxed).min((used + free) / 4)
    };
    count > DUE_ABOVE.load(Ordering::Relaxed) || (count > 0 && is_short())
}

/// An allocation failed. If crashes have left something, a collection is wanted. Each word is looked at in a bounded
/// number of collections, so these requests come to an end.
pub(super) fn want_if_any() {
    if NOTED.lock().count > 0 {
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
    /// For how many words that crashes left there was no room. What only they lead to stays.
    pub lost: u64,
}

static COLLECTIONS: SpinLock<Collections> =
    SpinLock::new(Collections { finished: 0, given_up: 0, blocks: 0, bytes: 0, longest_ticks: 0, lost: 0 });

/// What collections have done so far.
pub fn collections() -> Collections {
    // Relaxed: a statistic.
    Collections { lost: LOST.load(Ordering::Relaxed), ..*COLLECTIONS.lock() }
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
    /// `each_unused` an address in each block of the heap that nobody reads before it is written to. If the search is
    /// not complete at the time `end`, in clock ticks, nothing is freed.
    ///
    /// # Safety
    /// Nobody else is in the heap or changes any memory meanwhile, and pointers into the heap are nowhere else.
    pub unsafe fn run(
        &mut self,
        each_root: impl Fn(&mut dyn FnMut(Range<usize>)),
        each_unused: impl Fn(&mut dyn FnMut(usize)),
        end: u64,
    ) {
        let marks = HEAP.marked.marks();
        // SAFETY: this is the collection in progress.
        let collector = unsafe { &mut *PLACE.0.get() };
        let mut noted = NOTED.lock();
        // SAFETY: by contract, here and below; blocks of the heap are readable.
        let walk = unsafe { Walk::new(&HEAP, &each_root, &each_unused, end) };
        let words = noted.words.iter().take(noted.count).map(|word| !word);
        // SAFETY: as above.
        if !unsafe { collector.mark(&walk, &marks, words) } {
            return;
        }
        noted.keep_what_stays(collector, &walk, &marks);
        drop(noted);
        // SAFETY: as above; nobody can reach what is still a candidate.
        let (blocks, bytes) = unsafe { world::free_candidates(&HEAP, &marks) };
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
        let mut noted = NOTED.lock();
        if noted.count > MOST_NOTED - MORE {
            noted.forget_oldest();
        }
        // Relaxed: a hint.
        DUE_ABOVE.store(noted.count.max(ENOUGH - MORE) + MORE, Ordering::Relaxed);
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
    use super::collect::Collector;
    use super::collect::{MOST_BEHIND, MOST_WAITING};
    use super::world::{Walk, free_candidates};
    use super::{MOST_KEPT, MOST_LOOKS, MOST_NOTED, Noted};
    use crate::mem::heap::TestHeap;
    use alloc::boxed::Box;
    use alloc::vec::Vec;
    use core::alloc::{GlobalAlloc, Layout};
    use core::ops::Range;

    fn noted(words: impl Iterator<Item = usize>) -> Box<Noted> {
        let mut noted = Box::new(Noted::new());
        words.for_each(|word| noted.note(word));
        noted
    }

    fn words(noted: &Noted) -> Vec<usize> {
        noted.words[..noted.count].iter().map(|word| !word).collect()
    }

    /// What a crash left first is kept as well as what it left last, in that order.
    #[test]
    fn a_word_that_leads_to_the_living_is_kept_wherever_it_stood() {
        let mut noted = noted((0..3000).map(|index| 0x1000 + index * 16));
        let live = [0x1000, 0x1000 + 100 * 16, 0x1000 + 2999 * 16];
        noted.keep_live(|word| live.contains(&word));
        assert_eq!(words(&noted), live);
    }

    /// If there are too many, the newest are kept.
    #[test]
    fn the_newest_are_kept() {
        let mut noted = noted((0..MOST_NOTED).map(|index| 0x1000 + index * 16));
        noted.keep_live(|_| true);
        let first = MOST_NOTED - MOST_KEPT;
        assert_eq!(words(&noted), (first..MOST_NOTED).map(|index| 0x1000 + index * 16).collect::<Vec<_>>());
    }

    /// What is always found alive is forgotten in the end.
    #[test]
    fn no_word_is_kept_for_ever() {
        let mut noted = noted([0x1000].into_iter());
        for _ in 1..MOST_LOOKS {
            noted.keep_live(|_| true);
            assert_eq!(words(&noted), [0x1000]);
        }
        noted.keep_live(|_| true);
        assert_eq!(words(&noted), []);
    }

    /// One collection, in which `roots` are all that lives. Returns how many blocks were freed.
    fn collect(heap: &TestHeap, noted: &mut Noted, roots: &[usize]) -> u64 {
        let (marks, mut collector) = (heap.marked.marks(), Box::new(Collector::new()));
        let start = roots.as_ptr().expose_provenance();
        let each_root = |visit: &mut dyn FnMut(Range<usize>)| visit(start..start + size_of_val(roots));
        let each_unused = |_: &mut dyn FnMut(usize)| ();
        let words = words(noted).into_iter();
        // SAFETY: nobody else uses the heap, nor what only the noted words lead to.
        unsafe {
            let walk = Walk::new(heap, &each_root, &each_unused, u64::MAX);
            assert!(collector.mark(&walk, &marks, words));
            noted.keep_what_stays(&mut collector, &walk, &marks);
            free_candidates(heap, &marks).0
        }
    }

    /// A list of the dead that leads to `count` blocks, which something alive seems to lead to, too: later they come back, though
    /// the list is freed first.
    fn behind_what_is_freed(count: usize) {
        let heap = TestHeap::new(4 << 20);
        let of_words = |words: usize| Layout::array::<usize>(words).expect("small");
        // SAFETY: the sizes are not zero.
        let allocate = |words| unsafe { heap.alloc_zeroed(of_words(words)).cast::<usize>() };
        let list = allocate(count);
        let pieces: Vec<usize> = (0..count).map(|_| allocate(2).expose_provenance()).collect();
        // SAFETY: it has room for as many.
        unsafe { list.copy_from_nonoverlapping(pieces.as_ptr(), count) };
        let mut noted = noted([list.expose_provenance()].into_iter());
        assert_eq!(
            collect(&heap, &mut noted, &pieces),
            u64::from(count <= MOST_BEHIND),
            "only the list is dead"
        );
        let later = collect(&heap, &mut noted, &[]);
        assert_eq!(heap.usage().0, 0, "{count}, of which {later} came back");
        assert_eq!(collect(&heap, &mut noted, &[]), 0);
    }

    /// A list that leads to few is freed, and they are noted; one that leads to many stays in their place.
    #[test]
    fn what_lies_behind_a_freed_block_comes_back_later() {
        for count in [1, MOST_BEHIND, MOST_BEHIND + 1, 500, 20_000] {
            behind_what_is_freed(count);
        }
    }

    /// If there are more lists than there is room to note, the rest is counted as lost.
    #[test]
    fn what_is_too_much_to_keep_is_counted() {
        let before = super::collections().lost;
        let heap = TestHeap::new(1 << 20);
        let layout = Layout::new::<[usize; 2]>();
        // SAFETY: the size is not zero.
        let allocate = || unsafe { heap.alloc_zeroed(layout).cast::<usize>() };
        let pieces: Vec<_> = (0..MOST_WAITING + 100).map(|_| allocate().expose_provenance()).collect();
        let dead = pieces.iter().map(|piece| {
            let block = allocate();
            // SAFETY: it has room for it.
            unsafe { block.write(*piece) };
            block.expose_provenance()
        });
        let mut noted = noted(dead);
        assert_eq!(collect(&heap, &mut noted, &pieces), MOST_WAITING as u64 + 100);
        assert!(super::collections().lost >= before + 100);
        assert_eq!(collect(&heap, &mut noted, &[]), MOST_WAITING as u64);
    }
}
