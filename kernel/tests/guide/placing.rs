//! Where actors run.

use super::Result;

use magpie::actor::{Actor, Config, Context, Executor, Receive, VictimRule};
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
    let executor = Executor::start(&Config {
        workers: Some(2),
        mailboxes: Some(8),
        victim: VictimRule::LongestVictim,
        ..Config::default()
    })?;
    let handle = executor.handle();

    let anywhere = handle.spawn(Scout)?;
    let begins_on_1 = handle.spawn_on(1, Scout)?;
    let stays_on_1 = handle.spawn_pinned(1, Scout)?;
    let beside = handle.spawn_beside(anywhere, Scout)?;

    assert_eq!(stays_on_1.ask(Where).await?, CoreId::new(1));
    for scout in [anywhere, begins_on_1, beside] {
        assert!(scout.ask(Where).await?.is_some());
    }
    executor.stop().await;
    Ok(())
}
