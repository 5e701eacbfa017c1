//! The deque: order, capacity, and exactly one taker for each item.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::ptr::NonNull;

use super::items::{Item, Items};
use super::{Check, Cores, Done, Random};
use crate::arch::atomic::{AtomicBool, AtomicUsize, Ordering};
use crate::arch::{Full, Steal};
use crate::queue::Deque;

pub static ALL: &[Check] = &[
    Check { name: "deque::oldest_first", min_cores: 1, body: oldest_first },
    Check { name: "deque::newest_first", min_cores: 1, body: newest_first },
    Check { name: "deque::ends_meet", min_cores: 1, body: ends_meet },
    Check { name: "deque::full_is_refused", min_cores: 1, body: full_is_refused },
    Check { name: "deque::items_take_turns", min_cores: 1, body: items_take_turns },
    Check { name: "deque::half_is_rounded_up_and_capped", min_cores: 1, body: half },
    Check { name: "deque::one_thief_sees_order", min_cores: 2, body: one_thief_sees_order },
    Check { name: "deque::last_item_has_one_taker", min_cores: 2, body: last_item_has_one_taker },
    Check { name: "deque::stampede", min_cores: 2, body: stampede },
    Check { name: "deque::stress", min_cores: 2, body: stress },
    Check { name: "deque::one_taker_for_each_of_many", min_cores: 2, body: one_taker_for_each_of_many },
    Check { name: "deque::drops_once", min_cores: 2, body: drops_once },
];

/// Indices from the beginning, and about to pass 2^64.
const STARTS: [u64; 2] = [0, u64::MAX - 5];

/// Pushes for the owner. The check's body says who that is.
fn push<T, const N: usize>(deque: &Deque<T, N>, item: NonNull<T>) -> Result<(), Full> {
    // SAFETY: in every check one core alone pushes and pops at the bottom, and the items outlive the deque.
    unsafe { deque.push_bottom(item) }
}

fn pop_newest<T, const N: usize>(deque: &Deque<T, N>) -> Option<NonNull<T>> {
    // SAFETY: as for `push`.
    unsafe { deque.pop_bottom() }
}

fn pop_oldest<T, const N: usize>(deque: &Deque<T, N>) -> Option<NonNull<T>> {
    // SAFETY: as for `push`.
    unsafe { deque.pop_oldest() }
}

fn rotate<T, const N: usize>(deque: &Deque<T, N>, item: NonNull<T>) -> NonNull<T> {
    // SAFETY: as for `push`.
    unsafe { deque.rotate(item) }
}

/// The oldest item, as a thief takes it, while no other thief is at work: a loss can only be an exclusive store that
/// failed spuriously, or was made to fail.
fn steal<T, const N: usize>(deque: &Deque<T, N>) -> Option<NonNull<T>> {
    loop {
        match deque.pop_top() {
            Steal::Taken(item) => return Some(item),
            Steal::Empty => return None,
            Steal::Lost => {}
        }
    }
}

fn verify<T, const N: usize>(deque: &Deque<T, N>) {
    if let Err(corrupted) = deque.check() {
        panic!("{corrupted}");
    }
}

fn oldest_first(_: &Cores) {
    for start in STARTS {
        let (items, deque) = (Items::new(40), Deque::<Item, 4>::starting_at(start));
        for group in 0..10 {
            for number in group * 4..group * 4 + 4 {
                assert_eq!(push(&deque, items.prepare(number)), Ok(()));
            }
            verify(&deque);
            for number in group * 4..group * 4 + 4 {
                let item = if number % 2 == 0 { pop_oldest(&deque) } else { steal(&deque) };
                assert_eq!(item.map(|item| items.take(item)), Some(number));
            }
            assert_eq!(pop_oldest(&deque), None);
            assert_eq!(deque.pop_top(), Steal::Empty);
        }
        items.assert_all_taken();
    }
}

