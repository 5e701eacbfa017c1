//! Who works under supervisors in these tests: processes that do what they are ordered to, and tell of it.

use alloc::format;
use alloc::vec::Vec;
use core::time::Duration;

use magpie::channel::{ProcessAddr, ProcessMailbox};
use magpie::supervise::{Backoff, Child, ChildState, Shutdown, Supervisor, SupervisorRef};
use magpie::watch::{Ended, Exit};
use magpie::{registry, sched, time};
use magpie_tests::{Failure, HANGS_AFTER, Outcome, ensure_eq, first};

use crate::ways::Way;

pub(super) const HOUR: Duration = Duration::from_secs(3600);

/// What a worker is to do.
#[derive(Clone, Copy)]
pub(super) enum Order {
    Return,
    Fail,
    Crash(Way),
    /// To take no notice of anything any more, and wait.
    Sulk,
    /// The same, and not even wait.
    Hog,
}

/// What a worker tells.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Told {
    Began(u32),
    /// As it was asked to.
    Ended(u32),
    /// Its future was dropped without that.
    Dropped(u32),
}

/// Tells, unless all is over.
struct TellsDrop {
    number: u32,
    address: ProcessAddr<Told>,
    is_over: bool,
}

impl Drop for TellsDrop {
    fn drop(&mut self) {
        if !self.is_over {
            // Nobody may listen any more.
            let _ = self.address.send(Told::Dropped(self.number));
        }
    }
}

/// Does what it is ordered to, under its name.
async fn work(number: u32, told: ProcessAddr<Told>, mut shutdown: Shutdown) -> Outcome {
    let mut orders = ProcessMailbox::<Order>::new(8)?;
    registry::register(&format!("worker {number}"), orders.address())?;
    let mut tells = TellsDrop { number, address: told, is_over: false };
    tells.address.send(Told::Began(number)).map_err(|error| error.without_message())?;
    let order = first(orders.receive(), shutdown.requested()).await;
    match order {
        Ok(Some(Order::Sulk)) => core::future::pending().await,
        Ok(Some(Order::Hog)) => loop {
            core::hint::spin_loop();
        },
        Ok(Some(Order::Crash(way))) => drop(way.crash()),
        Err(()) => drop(tells.address.send(Told::Ended(number))),
        Ok(_) => {}
    }
    tells.is_over = true;
    if matches!(order, Ok(Some(Order::Fail))) { Err(Failure("as it was told".into())) } else { Ok(()) }
}

/// Who listens to workers, and gives them orders.
pub(super) struct Scene {
    pub(super) told: ProcessMailbox<Told>,
    address: ProcessAddr<Told>,
}

impl Scene {
    pub(super) fn new() -> Result<Self, Failure> {
        let told = ProcessMailbox::new(10_000)?;
        let address = told.address();
        Ok(Self { told, address })
    }

    pub(super) fn worker(&self, number: u32) -> Child {
        let address = self.address.clone();
        Child::process("worker", move |shutdown| work(number, address.clone(), shutdown)).within(HOUR)
    }

    pub(super) async fn next(&mut self) -> Result<Told, Failure> {
        match time::background_timeout(HANGS_AFTER, self.told.receive()).await {
            Ok(Some(told)) => Ok(told),
            _ => Err(Failure("a worker told nothing".into())),
        }
    }

    /// These are told, in this order.
    pub(super) async fn expect(&mut self, expected: &[Told]) -> Outcome {
        for expected in expected {
            ensure_eq!(self.next().await?, *expected, "what was told");
        }
        Ok(())
    }

    /// These begin next, in whichever order their cores come to it.
    pub(super) async fn expect_begins(&mut self, numbers: &[u32]) -> Outcome {
        self.expect_begins_but(numbers, &[]).await
    }

    /// The same; meanwhile these may be told. One that was to compute for ever may have had no turn for that before it was killed.
    pub(super) async fn expect_begins_but(&mut self, numbers: &[u32], others: &[Told]) -> Outcome {
        let mut began = Vec::new();
        while began.len() < numbers.len() {
            let next = self.next().await?;
            if !others.contains(&next) {
                began.push(next);
            }
        }
        began.sort_unstable();
        let expected: Vec<Told> = numbers.iter().copied().map(Told::Began).collect();
        ensure_eq!(began, expected, "who began");
        Ok(())
    }

    /// Orders a worker that has begun.
    pub(super) fn order(&self, number: u32, order: Order) -> Outcome {
        let worker: ProcessAddr<Order> = registry::find(&format!("worker {number}"))?;
        worker.send(order).map_err(|error| error.without_message())?;
        Ok(())
    }

    pub(super) fn nothing_more(&mut self) -> Outcome {
        ensure_eq!(self.told.try_receive(), None, "what else was told");
        Ok(())
    }
}

/// Waits until the children are as is expected.
pub(super) async fn until(supervisor: &SupervisorRef, holds: impl Fn(&[ChildState]) -> bool) -> Outcome {
    let came = async {
        while !holds(&supervisor.children().await?) {
            sched::yield_now().await;
        }
        Ok::<(), Failure>(())
    };
    time::background_timeout(HANGS_AFTER, came)
        .await
        .map_err(|_| Failure("the children are otherwise".into()))?
}

/// How a supervisor ended.
pub(super) async fn end_of(supervisor: &SupervisorRef) -> Result<Exit, Failure> {
    let mut ends = ProcessMailbox::<Ended>::new(1)?;
    supervisor.process().watch(&ends.address())?;
    match time::background_timeout(HANGS_AFTER, ends.receive()).await {
        Ok(Some(ended)) => Ok(ended.exit()),
        _ => Err(Failure("a supervisor did not end".into())),
    }
}

/// Without delays, and with as many restarts as are wanted.
pub(super) fn patient(supervisor: Supervisor) -> Supervisor {
    supervisor.backoff(Backoff::NONE).restarts(1000, HOUR)
}
