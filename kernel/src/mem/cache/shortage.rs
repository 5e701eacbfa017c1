//! Giving back what caches keep, when memory is short.
//!
//! A caller that is short of memory gives back what its own core keeps, and what sleeping cores keep
//! ([`Keeper`]). It notes that memory was short. Every other core then gives its own back,
//! one class each time it goes to the depot or is between turns.

use super::{Caches, CoreCache};
use crate::arch::atomic::Ordering;
use crate::mem::block::List;
use crate::mem::depot::Source;
use crate::mem::keeper::Keeper;
use crate::mem::size_class::SizeClass;
use crate::sync::PreemptGuard;

/// How far a core has come in giving back what it keeps.
pub(super) struct Answer {
    /// The shortage that it has answered, or is answering.
    shortage: u32,
    /// So many classes, the last ones, are still to be done. The initial state is all zeros, so that the image need not
    /// contain the caches.
    left: usize,
}

impl Answer {
    /// No shortage answered, because there was none.
    pub(super) const NONE: Self = Self { shortage: 0, left: 0 };
}

impl Caches {
    /// Gives what this core keeps of a class back to the spans.
    pub(in crate::mem) fn empty_core(
        &self,
        class: SizeClass,
        core: Option<usize>,
        _here: &PreemptGuard,
        source: &impl Source,
    ) {
        let Some(cache) = core.and_then(|core| self.cores.get(core)) else { return };
        // SAFETY: the caller is on this core, and preemption is disabled.
        unsafe { self.empty(class, cache, source) };
    }

    /// Gives what a sleeping core keeps of a class back to the spans. Nothing if it is awake.
    pub(in crate::mem) fn empty_sleeper(
        &self,
        class: SizeClass,
        core: usize,
        here: &PreemptGuard,
        source: &impl Source,
    ) {
        if let Some(cache) = self.cores.get(core)
            && cache.keeper.try_take(here)
        {
            // SAFETY: the keeper's lock is ours until the second call.
            unsafe {
                self.empty(class, cache, source);
                cache.keeper.let_go();
            }
        }
    }

    /// # Safety
    /// The caller has the lock of the cache.
    unsafe fn empty(&self, class: SizeClass, cache: &CoreCache, source: &impl Source) {
        // SAFETY: the caller has the lock of the cache.
        let magazines = unsafe { &(*cache.classes.get())[class.index()] };
        for list in [&magazines.current, &magazines.spare] {
            // SAFETY: a core's lists hold free blocks of the class.
            unsafe { self.depot(class).put_apart(list.replace(List::EMPTY), source) };
        }
    }

    /// Memory is short: the cores that are awake give back what they keep.
    pub(in crate::mem) fn note_shortage(&self) {
        // Relaxed: it is a request, and orders nothing.
        self.shortages.fetch_add(1, Ordering::Relaxed);
    }

    /// How often memory was short, modulo 2^32.
    #[inline(always)]
    pub(in crate::mem) fn shortages(&self) -> u32 {
        // Relaxed: as in `note_shortage`.
        self.shortages.load(Ordering::Relaxed)
    }

    /// Gives one class back if memory was short since this core gave everything back. Returns whether there is more to
    /// give.
    ///
    /// # Safety
    /// The caller has the lock of the cache.
    pub(super) unsafe fn answer(&self, cache: &CoreCache, source: &impl Source) -> bool {
        let shortage = self.shortages();
        // SAFETY: the caller has the lock of the cache; nothing below comes here again.
        let answer = unsafe { &mut *cache.answer.get() };
        if answer.left == 0 {
            if answer.shortage == shortage {
                return false;
            }
            *answer = Answer { shortage, left: SizeClass::COUNT };
        }
        let class = SizeClass::ALL[SizeClass::COUNT - answer.left];
        answer.left -= 1;
        // SAFETY: the caller has the lock of the cache.
        unsafe { self.empty(class, cache, source) };
        answer.left > 0
    }

    /// For a core between two turns: gives back what [`Self::note_shortage`] asks for. Returns whether there is more to
    /// give.
    pub(in crate::mem) fn answer_shortage(
        &self,
        core: Option<usize>,
        _here: &PreemptGuard,
        source: &impl Source,
    ) -> bool {
        // SAFETY: the caller is on this core, and preemption is disabled.
        core.and_then(|core| self.cores.get(core)).is_some_and(|cache| unsafe { self.answer(cache, source) })
    }

    /// This core does without its cache until what this returns is dropped.
    ///
    /// # Safety
    /// The caller is the core and neither allocates nor frees meanwhile, nor does an interrupt handler.
    #[inline(always)]
    pub(in crate::mem) unsafe fn lend<'a>(
        &'a self,
        core: Option<usize>,
        here: &'a PreemptGuard,
    ) -> LentCache<'a> {
        let keeper = core.and_then(|core| self.cores.get(core)).map(|cache| &cache.keeper);
        if let Some(keeper) = keeper {
            // SAFETY: by contract; a core has its cache whenever it does not sleep.
            unsafe { keeper.let_go() };
        }
        LentCache { keeper, here }
    }

    /// Gives what waits in a class's depot back to the spans.
    pub(in crate::mem) fn empty_depot(&self, class: SizeClass, source: &impl Source) {
        self.depot(class).take_batches_apart(source);
    }
}