fn newest_first(_: &Cores) {
    for start in STARTS {
        let (items, deque) = (Items::new(40), Deque::<Item, 4>::starting_at(start));
        for group in 0..10 {
            for number in group * 4..group * 4 + 4 {
                assert_eq!(push(&deque, items.prepare(number)), Ok(()));
            }
            for number in (group * 4..group * 4 + 4).rev() {
                assert_eq!(pop_newest(&deque).map(|item| items.take(item)), Some(number));
                verify(&deque);
            }
            // More than once: an empty pop must leave the indices as they were.
            for _ in 0..3 {
                assert_eq!(pop_newest(&deque), None);
                assert_eq!(deque.len(), 0);
            }
        }
        items.assert_all_taken();
    }
}

fn ends_meet(_: &Cores) {
    for start in STARTS {
        let (items, deque) = (Items::new(5), Deque::<Item, 8>::starting_at(start));
        for number in 0..5 {
            assert_eq!(push(&deque, items.prepare(number)), Ok(()));
        }
        assert_eq!(deque.len(), 5);
        assert_eq!(steal(&deque).map(|item| items.take(item)), Some(0));
        assert_eq!(pop_newest(&deque).map(|item| items.take(item)), Some(4));
        assert_eq!(pop_oldest(&deque).map(|item| items.take(item)), Some(1));
        assert_eq!(pop_newest(&deque).map(|item| items.take(item)), Some(3));
        assert_eq!(pop_newest(&deque).map(|item| items.take(item)), Some(2));
        assert!(deque.is_empty());
        verify(&deque);
    }
}

fn full_is_refused(_: &Cores) {
    for start in STARTS {
        let (items, deque) = (Items::new(6), Deque::<Item, 4>::starting_at(start));
        for number in 0..4 {
            assert_eq!(push(&deque, items.prepare(number)), Ok(()));
        }
        assert_eq!(push(&deque, items.prepare(4)), Err(Full));
        assert_eq!(deque.len(), deque.capacity());
        assert_eq!(steal(&deque).map(|item| items.take(item)), Some(0));
        assert_eq!(push(&deque, items.prepare(4)), Ok(()));
        assert_eq!(push(&deque, items.prepare(5)), Err(Full));
        for number in 1..5 {
            assert_eq!(pop_oldest(&deque).map(|item| items.take(item)), Some(number));
        }
        assert_eq!(items.taken(), 5);
    }
}

fn items_take_turns(_: &Cores) {
    for start in STARTS {
        for waiting in 0..=4 {
            let (items, deque) = (Items::new(13), Deque::<Item, 4>::starting_at(start));
            for number in 0..waiting {
                assert_eq!(push(&deque, items.prepare(number)), Ok(()));
            }
            for number in waiting..13 {
                let next = items.take(rotate(&deque, items.prepare(number)));
                assert_eq!(next, number - waiting, "the oldest, and itself if it is alone");
                assert_eq!(deque.len(), waiting, "also of a full deque");
                verify(&deque);
            }
            for number in 13 - waiting..13 {
                assert_eq!(pop_oldest(&deque).map(|item| items.take(item)), Some(number));
            }
            assert!(deque.is_empty());
        }
    }
}

fn half(_: &Cores) {
    for (length, cap, expected) in
        [(0, 8, 0), (1, 8, 1), (2, 8, 1), (5, 8, 3), (8, 8, 4), (8, 3, 3), (8, 0, 0)]
    {
        let (items, deque) = (Items::new(8), Deque::<Item, 8>::starting_at(u64::MAX - 2));
        for number in 0..length {
            assert_eq!(push(&deque, items.prepare(number)), Ok(()));
        }
        let mut order = Vec::new();
        let mut taken = 0;
        // A forced failure may end a batch early: the missing items are asked for again.
        while taken < expected {
            taken += deque.steal_half(cap.min(expected - taken), |item| order.push(items.take(item))).taken;
        }
        assert_eq!(deque.steal_half(0, |_| unreachable!("nothing was asked for")).taken, 0);
        assert_eq!(order, (0..expected).collect::<Vec<_>>());
        assert_eq!(deque.len(), length - expected);
    }
}

