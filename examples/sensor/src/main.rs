//! A sensor is read every five milliseconds. Its actor is sent a message again and again, at moments that do not drift; it has an executor of priority
//! `High`, so no other work delays it. What it reads goes to whoever has subscribed, here one that smooths it.
#![cfg_attr(target_os = "none", no_std, no_main)]
#![forbid(unsafe_code)]

use core::time::Duration;
use magpie::group::{Group, Publish, Subscribe};
use magpie::message::SendInterval;
use magpie::prelude::*;

magpie::entry!(sensor);

const PERIOD: Duration = Duration::from_millis(5);
const READINGS: u32 = 20;
/// So many are smoothed into one.
const WINDOW: u32 = 5;

/// In hundredths of a degree.
#[derive(Clone, Copy)]
struct Reading(u32);

struct Sensor {
    readings: u32,
    group: Addr<Group<Reading>>,
    ticks: Option<SendInterval>,
}

#[derive(Clone, Copy)]
struct Tick;

impl Actor for Sensor {
    fn started() -> Option<Hook<Self>> {
        Some(|sensor, context| sensor.ticks = context.address().send_interval(PERIOD, Tick).ok())
    }
}

impl Receive<Tick> for Sensor {
    type Reply = ();

    fn receive(&mut self, _: Tick, context: &mut Context<Self>) {
        self.readings += 1;
        // Where a driver would look at its device.
        let reading = Reading(2000 + 30 * self.readings + 100 * (self.readings % 2));
        if self.group.send(Publish(reading)).is_err() || self.readings == READINGS {
            if let Some(ticks) = self.ticks.take() {
                ticks.cancel();
            }
            context.end();
        }
    }
}

#[derive(Default)]
struct Smooth {
    seen: u32,
    sum: u32,
}

impl Actor for Smooth {}

impl Receive<Reading> for Smooth {
    type Reply = ();

    fn receive(&mut self, Reading(hundredths): Reading, _: &mut Context<Self>) {
        self.seen += 1;
        self.sum += hundredths;
        if self.seen.is_multiple_of(WINDOW) {
            let mean = self.sum / WINDOW;
            self.sum = 0;
            text!("after {} readings: {}.{:02} degrees", self.seen, mean / 100, mean % 100);
        }
    }
}

async fn sensor() -> magpie::Result {
    let prompt = Executor::start(&Config::default().priority(Priority::High))?;
    let usual = Executor::start(&Config::default())?;
    let group = usual.handle().spawn(Group::<Reading>::new())?;
    let smooth = usual.handle().spawn(Smooth::default())?;
    group.ask(Subscribe(smooth.recipient())).await??;
    prompt.handle().spawn(Sensor { readings: 0, group, ticks: None })?;
    prompt.all_ended().await;
    sched::out_of_work().await;
    Ok(())
}
