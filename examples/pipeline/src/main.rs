//! A supervised pipeline: numbers go through two stages, which crash again and again, and none is lost. Each stage has a name, under
//! which its next life is found; whoever asked a stage that has crashed is told so, and asks again.
#![cfg_attr(target_os = "none", no_std, no_main)]

use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;
use magpie::prelude::*;
use magpie::registry::{self, RegisterError};
use magpie::supervise::{Backoff, Child, Shutdown, Supervisor, SupervisorRef};

magpie::entry!(pipeline);

const NUMBERS: u64 = 1000;
/// After so many requests a stage crashes.
const DOUBLES_UNTIL_CRASH: u64 = 97;
const SQUARES_UNTIL_CRASH: u64 = 61;

type Stage = ProcessAddr<Request<u64, u64>>;

/// Counts the requests of all lives, and crashes at some.
struct Fault {
    requests: AtomicU64,
    crashes: AtomicU64,
    every: u64,
}

impl Fault {
    const fn new(every: u64) -> Self {
        Self { requests: AtomicU64::new(0), crashes: AtomicU64::new(0), every }
    }

    fn happen(&self) {
        if (self.requests.fetch_add(1, Ordering::Relaxed) + 1).is_multiple_of(self.every) {
            self.crashes.fetch_add(1, Ordering::Relaxed);
            panic!("injected");
        }
    }
}

static DOUBLES: Fault = Fault::new(DOUBLES_UNTIL_CRASH);
static SQUARES: Fault = Fault::new(SQUARES_UNTIL_CRASH);

/// A mailbox with a name, which it has until it is dropped or its process has crashed.
fn mailbox(name: &str) -> Result<ProcessMailbox<Request<u64, u64>>, RegisterError> {
    let mailbox = ProcessMailbox::new(10).map_err(|_| RegisterError::OutOfMemory)?;
    registry::register(name, mailbox.address())?;
    Ok(mailbox)
}

/// Doubles what it is asked, and asks the next stage.
async fn double(_: Shutdown) -> Result<(), RegisterError> {
    let mut requests = mailbox("double")?;
    while let Some(Request { message: number, reply }) = requests.receive().await {
        DOUBLES.happen();
        if let Ok(next) = registry::find::<Stage>("square")
            && let Ok(answer) = next.ask(2 * number).await
        {
            // An error only says that nobody waits for the answer any more.
            let _ = reply.send(answer);
        }
        // Without an answer the reply is dropped, which says so.
    }
    Ok(())
}

/// Squares what it is asked.
async fn square(_: Shutdown) -> Result<(), RegisterError> {
    let mut requests = mailbox("square")?;
    while let Some(Request { message: number, reply }) = requests.receive().await {
        SQUARES.happen();
        let _ = reply.send(number * number);
    }
    Ok(())
}

/// The answer of the first stage, in whichever of its lives.
async fn ask(number: u64) -> u64 {
    loop {
        if let Ok(first) = registry::find::<Stage>("double")
            && let Ok(answer) = first.ask(number).await
        {
            return answer;
        }
        time::sleep(Duration::from_millis(1)).await;
    }
}

async fn pipeline() -> magpie::Result {
    let limit = Duration::from_millis(10);
    let stages = Supervisor::one_for_one()
        .named("stages")
        .restarts(1000, Duration::from_secs(10))
        .backoff(Backoff::new(Duration::from_millis(1), Duration::from_millis(8)))
        .child(Child::process("square", square).within(limit))
        .child(Child::process("double", double).within(limit));
    let all = Supervisor::one_for_one().child(Child::supervisor("stages", stages)).start()?;

    let mut sum = 0;
    for number in 1..=NUMBERS {
        sum += ask(number).await;
    }
    let crashes = [&SQUARES, &DOUBLES].map(|fault| fault.crashes.load(Ordering::Relaxed));
    let children = registry::find::<SupervisorRef>("stages")?.children().await?;
    let restarts: [u64; 2] =
        core::array::from_fn(|index| children.get(index).map_or(0, |child| child.restarts));
    all.stop().await?;
    text!("{NUMBERS} numbers, {sum} in all; {crashes:?} crashes, {restarts:?} restarts");
    if crashes == restarts {
        Ok(())
    } else {
        Err("a stage was not started again as often as it crashed".into())
    }
}