fn one_thief_sees_order(cores: &Cores) {
    for start in STARTS {
        let (items, deque) = (Items::new(cores.work), Deque::<Item, 4>::starting_at(start));
        let thief_left = AtomicBool::new(false);
        (cores.run)(&|core| match core {
            0 => {
                for number in 0..items.len() {
                    let mut waiting = cores.waiting();
                    while push(&deque, items.prepare(number)) == Err(Full) {
                        assert!(!thief_left.load(Ordering::Relaxed), "the thief gave up");
                        waiting.again();
                    }
                }
            }
            1 => {
                let _left = Done(&thief_left);
                for number in 0..items.len() {
                    let mut waiting = cores.waiting();
                    let item = loop {
                        match deque.pop_top() {
                            Steal::Taken(item) => break item,
                            Steal::Empty | Steal::Lost => waiting.again(),
                        }
                    };
                    assert_eq!(items.take(item), number);
                }
            }
            _ => {}
        });
        items.assert_all_taken();
    }
}

fn last_item_has_one_taker(cores: &Cores) {
    for start in STARTS {
        let (items, deque) = (Items::new(cores.work), Deque::<Item, 2>::starting_at(start));
        let done = AtomicBool::new(false);
        (cores.run)(&|core| {
            if core > 0 {
                let mut waiting = cores.waiting();
                // Relaxed, here and below: the run's end orders what is looked at after it.
                while !done.load(Ordering::Relaxed) {
                    match deque.pop_top() {
                        Steal::Taken(item) => {
                            items.take(item);
                            waiting.is_over();
                        }
                        Steal::Empty | Steal::Lost => waiting.again(),
                    }
                }
                return;
            }
            let _done = Done(&done);
            for number in 0..items.len() {
                assert_eq!(push(&deque, items.prepare(number)), Ok(()));
                let own = if number % 2 == 0 { pop_newest(&deque) } else { pop_oldest(&deque) };
                if let Some(item) = own {
                    assert_eq!(items.take(item), number);
                }
                verify(&deque);
                assert_eq!(deque.len(), 0, "the owner left an item that nobody else took");
            }
        });
        items.assert_all_taken();
    }
}

fn stampede(cores: &Cores) {
    const SLOTS: usize = 1024;
    for start in STARTS {
        let items = Items::new(cores.work.min(SLOTS));
        let deque = Box::new(Deque::<Item, SLOTS>::starting_at(start));
        for number in 0..items.len() {
            assert_eq!(push(&deque, items.prepare(number)), Ok(()));
        }
        (cores.run)(&|core| {
            let mut last = None;
            while !deque.is_empty() {
                if core == 0 {
                    let Some(item) = pop_newest(&deque) else { break };
                    let number = items.take(item);
                    assert!(last.is_none_or(|last| number < last), "the owner met {number} after {last:?}");
                    last = Some(number);
                } else if let Steal::Taken(item) = deque.pop_top() {
                    let number = items.take(item);
                    assert!(last.is_none_or(|last| number > last), "a thief met {number} after {last:?}");
                    last = Some(number);
                }
            }
        });
        items.assert_all_taken();
    }
}

fn stress(cores: &Cores) {
    stress_with::<2>(cores);
    stress_with::<4>(cores);
    stress_with::<64>(cores);
}

/// The owner pushes and pops at random; thieves take one or a batch at random.
fn stress_with<const N: usize>(cores: &Cores) {
    for start in STARTS {
        let (items, deque) = (Items::new(cores.work), Deque::<Item, N>::starting_at(start));
        let done = AtomicBool::new(false);
        let stolen = AtomicUsize::new(0);
        (cores.run)(&|core| {
            let random = Random::new(cores.seed, core);
            if core > 0 {
                let mut waiting = cores.waiting();
                while !done.load(Ordering::Relaxed) {
                    let taken = if random.below(2) == 0 {
                        usize::from(deque.pop_top().taken().map(|item| items.take(item)).is_some())
                    } else {
                        deque.steal_half(N, |item| _ = items.take(item)).taken
                    };
                    stolen.fetch_add(taken, Ordering::Relaxed);
                    if taken == 0 { waiting.again() } else { waiting.is_over() }
                }
                return;
            }
            let _done = Done(&done);
            let mut pushed = 0;
            while pushed < items.len() {
                match random.below(5) {
                    4 => {
                        items.take(rotate(&deque, items.prepare(pushed)));
                        pushed += 1;
                    }
                    0 => _ = pop_newest(&deque).map(|item| items.take(item)),
                    1 => _ = pop_oldest(&deque).map(|item| items.take(item)),
                    _ => {
                        if push(&deque, items.prepare(pushed)).is_ok() {
                            pushed += 1;
                        }
                    }
                }
                verify(&deque);
            }
            while let Some(item) = pop_newest(&deque) {
                items.take(item);
            }
        });
        items.assert_all_taken();
        assert!(stolen.load(Ordering::Relaxed) <= items.len());
    }
}

