//! Where actors run, and how soon.

use super::Result;

use core::time::Duration;
use magpie::actor::{Actor, Config, Context, Executor, MailboxVictim, Receive};
use magpie::arch::CoreId;
use magpie::sched::{self, Priority, Spawn};
use magpie::time;

struct Scout;

impl Actor for Scout {}

struct Where;

impl Receive<Where> for Scout {
    type Reply = Option<CoreId>;

    fn receive(&mut self, _: Where, _: &mut Context<Self>) -> Option<CoreId> {
        sched::current_core()
    }
}

pub async fn chapter() -> Result {
    let executor =
        Executor::start(&Config::default().workers(2).mailboxes(8).victim(MailboxVictim::LongestVictim))?;
    let handle = executor.handle();

    let core_1 = CoreId::new(1).ok_or("no such core")?;
    let anywhere = handle.spawn(Scout)?;
    let begins_on_1 = handle.spawn_on(core_1, Scout)?;
    let stays_on_1 = handle.spawn_pinned(core_1, Scout)?;
    let beside = handle.spawn_beside(anywhere, Scout)?;

    assert_eq!(stays_on_1.ask(Where).await?, Some(core_1));
    for scout in [anywhere, begins_on_1, beside] {
        assert!(scout.ask(Where).await?.is_some());
    }
    executor.stop().await;

    let prompt = Config::default().priority(Priority::High).deadline(Duration::from_millis(2));
    let prompt = Executor::start(&prompt)?;
    let scout = prompt.handle().spawn(Scout)?;
    let polls = Spawn::new().priority(Priority::High).deadline(Duration::from_micros(500));
    let polling = polls.start(async {
        for _ in 0..3 {
            time::sleep(Duration::from_millis(1)).await;
            // What is to be done within half a millisecond from here.
        }
    })?;

    assert!(scout.ask(Where).await?.is_some());
    polling.await?;
    prompt.stop().await;
    Ok(())
}