/// A core's cache, which others may use who are short of memory. The core has it again when this is dropped.
pub(crate) struct LentCache<'a> {
    keeper: Option<&'a Keeper>,
    here: &'a PreemptGuard,
}

impl Drop for LentCache<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        if let Some(keeper) = self.keeper {
            keeper.take_back(self.here);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{MEGABYTE, class, empty};
    use super::Caches;
    use crate::mem::heap::{Heap, TestHeap};
    use crate::mem::size_class::SizeClass;
    use crate::sync::PreemptGuard;
    use alloc::boxed::Box;
    use alloc::vec::Vec;

    /// Blocks of every class in a core's cache.
    fn keep_some(caches: &Caches, core: usize, here: &PreemptGuard, source: &Heap) {
        for class in SizeClass::ALL {
            let blocks: Vec<_> = (0..class.batch() * 2)
                .map(|_| caches.allocate(class, Some(core), here, source).expect("memory"))
                .collect();
            // SAFETY: allocated above, with this class.
            blocks
                .into_iter()
                .for_each(|block| unsafe { caches.free(block, class, Some(core), here, source) });
        }
    }

    /// A core that works gives its own back on its way to the depot, whatever class it is there for, and between turns;
    /// once for each shortage.
    #[test]
    fn a_core_that_is_awake_answers_a_shortage() {
        let (caches, heap) = (Box::new(Caches::new()), TestHeap::new(4 * MEGABYTE));
        let source: &Heap = &heap;
        let here = PreemptGuard::new();
        let before = source.usage();
        keep_some(&caches, 0, &here, source);
        let kept = source.usage();
        assert!(kept.1 < before.1);
        assert!(!caches.answer_shortage(Some(0), &here, source), "an answer to nothing");
        caches.note_shortage();
        let class = class(1500);
        let mut blocks = Vec::new();
        for _ in 0..class.batch() * (SizeClass::COUNT + 1) {
            blocks.push(caches.allocate(class, Some(0), &here, source).expect("memory"));
        }
        // SAFETY: allocated above, with this class.
        blocks.into_iter().for_each(|block| unsafe { caches.free(block, class, Some(1), &here, source) });
        caches.empty_core(class, Some(0), &here, source);
        caches.empty_core(class, Some(1), &here, source);
        caches.empty_depot(class, source);
        assert_eq!(source.usage(), before, "after so many visits to the depot");
        keep_some(&caches, 0, &here, source);
        assert!(source.usage().1 < before.1, "given back, though memory is not short again");
        caches.note_shortage();
        let visits = (1..=100).find(|_| !caches.answer_shortage(Some(0), &here, source));
        assert_eq!(visits, Some(SizeClass::COUNT));
        assert_eq!(source.usage(), before, "after so many turns");
    }

    /// What a core keeps can be taken while it sleeps, and only then.
    #[test]
    fn who_sleeps_lends_what_it_keeps() {
        let (caches, heap) = (Box::new(Caches::new()), TestHeap::new(4 * MEGABYTE));
        let source: &Heap = &heap;
        let here = PreemptGuard::new();
        let before = source.usage();
        keep_some(&caches, 2, &here, source);
        let kept = source.usage();
        let empty = || SizeClass::ALL.iter().for_each(|class| caches.empty_sleeper(*class, 2, &here, source));
        empty();
        assert_eq!(source.usage(), kept, "taken from a core that is awake");
        // SAFETY: nobody uses the cache meanwhile but as one who is short of memory.
        let lent = unsafe { caches.lend(Some(2), &here) };
        empty();
        drop(lent);
        assert_eq!(source.usage(), before);
        keep_some(&caches, 2, &here, source);
        empty();
        assert_eq!(source.usage(), kept, "taken from a core that is awake again");
    }

    /// Cores fall asleep and wake while another takes what they keep: no block is lost or handed out twice.
    #[test]
    fn a_cache_is_one_users_at_a_time() {
        const ROUNDS: usize = if cfg!(miri) { 20 } else { 3000 };
        let (caches, heap) = (Box::new(Caches::new()), TestHeap::new(4 * MEGABYTE));
        let source: &Heap = &heap;
        let before = source.usage();
        let class = class(300);
        std::thread::scope(|scope| {
            let caches = &caches;
            for core in 0..2 {
                scope.spawn(move || {
                    let here = PreemptGuard::new();
                    for round in 0..ROUNDS {
                        let blocks: Vec<_> = (0..1 + (round * 7) % 40)
                            .map(|_| caches.allocate(class, Some(core), &here, source).expect("memory"))
                            .collect();
                        for block in &blocks {
                            // SAFETY: the block is that long, and ours.
                            unsafe { block.cast::<usize>().write(core * ROUNDS + round) };
                        }
                        for block in blocks {
                            // SAFETY: as above; allocated with this class.
                            unsafe {
                                let found = block.cast::<usize>().read();
                                assert_eq!(found, core * ROUNDS + round, "a block that two have");
                                caches.free(block, class, Some(core), &here, source);
                            }
                        }
                        // SAFETY: this thread is the core, and does nothing meanwhile.
                        let _lent = unsafe { caches.lend(Some(core), &here) };
                        std::thread::yield_now();
                    }
                });
            }
            scope.spawn(move || {
                let here = PreemptGuard::new();
                (0..ROUNDS).for_each(|round| caches.empty_sleeper(class, round % 2, &here, source));
            });
        });
        empty(&caches, source);
        assert_eq!(source.usage(), before);
    }
}