/// Any number of items goes through a few slots, without a mark on each: their number and their sum are
/// compared, which takes no memory, so a run can be as long as one likes.
fn one_taker_for_each_of_many(cores: &Cores) {
    let numbers: [usize; 64] = core::array::from_fn(|index| index + 1);
    let deque = Deque::<usize, 16>::starting_at(u64::MAX - 100);
    let done = AtomicBool::new(false);
    let (count, sum, stolen) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0));
    let expected: usize = (0..cores.work).map(|turn| numbers[turn % numbers.len()]).sum();
    (cores.run)(&|core| {
        let (mut own_count, mut own_sum) = (0, 0);
        let mut take = |item: NonNull<usize>| {
            own_count += 1;
            // SAFETY: only pointers to `numbers` go in, and nobody writes those.
            own_sum += unsafe { *item.as_ref() };
        };
        if core == 0 {
            let _done = Done(&done);
            let random = Random::new(cores.seed, core);
            for turn in 0..cores.work {
                while push(&deque, NonNull::from(&numbers[turn % numbers.len()])).is_err() {
                    if random.below(2) == 0 {
                        _ = pop_newest(&deque).map(&mut take);
                    } else {
                        _ = pop_oldest(&deque).map(&mut take);
                    }
                }
            }
            while let Some(item) = pop_newest(&deque) {
                take(item);
            }
            verify(&deque);
        } else {
            let mut waiting = cores.waiting();
            while !done.load(Ordering::Relaxed) {
                match deque.pop_top() {
                    Steal::Taken(item) => {
                        take(item);
                        waiting.is_over();
                    }
                    Steal::Empty | Steal::Lost => waiting.again(),
                }
            }
        }
        // Relaxed: the run's end orders what is read after it.
        count.fetch_add(own_count, Ordering::Relaxed);
        sum.fetch_add(own_sum, Ordering::Relaxed);
        if core > 0 {
            stolen.fetch_add(own_count, Ordering::Relaxed);
        }
    });
    assert_eq!(count.load(Ordering::Relaxed), cores.work, "items taken");
    assert_eq!(sum.load(Ordering::Relaxed), expected, "the sum of what was taken");
    // A short run may be over before a thief has begun.
    assert!(cores.work < 1_000_000 || stolen.load(Ordering::Relaxed) > 0, "no thief took anything");
}

/// Boxes go through the deque, and each is dropped by whoever took it.
fn drops_once(cores: &Cores) {
    struct Payload<'a>(&'a AtomicUsize);
    impl Drop for Payload<'_> {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }
    let dropped = AtomicUsize::new(0);
    let deque = Deque::<Payload, 16>::starting_at(u64::MAX);
    let count = cores.work;
    let done = AtomicBool::new(false);
    // SAFETY: every pointer in the deque came from `Box::into_raw`, and each comes out once.
    let free = |payload: NonNull<Payload>| drop(unsafe { Box::from_raw(payload.as_ptr()) });
    (cores.run)(&|core| {
        if core > 0 {
            let mut waiting = cores.waiting();
            while !done.load(Ordering::Relaxed) {
                if deque.steal_half(4, free).taken == 0 { waiting.again() } else { waiting.is_over() }
            }
            return;
        }
        let _done = Done(&done);
        for _ in 0..count {
            let payload = NonNull::from(Box::leak(Box::new(Payload(&dropped))));
            let mut waiting = cores.waiting();
            while push(&deque, payload) == Err(Full) {
                waiting.again();
            }
        }
    });
    let left = deque.len();
    assert_eq!(dropped.load(Ordering::Relaxed), count - left);
    while let Some(payload) = pop_oldest(&deque) {
        free(payload);
    }
    assert_eq!(dropped.load(Ordering::Relaxed), count);
}
