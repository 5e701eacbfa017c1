//! What crashed code owned on the heap comes back, and nothing that anybody else can reach does.

mod cells;

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::hint::black_box;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use core::time::Duration;

use magpie::actor::{Actor, Config, Context, Executor, Receive, Request};
use magpie::internals::mem::heap::HEAP;
use magpie::sched::{self, Priority, Setting, Spawn};
use magpie::{stats, time};
use magpie_tests::{Changed, Failure, Outcome, amount, ensure, ensure_eq, kernel_test};

use crate::not_started;

/// Some things on the heap that point to each other, with a value that must not change.
#[expect(clippy::vec_box, reason = "each is to be a block of its own")]
struct Things {
    boxes: Vec<Box<[u64; 8]>>,
    map: BTreeMap<u64, Vec<u64>>,
    packed: Option<Box<Packed>>,
    shared: Arc<[u64; 20]>,
}

/// Its pointer lies at an odd address.
#[repr(C, packed)]
struct Packed {
    byte: u8,
    far: Box<[u64; 30]>,
}

impl Things {
    fn new(value: u64, shared: &Arc<[u64; 20]>) -> Self {
        Self {
            boxes: (0..20).map(|index| Box::new([value + index; 8])).collect(),
            map: (0..20).map(|index| (index, alloc::vec![value + index; index as usize])).collect(),
            packed: Some(Box::new(Packed { byte: 7, far: Box::new([value; 30]) })),
            shared: shared.clone(),
        }
    }

    fn are_whole(&mut self, value: u64) -> bool {
        // By value and back again: no reference may be made to a packed field.
        let Some(packed) = self.packed.take() else { return false };
        let Packed { byte, far } = *packed;
        let packed_is_whole = byte == 7 && *far == [value; 30];
        self.packed = Some(Box::new(Packed { byte, far }));
        packed_is_whole
            && self.boxes.iter().zip(value..).all(|(boxed, value)| **boxed == [value; 8])
            && self.map.iter().all(|(index, list)| *list == alloc::vec![value + index; *index as usize])
            && self.shared.iter().all(|word| *word == 42)
    }
}

/// Owns much, and crashes while it does.
fn crash_with_much(shared: &Arc<[u64; 20]>) {
    let mut things: [Things; 4] = core::array::from_fn(|index| Things::new(index as u64, shared));
    let pointers: [Box<u64>; 64] = core::array::from_fn(|index| Box::new(index as u64));
    if black_box(&mut things).iter_mut().zip(0..).all(|(things, value)| things.are_whole(value))
        && *pointers[9] == 9
    {
        panic!("on purpose");
    }
    black_box(&pointers);
}

async fn crash_often(count: usize, shared: &Arc<[u64; 20]>) -> Outcome {
    for _ in 0..count {
        let shared = shared.clone();
        let process =
            sched::spawn(async move { crash_with_much(black_box(&shared)) }).map_err(not_started)?;
        ensure!(process.await.is_err(), "it did not crash");
    }
    Ok(())
}

/// Keeps its things in its state, and passes others on.
struct Keeper {
    things: Things,
}

impl Actor for Keeper {}

/// Told to a [`Keeper`]: take these, and return the others.
struct Exchange(Things);

impl Receive<Request<Exchange, Things>> for Keeper {
    type Reply = ();

    fn receive(&mut self, request: Request<Exchange, Things>, context: &mut Context<Self>) {
        let Exchange(new) = request.message;
        if request.reply.send(core::mem::replace(&mut self.things, new)).is_err() {
            context.end();
        }
    }
}

/// An actor that takes much of memory. A word that is stale, and looks like a pointer to one of its lists, keeps all that is in
/// this list, so there are several.
#[derive(Default)]
struct Glutton {
    large: [Vec<Vec<u64>>; LISTS],
    small: [Vec<Piece>; LISTS],
}

/// A block of its own.
type Piece = Box<(u64, [u64; 20])>;

const LISTS: usize = 16;

impl Actor for Glutton {}

impl Glutton {
    /// For pieces of so many words, so many bytes in all or all that there is room for. Returns how many there is room for in each list. One
    /// that grows leaves a copy of half its pointers in a block that it frees, and whose next owner may keep it as it is: that would hold
    /// half of what was taken.
    fn make_room(&mut self, words: usize, bytes: usize) -> usize {
        let pieces = bytes.min(HEAP.usage().1) / 8 / words / LISTS + 1;
        if words > 100 {
            self.large.iter_mut().for_each(|list| list.reserve_exact(pieces));
        } else {
            self.small.iter_mut().for_each(|list| list.reserve_exact(pieces));
        }
        pieces
    }
}

