//! Messages that wait behind a behaviour that runs for long, in many mailboxes: what the end of a slice looks at. The parameters are how often,
//! and how many mailboxes each worker has.
//!
//! One operation is a message that waited. What it costs says little; for how long interrupts are masked meanwhile is of interest
//! (`cargo xtask bench behind:3 --masked`).

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;

use magpie::actor::{Actor, Addr, Config, Context, Executor, ExecutorHandle, Receive};
use magpie::arch::CoreId;
use magpie::channel::{ProcessAddr, ProcessMailbox};
use magpie::machine;
use magpie::sched::{self, Setting, Spawn};
use magpie::time::{self, Instant};

use super::Go;
use crate::failed::Failed;
use crate::stopwatch;
use crate::verdict::expect_equal;

/// A behaviour runs for so many slices.
const SLICES: u64 = 4;

struct Waiting(Arc<AtomicU64>);

impl Actor for Waiting {}

struct Message;

impl Receive<Message> for Waiting {
    type Reply = ();

    fn receive(&mut self, _: Message, _: &mut Context<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

struct Long {
    waiting: Vec<Addr<Waiting>>,
    done: ProcessAddr<()>,
}

impl Actor for Long {}

struct Run;

impl Receive<Run> for Long {
    type Reply = ();

    fn receive(&mut self, _: Run, _: &mut Context<Self>) {
        for waiting in &self.waiting {
            // One that finds no memory is missed at the end.
            let _ = waiting.send(Message);
        }
        let length = Duration::from_micros(SLICES * sched::setting(Setting::SliceMicroseconds));
        let began = Instant::now();
        while began.elapsed() < length {
            core::hint::spin_loop();
        }
        let _ = self.done.send(());
    }
}

async fn rounds(rounds: u64, mailboxes: usize, handled: Arc<AtomicU64>) -> Option<()> {
    let mut config = Config::default();
    config.mailboxes = Some(mailboxes * machine::cores());
    let executor = Executor::start(&config).ok()?;
    let mut mailbox = ProcessMailbox::new(1).ok()?;
    let actors = 0..mailboxes * machine::cores();
    let waiting =
        actors.map(|_| executor.handle().spawn(Waiting(handled.clone())).ok()).collect::<Option<Vec<_>>>()?;
    let all = rounds * waiting.len() as u64;
    let long = executor.handle().spawn(Long { waiting, done: mailbox.address() }).ok()?;
    for _ in 0..rounds {
        long.send(Run).ok()?;
        mailbox.receive().await?;
    }
    while handled.load(Ordering::Relaxed) < all {
        time::sleep(Duration::from_micros(200)).await;
    }
    executor.stop().await;
    Some(())
}

/// As [`super::Figure::prepare`].
pub fn prepare(_: &ExecutorHandle, parameters: &[u64]) -> Result<Go, Failed> {
    let (times, mailboxes) = (parameters[0].max(1), parameters[1].max(1));
    Ok(Box::new(move || {
        let messages = times * mailboxes * machine::cores() as u64;
        stopwatch::begin(1);
        let measure = async move {
            let handled = Arc::new(AtomicU64::new(0));
            if rounds(times, mailboxes as usize, handled.clone()).await.is_some() {
                expect_equal("messages", handled.load(Ordering::Relaxed), messages);
                stopwatch::done();
            }
        };
        Spawn::new().pinned(CoreId::BOOT).start(measure).map_err(|_| Failed::Memory)?;
        Ok(messages)
    }))
}
