//! A counter that keeps its state across its crashes: what it has counted is in a ledger of its own, an actor that does nothing else and so
//! has no reason to crash. Each booking has a number, so one that is asked for again, because the counter crashed before or after it was
//! written down, is written down once.
#![cfg_attr(target_os = "none", no_std, no_main)]

use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;
use magpie::prelude::*;
use magpie::supervise::{Backoff, Child, Shutdown, Supervisor};

magpie::entry!(ledger);

const BOOKINGS: u64 = 1000;
/// Every so many steps of the counter's it crashes: before a booking is written down, or after it.
const STEPS_UNTIL_CRASH: u64 = 77;

/// An amount, and which booking it is: 1, 2, 3 and so on.
#[derive(Clone, Copy)]
struct Booking {
    number: u64,
    amount: u64,
}

/// What must not be lost.
struct Ledger {
    last: u64,
    total: u64,
}

impl Actor for Ledger {
    fn started() -> Option<Hook<Self>> {
        Some(|_, context| {
            // Who does not get the name is not found under it.
            let _ = registry::register("ledger", context.address());
        })
    }
}

impl Receive<Booking> for Ledger {
    /// The total.
    type Reply = u64;

    fn receive(&mut self, booking: Booking, _: &mut Context<Self>) -> u64 {
        if booking.number > self.last {
            self.last = booking.number;
            self.total += booking.amount;
        }
        self.total
    }
}

static STEPS: AtomicU64 = AtomicU64::new(0);
static CRASHES: AtomicU64 = AtomicU64::new(0);

/// One step of the counter's, at some of which it crashes.
fn step() {
    if (STEPS.fetch_add(1, Ordering::Relaxed) + 1).is_multiple_of(STEPS_UNTIL_CRASH) {
        CRASHES.fetch_add(1, Ordering::Relaxed);
        panic!("injected");
    }
}

/// Books what it is asked to. It remembers nothing itself.
async fn count(_: Shutdown) -> magpie::Result {
    let mut requests = ProcessMailbox::<Request<Booking, u64>>::new(10)?;
    registry::register("counter", requests.address())?;
    while let Some(Request { message: booking, reply }) = requests.receive().await {
        step();
        let total = registry::find::<Addr<Ledger>>("ledger")?.ask(booking).await?;
        step();
        // An error only says that nobody waits for the answer any more.
        let _ = reply.send(total);
    }
    Ok(())
}

/// The total after that booking, from whichever of the counter's lives.
async fn book(booking: Booking) -> u64 {
    loop {
        if let Ok(counter) = registry::find::<ProcessAddr<Request<Booking, u64>>>("counter")
            && let Ok(total) = counter.ask(booking).await
        {
            return total;
        }
        time::sleep(Duration::from_millis(1)).await;
    }
}

async fn ledger() -> magpie::Result {
    let executor = Executor::start(&Config::default())?;
    let supervisor = Supervisor::rest_for_one()
        .restarts(1000, Duration::from_secs(10))
        .backoff(Backoff::new(Duration::from_millis(1), Duration::from_millis(8)))
        .child(Child::actor("ledger", executor.handle(), || Ledger { last: 0, total: 0 }))
        .child(Child::process("counter", count).within(Duration::from_millis(10)))
        .start()?;
    let mut total = 0;
    for number in 1..=BOOKINGS {
        total = book(Booking { number, amount: number }).await;
    }
    let children = supervisor.children().await?;
    let restarts = children.iter().map(|child| (child.name, child.restarts));
    text!("{BOOKINGS} bookings, {total} in all; {} crashes", CRASHES.load(Ordering::Relaxed));
    for (name, restarts) in restarts {
        text!("{name} was started again {restarts} times");
    }
    supervisor.stop().await?;
    executor.stop().await;
    Ok(())
}