/// Told to a [`Glutton`]: take blocks of so many words, so many bytes in all, and crash with them.
struct Eat(usize, usize);

impl Receive<Request<Eat, ()>> for Glutton {
    type Reply = ();

    fn receive(&mut self, request: Request<Eat, ()>, _: &mut Context<Self>) {
        let Eat(words, bytes) = request.message;
        let each = self.make_room(words, bytes);
        // List by list, so that one that is kept does not leave a hole of its own behind each piece.
        for list in (0..bytes / 8 / words).map(|piece| (piece / each).min(LISTS - 1)) {
            if words > 100 {
                self.large[list].push(alloc::vec![1; words]);
            } else {
                self.small[list].push(Box::new((1, [2; 20])));
            }
        }
        panic!("on purpose");
    }
}

/// Addresses of what a [`Glutton`] took: to a collection they are pointers.
static ADDRESSES: [AtomicUsize; 1024] = [const { AtomicUsize::new(0) }; 1024];

/// Told to a [`Glutton`]: take [`MUCH`] in blocks whose addresses stay known, and crash with them.
struct EatAndTell;

impl Receive<Request<EatAndTell, ()>> for Glutton {
    type Reply = ();

    fn receive(&mut self, _: Request<EatAndTell, ()>, _: &mut Context<Self>) {
        let words = MUCH / 8 / ADDRESSES.len();
        let each = self.make_room(words, MUCH);
        for (piece, address) in ADDRESSES.iter().enumerate() {
            let block = alloc::vec![1; words];
            address.store(block.as_ptr().addr(), Ordering::Relaxed);
            self.large[piece / each].push(block);
        }
        panic!("on purpose");
    }
}

/// Bytes that a [`Glutton`] takes.
const MUCH: usize = 8 << 20;

/// All may stand still for as long as a busy host takes to look through memory.
fn without_limit() -> Result<Changed, Failure> {
    Changed::new(&[(Setting::CollectMicroseconds, 600_000_000)])
}

/// Room for pieces of memory. It is made while there is memory, because it must not be refused.
struct Pieces(Vec<Vec<u8>>);

impl Pieces {
    /// So small that most holes between blocks that stay have room for some.
    const BYTES: usize = 16 << 10;

    fn of(bytes: usize) -> Self {
        Self((0..bytes / Self::BYTES).map(|_| Vec::new()).collect())
    }

    /// Takes them all, asking again while memory is refused, and gives them back. Returns how often it was refused.
    async fn take_patiently(&mut self) -> Result<usize, Failure> {
        let (mut refused, all) = (0, self.0.len());
        for (index, piece) in self.0.iter_mut().enumerate() {
            while piece.try_reserve_exact(Self::BYTES).is_err() {
                refused += 1;
                let (usage, kept, done) = (HEAP.usage(), HEAP.kept(), stats::collections());
                ensure!(
                    refused < 10_000,
                    "memory does not come back: {index} of {all} pieces; {usage:?} used and free, {kept} kept, {done:?}"
                );
                let _ = time::sleep(Duration::from_millis(5)).await;
            }
            // In place of pointers that others left there.
            piece.resize(Self::BYTES, 0);
        }
        self.0.iter_mut().for_each(|piece| *piece = Vec::new());
        Ok(refused)
    }
}

