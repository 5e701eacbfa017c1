//! Timers as messages.

use super::Result;
use std::time::Duration;

use magpie::actor::{Actor, Config, Context, Executor, Receive};
use magpie::message::SendAfter;
use magpie::time::Instant;

/// Ends when it was not kept awake.
struct Guard {
    alarm: Option<SendAfter<Asleep>>,
}

impl Actor for Guard {}

struct KeepAwake;
struct Asleep;

const PATIENCE: Duration = Duration::from_millis(5);

impl Receive<KeepAwake> for Guard {
    type Reply = ();

    fn receive(&mut self, _: KeepAwake, context: &mut Context<Self>) {
        if let Some(alarm) = self.alarm.take() {
            alarm.cancel();
        }
        self.alarm = context.address().send_after(PATIENCE, Asleep).ok();
        // Without memory for an alarm there would never be one.
        if self.alarm.is_none() {
            context.end();
        }
    }
}

impl Receive<Asleep> for Guard {
    type Reply = ();

    fn receive(&mut self, _: Asleep, context: &mut Context<Self>) {
        context.end();
    }
}

pub async fn chapter() -> Result {
    let executor = Executor::start(&Config::default())?;
    let guard = executor.handle().spawn(Guard { alarm: None })?;
    let begin = Instant::now();
    guard.send(KeepAwake)?.send(KeepAwake)?;
    executor.all_ended().await;
    assert!(begin.elapsed() >= PATIENCE);
    executor.stop().await;
    Ok(())
}
