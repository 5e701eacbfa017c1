//! Where actors run.

use super::Result;

use magpie::actor::{Actor, Config, Context, Executor, MailboxVictim, Receive};
use magpie::arch::CoreId;
use magpie::sched;

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
    Ok(())
}