kernel_test! {
    /// However much crashed processes owned, memory stays; what the living have is whole: in a state, in a future, on the
    /// stack of a suspended process and of one that runs, in a message, shared, and in a packed structure.
    async fn what_the_dead_owned_comes_back_and_nothing_else() -> Outcome {
        let _limit = without_limit()?;
        let shared = Arc::new([42; 20]);
        let ends = Arc::new(AtomicBool::new(false));
        let mut spinning = Vec::new();
        let low = Spawn::new().priority(Priority::Low);
        for core in 0..2 {
            let (shared, ends) = (shared.clone(), ends.clone());
            let process = low.start(async move {
                let mut things = Things::new(core, &shared);
                while !ends.load(Ordering::Relaxed) {
                    if !black_box(&mut things).are_whole(core) {
                        return false;
                    }
                }
                things.are_whole(core)
            });
            spinning.push(process.map_err(not_started)?);
        }
        let waiting = {
            let (shared, ends) = (shared.clone(), ends.clone());
            sched::spawn(async move {
                let mut things = Things::new(9, &shared);
                while !ends.load(Ordering::Relaxed) {
                    let _ = time::sleep(Duration::from_millis(1)).await;
                }
                things.are_whole(9)
            })
            .map_err(not_started)?
        };
        let executor = Executor::start(&Config::default())?;
        let keeper = executor.handle().spawn(Keeper { things: Things::new(5, &shared) })?;

        let (before, began) = (stats::collections(), HEAP.usage().0);
        let rounds = amount("orphans", 8);
        let mut value = 5;
        // Each crash owned about 400 blocks; those after the last collection are not back yet.
        let is_enough = || stats::collections().blocks - before.blocks > rounds * 10 * 50;
        let mut crashes = 0;
        // More if collections were given up, because a busy host kept a core from standing still in time.
        while crashes < rounds * 10 || !is_enough() {
            let round = crashes / 10;
            crash_often(10, &shared).await?;
            crashes += 10;
            let mut old = keeper.ask(Exchange(Things::new(round, &shared))).await?;
            ensure!(old.are_whole(value), "what was in a message and in a state has changed");
            value = round;
        }
        let after = stats::collections();
        let grown = HEAP.usage().0.saturating_sub(began);
        ends.store(true, Ordering::Relaxed);
        for process in spinning {
            ensure_eq!(process.await, Ok(true), "whether what a process has on its stack is whole");
        }
        ensure_eq!(waiting.await, Ok(true), "whether what a future has is whole");
        ensure!(shared.iter().all(|word| *word == 42), "what is shared has changed");
        magpie::text!(
            "{} collections, {} given up; {} blocks, {} bytes; all stood still for {} ticks at most; {grown} bytes more",
            after.finished - before.finished, after.given_up - before.given_up,
            after.blocks - before.blocks, after.bytes - before.bytes, after.longest_ticks
        );
        ensure!(grown < 8 << 20, "{grown} bytes more are in use after {crashes} crashes");
        executor.stop().await;
        Ok(())
    }
}

kernel_test! {
    /// What actors took in their behaviours comes back when they crash, in whatever pieces, or half of it at least: a word
    /// somewhere that is stale, and looks like a pointer, may keep one of their lists for as long as it stands there: in a
    /// future, say, the part of what it does not wait for.
    async fn a_glutton_gives_everything_back() -> Outcome {
        let _limit = without_limit()?;
        let executor = Executor::start(&Config::default())?;
        for words in [20, 1 << 10, 1 << 16] {
            for _ in 0..2 {
                let (used, before) = (HEAP.usage().0, stats::collections());
                let glutton = executor.handle().spawn(Glutton::default())?;
                ensure!(glutton.ask(Eat(words, MUCH)).await.is_err(), "it did not crash");
                let taken = HEAP.usage().0.saturating_sub(used);
                // One that was begun before may have found it already.
                let is_collected = stats::collections().finished != before.finished;
                ensure!(is_collected || taken > MUCH / 2, "{taken} bytes more are in use, though {MUCH} were taken");
                comes_back(|| HEAP.usage().0.saturating_sub(used)).await?;
            }
        }
        executor.stop().await;
        Ok(())
    }
}

/// Lets processes crash until `is_done` once something was collected, or twice: whatever is still there then is held. 300 at most.
async fn crash_until(is_done: impl Fn() -> bool) -> Result<usize, Failure> {
    let (shared, before) = (Arc::new([42; 20]), stats::collections().finished);
    let collected = || stats::collections().finished - before;
    let mut crashes = 0;
    while (collected() == 0 || (collected() < 2 && !is_done())) && crashes < 300 {
        crash_often(5, &shared).await?;
        crashes += 5;
    }
    Ok(crashes)
}

/// Lets an actor crash with [`MUCH`] whose addresses are known. Returns what says how many bytes more than before are in use.
async fn crash_and_tell(executor: &Executor) -> Result<impl Fn() -> usize + use<>, Failure> {
    let used = HEAP.usage().0;
    let glutton = executor.handle().spawn(Glutton::default())?;
    ensure!(glutton.ask(EatAndTell).await.is_err(), "it did not crash");
    Ok(move || HEAP.usage().0.saturating_sub(used))
}

