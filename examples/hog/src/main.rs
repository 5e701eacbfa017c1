//! A hog beside an actor with a deadline, on one core. The hog's behaviour does not end before it is told to, and gives nothing up. The other has work
//! every five milliseconds, which is due two milliseconds later. It gets the core at once each time, because its executor is more urgent;
//! the hog's stack is lent to it meanwhile. After twenty times it tells the hog, which would otherwise go on for ever.
//!
//! On the developer's own machine nothing is preempted: there this needs two cores.
#![cfg_attr(target_os = "none", no_std, no_main)]
#![forbid(unsafe_code)]

use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use magpie::message::SendInterval;
use magpie::prelude::*;
use magpie::stats;

magpie::entry!(hog);

const PERIOD: Duration = Duration::from_millis(5);
const DEADLINE: Duration = Duration::from_millis(2);
const TIMES: u32 = 20;

static ENOUGH: AtomicBool = AtomicBool::new(false);

struct Hog;

impl Actor for Hog {}

struct Run;

impl Receive<Run> for Hog {
    type Reply = u64;

    fn receive(&mut self, _: Run, _: &mut Context<Self>) -> u64 {
        let mut rounds = 0_u64;
        // Relaxed: nothing else is handed over by it.
        while !ENOUGH.load(Ordering::Relaxed) {
            rounds = rounds.wrapping_add(1);
        }
        rounds
    }
}

struct Prompt {
    times: u32,
    ticks: Option<SendInterval>,
}

#[derive(Clone, Copy)]
struct Tick;

impl Actor for Prompt {
    fn started() -> Option<Hook<Self>> {
        Some(|prompt, context| prompt.ticks = context.address().send_interval(PERIOD, Tick).ok())
    }
}

impl Receive<Tick> for Prompt {
    type Reply = ();

    fn receive(&mut self, _: Tick, context: &mut Context<Self>) {
        self.times += 1;
        if self.times == TIMES {
            if let Some(ticks) = self.ticks.take() {
                ticks.cancel();
            }
            ENOUGH.store(true, Ordering::Relaxed);
            context.end();
        }
    }
}

async fn hog() -> magpie::Result {
    let core = CoreId::BOOT;
    let usual = Executor::start(&Config::default())?;
    let prompt = Executor::start(&Config::default().priority(Priority::High).deadline(DEADLINE))?;
    let ran = usual.handle().spawn_pinned(core, Hog)?.ask(Run);
    prompt.handle().spawn_pinned(core, Prompt { times: 0, ticks: None })?;
    prompt.all_ended().await;
    let rounds = ran.await?;
    text!("{TIMES} times the core was given up by a hog that went round and round: {}", rounds > 0);
    let missed = stats::total(|core| core.deadlines_missed.get());
    text!("deadlines missed: {missed}, which an emulator on a busy host cannot promise");
    Ok(())
}
