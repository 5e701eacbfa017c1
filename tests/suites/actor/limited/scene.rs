//! An actor that keeps what it is told to take, and executors on which it has many neighbours.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::hint::{black_box, spin_loop};
use core::sync::atomic::{AtomicBool, Ordering};

use magpie::actor::{Actor, Addr, Config, Context, Executor, Receive};
use magpie::mem::MemoryLimit;
use magpie::{machine, sched, time};
use magpie_tests::{Failure, HANGS_AFTER, Outcome};

pub const LIMIT: usize = 128 * 1024;
/// What one that is held to a limit is charged for that.
pub const HOLD: usize = 64;

pub async fn until(holds: impl Fn() -> bool, what: impl Fn() -> alloc::string::String) -> Outcome {
    let waiting = async {
        while !holds() {
            sched::yield_now().await;
        }
    };
    time::background_timeout(HANGS_AFTER, waiting).await.map_err(|_| Failure(what()))
}

pub async fn falls_to(limit: &MemoryLimit, bytes: usize) -> Outcome {
    until(|| limit.used() <= bytes, || alloc::format!("{} bytes are in use, not {bytes}", limit.used())).await
}

/// Keeps what it is told to take, and says whether it got it.
#[derive(Default)]
pub struct Keeper {
    pub kept: Vec<Vec<u8>>,
    pub last: u64,
    pub disorder: u64,
}

impl Actor for Keeper {}

pub struct Keep(pub usize);

impl Receive<Keep> for Keeper {
    type Reply = bool;

    fn receive(&mut self, Keep(bytes): Keep, _: &mut Context<Self>) -> bool {
        let mut load = Vec::new();
        if load.try_reserve_exact(bytes).is_err() || self.kept.try_reserve(1).is_err() {
            return false;
        }
        load.resize(bytes, 1);
        self.kept.push(load);
        true
    }
}

/// Takes until it is refused, gives all back, and says how much that was.
pub struct Fill;

impl Receive<Fill> for Keeper {
    type Reply = usize;

    fn receive(&mut self, _: Fill, _: &mut Context<Self>) -> usize {
        let mut all = Vec::new();
        loop {
            let mut block = Vec::<u8>::new();
            if all.try_reserve(1).is_err() || block.try_reserve_exact(1000).is_err() {
                return black_box(&all).len() * 1000;
            }
            all.push(block);
        }
    }
}

/// The next of a sender's numbers.
pub struct Number(pub u64);

impl Receive<Number> for Keeper {
    type Reply = ();

    fn receive(&mut self, Number(number): Number, _: &mut Context<Self>) {
        self.disorder += u64::from(number != self.last + 1);
        self.last = number;
    }
}

pub struct Report;

impl Receive<Report> for Keeper {
    type Reply = (u64, u64);

    fn receive(&mut self, _: Report, _: &mut Context<Self>) -> (u64, u64) {
        (self.last, self.disorder)
    }
}

/// Goes on until that says otherwise, and takes memory before and after.
pub struct Long(pub Arc<AtomicBool>);

impl Receive<Long> for Keeper {
    type Reply = bool;

    fn receive(&mut self, Long(ends): Long, _: &mut Context<Self>) -> bool {
        let before = alloc::vec![1_u8; 10_000];
        while !ends.load(Ordering::Acquire) {
            spin_loop();
        }
        self.kept.push(alloc::vec![2; 10_000]);
        before.iter().all(|byte| *byte == 1)
    }
}

pub struct Devour;

impl Receive<Devour> for Keeper {
    type Reply = ();

    fn receive(&mut self, _: Devour, _: &mut Context<Self>) {
        loop {
            self.kept.push(alloc::vec![1; 500]);
            if black_box(self.kept.len()) == usize::MAX {
                return;
            }
        }
    }
}

/// An executor whose mailboxes are one for each core, so that many share each.
pub fn crowded() -> Result<Executor, Failure> {
    Ok(Executor::start(&Config::default().mailboxes(machine::cores()).own_mailboxes(4))?)
}

pub fn neighbours(executor: &Executor) -> Result<Vec<Addr<Keeper>>, Failure> {
    let spawned = (0..4 * machine::cores()).map(|_| executor.handle().spawn(Keeper::default()));
    Ok(spawned.collect::<Result<_, _>>()?)
}