/// Fails unless half of [`MUCH`] that crashed code took comes back at least: `grown` says how many bytes more are in use.
async fn comes_back(grown: impl Fn() -> usize) -> Outcome {
    let crashes = crash_until(|| grown() <= MUCH / 2).await?;
    let (grown, done) = (grown(), stats::collections());
    ensure!(grown <= MUCH / 2, "{grown} left after {crashes} crashes and {done:?}");
    Ok(())
}

kernel_test! {
    /// What something alive seemed to have when the rest was collected comes back when that is over, though what led to it is
    /// freed by then; or half of it, as above.
    async fn what_only_seemed_alive_comes_back_later() -> Outcome {
        let _limit = without_limit()?;
        let executor = Executor::start(&Config::default())?;
        let grown = crash_and_tell(&executor).await?;
        crash_until(|| true).await?;
        let grown_meanwhile = grown();
        // The black box, because nobody reads them but collections.
        black_box(&ADDRESSES).iter().for_each(|address| address.store(0, Ordering::Relaxed));
        ensure!(grown_meanwhile > MUCH / 2, "{grown_meanwhile} bytes more are in use, though {MUCH} seemed to be alive");
        comes_back(grown).await?;
        executor.stop().await;
        Ok(())
    }
}

/// Whether memory is scarce enough for tests that use it up: elsewhere they take as long as there is memory.
fn is_small_machine() -> bool {
    HEAP.usage().1 <= 100 << 20
}

kernel_test! {
    /// An actor that allocates until memory is used up takes next to none of it with it when it crashes. On a small machine.
    async fn the_last_memory_comes_back() -> Outcome {
        if !is_small_machine() {
            return Ok(());
        }
        let _limit = without_limit()?;
        let mut pieces = Pieces::of(HEAP.usage().1 / 10 * 8);
        for words in [20, 1 << 10, 1 << 17] {
            let executor = Executor::start(&Config::default())?;
            let glutton = executor.handle().spawn(Glutton::default())?;
            ensure!(glutton.ask(Eat(words, usize::MAX)).await.is_err(), "it did not crash");
            pieces.take_patiently().await?;
            executor.stop().await;
        }
        Ok(())
    }
}

kernel_test! {
    /// What crashed when there was memory enough comes back when somebody needs it, though nothing crashes any more. On a
    /// small machine.
    async fn memory_comes_back_when_it_is_needed() -> Outcome {
        if !is_small_machine() {
            return Ok(());
        }
        let _limit = without_limit()?;
        let (free, before) = (HEAP.usage().1, stats::collections());
        let mut pieces = Pieces::of((free + HEAP.kept()) / 10 * 7);
        let executor = Executor::start(&Config::default())?;
        let glutton = executor.handle().spawn(Glutton::default())?;
        ensure!(glutton.ask(Eat(1 << 10, free / 3 * 2)).await.is_err(), "it did not crash");
        let refused = pieces.take_patiently().await?;
        let collections = stats::collections().finished - before.finished;
        ensure!(refused > 0 || collections > 0, "memory was not short");
        executor.stop().await;
        Ok(())
    }
}

kernel_test! {
    /// How long all cores may stand still is up to the application: not at all, or too short to see anything; later it comes
    /// back all the same.
    async fn nobody_stands_still_for_longer_than_is_allowed() -> Outcome {
        let shared = Arc::new([42; 20]);
        let limited = |microseconds| Changed::new(&[(Setting::CollectMicroseconds, microseconds)]);
        let before = stats::collections();
        {
            let _never = limited(0)?;
            crash_often(60, &shared).await?;
            ensure_eq!(stats::collections().finished, before.finished, "collections where none are allowed");
            ensure_eq!(stats::collections().given_up, before.given_up, "collections given up where none are allowed");
        }
        {
            let _short = limited(1)?;
            let mut crashes = 0;
            while stats::collections().given_up == before.given_up {
                crash_often(5, &shared).await?;
                crashes += 5;
                ensure!(crashes < 300, "none was begun");
            }
            ensure_eq!(stats::collections().finished, before.finished, "collections in a microsecond");
        }
        let _limit = without_limit()?;
        for _ in 0..30 {
            crash_often(10, &shared).await?;
            if stats::collections().blocks - before.blocks > 60 * 50 {
                return Ok(());
            }
        }
        Err(Failure("what was left in the meantime does not come back".into()))
    }
}
