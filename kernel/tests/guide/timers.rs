//! Timers as messages.

use super::Result;
use std::time::Duration;

use magpie::actor::{Actor, Config, Context, Executor, Hook, Receive};
use magpie::message::{SendAfter, SendInterval};
use magpie::time::{self, Instant};

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

/// Beats three times.
struct Heart {
    beats: Option<SendInterval>,
    left: u32,
}

#[derive(Clone, Copy)]
struct Beat;

const PERIOD: Duration = Duration::from_millis(1);

impl Actor for Heart {
    fn started() -> Option<Hook<Self>> {
        Some(|heart, context| heart.beats = context.address().send_interval(PERIOD, Beat).ok())
    }
}

impl Receive<Beat> for Heart {
    type Reply = ();

    fn receive(&mut self, _: Beat, context: &mut Context<Self>) {
        self.left -= 1;
        if self.left == 0 {
            if let Some(beats) = self.beats.take() {
                beats.cancel();
            }
            context.end();
        }
    }
}

pub async fn chapter() -> Result {
    let executor = Executor::start(&Config::default())?;
    let guard = executor.handle().spawn(Guard { alarm: None })?;
    let begin = Instant::now();
    guard.send(KeepAwake)?.send(KeepAwake)?;
    executor.all_ended().await;
    assert!(begin.elapsed() >= PATIENCE);
    executor.handle().spawn(Heart { beats: None, left: 3 })?;
    let begin = Instant::now();
    executor.all_ended().await;
    assert!(begin.elapsed() >= 3 * PERIOD);
    let mut interval = time::interval(PERIOD);
    for _ in 0..3 {
        let due = interval.tick().await;
        assert!(Instant::now() >= due);
    }
    executor.stop().await;
    Ok(())
}
