//! Cells of actors that nobody is in, used before or never, keep nothing of what crashed code has left.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::hint::black_box;
use core::sync::atomic::{AtomicUsize, Ordering};

use magpie::actor::{Actor, Addr, Config, Context, Executor, Hook, Receive};
use magpie::sched;
use magpie_tests::{Outcome, ensure, kernel_test};

use super::{ADDRESSES, comes_back, crash_and_tell, without_limit};

/// Its state looks as if it led to what a [`Glutton`](super::Glutton) took, until it has ended. What needs no drop is never looked at again, so it has
/// something that does.
struct Rememberer {
    addresses: [usize; 64],
    _dropped: Vec<u8>,
}

impl Actor for Rememberer {}

impl Receive<End> for Rememberer {
    type Reply = ();

    fn receive(&mut self, _: End, context: &mut Context<Self>) {
        black_box(&self.addresses);
        context.end();
    }
}

/// Told to a [`Rememberer`].
struct End;

/// Starts as many as remember all of them, and ends them. Not in a future, where the addresses would stay.
#[inline(never)]
fn remember_and_end(executor: &Executor) -> Outcome {
    let mut left = &ADDRESSES[..];
    let mut actors: Vec<Addr<Rememberer>> = Vec::new();
    while let Some((first, rest)) = left.split_first_chunk::<64>() {
        let addresses = core::array::from_fn(|index| first[index].load(Ordering::Relaxed));
        actors.push(executor.handle().spawn(Rememberer { addresses, _dropped: alloc::vec![1] })?);
        left = rest;
    }
    for actor in actors {
        actor.send(End)?;
    }
    Ok(())
}

kernel_test! {
    /// What an actor had in its state is nobody's when it has ended, though its cell is kept for another.
    async fn a_free_cell_keeps_nothing() -> Outcome {
        let _limit = without_limit()?;
        let executor = Executor::start(&Config::default())?;
        let grown = crash_and_tell(&executor).await?;
        remember_and_end(&executor)?;
        executor.all_ended().await;
        ADDRESSES.iter().for_each(|address| address.store(0, Ordering::Relaxed));
        comes_back(grown).await?;
        executor.stop().await;
        Ok(())
    }
}

/// As large as what cells of actors are cut from, and as aligned.
#[repr(align(4096))]
struct Page([usize; 512]);

impl Page {
    /// What tells apart the page that something lies in. It is no address, to a collection.
    fn number<T>(inside: *const T) -> usize {
        inside.addr() / size_of::<Self>()
    }
}

/// Pages that keep others apart, in which the addresses were left, and the numbers of those: first those with the first half of the addresses.
struct Left {
    _apart: Vec<Box<Page>>,
    numbers: [Vec<usize>; 2],
}

/// Leaves the addresses in free pieces of memory, half of them in each. Not in a future, as above.
#[inline(never)]
fn leave_addresses() -> Left {
    let mut pages: Vec<_> = (0..64).map(|_| Box::new(Page([0; 512]))).collect();
    let mut numbers = [const { Vec::new() }; 2];
    let mut addresses = ADDRESSES.iter().cycle();
    for (half, page) in [0, 1].into_iter().cycle().zip(pages.iter_mut().step_by(2)) {
        page.0
            .iter_mut()
            .zip(&mut addresses)
            .for_each(|(word, address)| *word = address.load(Ordering::Relaxed));
        numbers[half].push(Page::number(black_box(&raw const **page)));
    }
    let mut is_apart = [false, true].into_iter().cycle();
    pages.retain(|_| is_apart.next() == Some(true));
    Left { _apart: pages, numbers }
}

/// One of its kind: the other cells beside it are never used.
struct Alone<const KIND: usize>([usize; 40]);

/// The page that each of them lies in, once it has started.
static PAGES: [AtomicUsize; 8] = [const { AtomicUsize::new(0) }; 8];

impl<const KIND: usize> Actor for Alone<KIND> {
    fn started() -> Option<Hook<Self>> {
        Some(|alone, _| PAGES[KIND].store(Page::number(&raw const alone.0), Ordering::Release))
    }
}

fn alone<const KIND: usize>(executor: &Executor) -> Outcome {
    let _ = executor.handle().spawn(Alone::<KIND>([0; 40]))?;
    Ok(())
}

kernel_test! {
    /// What lay where cells are made is nobody's, though most of them are never used.
    async fn an_unused_cell_keeps_nothing() -> Outcome {
        let _limit = without_limit()?;
        let executor = Executor::start(&Config::default())?;
        let grown = crash_and_tell(&executor).await?;
        let left = leave_addresses();
        for one in [alone::<0>, alone::<1>, alone::<2>, alone::<3>, alone::<4>, alone::<5>, alone::<6>, alone::<7>] {
            one(&executor)?;
        }
        while PAGES.iter().any(|page| page.load(Ordering::Acquire) == 0) {
            sched::yield_now().await;
        }
        let is_used = |number: &usize| PAGES.iter().any(|page| page.load(Ordering::Relaxed) == *number);
        let used = left.numbers.each_ref().map(|numbers| numbers.iter().filter(|number| is_used(number)).count());
        drop(left);
        // With both halves of the addresses most cells of a chunk would lead to all blocks.
        ensure!(used[0] > 0 && used[1] > 0, "chunks were made elsewhere, but for {used:?}");
        ADDRESSES.iter().for_each(|address| address.store(0, Ordering::Relaxed));
        comes_back(grown).await?;
        executor.stop().await;
        Ok(())
    }
}
