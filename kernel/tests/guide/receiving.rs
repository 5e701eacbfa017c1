//! Processes with a mailbox of their own.

use super::Result;
use std::time::Duration;

use magpie::actor::SendError;
use magpie::channel::{ProcessAddr, ProcessMailbox};
use magpie::sched;
use magpie::time::Elapsed;

enum Event {
    Reading(u32),
    Calibrated,
    Stop,
}

async fn log(mut events: ProcessMailbox<Event>) -> u32 {
    let mut sum = 0;
    // Readings that come before this stay in the mailbox.
    events.receive_matching(|event| matches!(event, Event::Calibrated)).await;
    while let Some(event) = events.receive().await {
        match event {
            Event::Reading(value) => sum += value,
            Event::Calibrated => {}
            Event::Stop => break,
        }
    }
    sum
}

pub async fn chapter() -> Result {
    let events = ProcessMailbox::new(1000)?;
    let to: ProcessAddr<Event> = events.address();
    let logger = sched::spawn(log(events))?;
    to.send(Event::Reading(1))?.send(Event::Reading(2))?.send(Event::Calibrated)?;
    to.send(Event::Stop)?;
    assert_eq!(logger.await?, 3);
    assert!(matches!(to.send(Event::Stop), Err(SendError::Ended(Event::Stop))));

    let mut orders = ProcessMailbox::new(2)?;
    let to = orders.address();
    to.send("tea")?.send_urgent("fire!")?;
    assert!(matches!(to.send("cake"), Err(SendError::Full("cake"))));
    assert_eq!(orders.receive().await, Some("fire!"));
    assert_eq!(orders.receive().await, Some("tea"));
    assert_eq!(orders.receive_within(Duration::from_millis(2)).await, Err(Elapsed));

    drop(to);
    assert_eq!(orders.receive().await, None);
    Ok(())
}
