//! Processes that wait for room in the bounded mailbox of one actor. The parameters are how many processes, how many messages each sends, and
//! how many the mailbox takes.

use alloc::boxed::Box;
use alloc::vec::Vec;

use magpie::actor::{
    Actor, Addr, AskError, Bound, Config, Context, Executor, ExecutorHandle, Receive, WhenFull,
};
use magpie::sched::{self, Spawn};

use super::Go;
use crate::failed::Failed;
use crate::stopwatch;
use crate::verdict::expect_equal;

#[derive(Default)]
struct Sink(u64);

impl Actor for Sink {}

struct Item;

impl Receive<Item> for Sink {
    type Reply = ();

    fn receive(&mut self, _: Item, _: &mut Context<Self>) {
        self.0 += 1;
    }
}

struct HowMany;

impl Receive<HowMany> for Sink {
    type Reply = u64;

    fn receive(&mut self, _: HowMany, _: &mut Context<Self>) -> u64 {
        self.0
    }
}

async fn send(to: Addr<Sink>, count: u64) -> Option<()> {
    for _ in 0..count {
        to.send_wait(Item).await.ok()?;
    }
    Some(())
}

async fn all_send(senders: u64, each: u64, most: u32) -> Option<u64> {
    let executor = Executor::start(&Config::default().own_mailboxes(1)).ok()?;
    let bound = Bound::new(most, WhenFull::Refuse);
    let sink = executor.handle().spawn_bounded(Sink::default(), bound).ok()?;
    let sending: Option<Vec<_>> = (0..senders).map(|_| sched::spawn(send(sink, each)).ok()).collect();
    for sender in sending? {
        sender.await.ok()??;
    }
    let handled = loop {
        match sink.ask(HowMany).await {
            Ok(handled) => break handled,
            // The last messages may lie there still, and a question waits for no room.
            Err(AskError::Full) => sched::yield_now().await,
            Err(_) => return None,
        }
    };
    executor.stop().await;
    Some(handled)
}

pub fn prepare(_: &ExecutorHandle, parameters: &[u64]) -> Result<Go, Failed> {
    let (senders, each) = (parameters[0], parameters[1]);
    let most = u32::try_from(parameters[2].max(1)).unwrap_or(u32::MAX);
    Ok(Box::new(move || {
        stopwatch::begin(1);
        let measured = async move {
            if let Some(handled) = all_send(senders, each, most).await {
                expect_equal("messages", handled, senders * each);
                stopwatch::done();
            }
        };
        Spawn::new().start(measured).map_err(|_| Failed::Memory)?;
        Ok(senders * each)
    }))
}
