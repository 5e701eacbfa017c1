//! Processes with a mailbox of their own.

use super::Result;
use std::time::Duration;

use magpie::actor::SendError;
use magpie::channel::{ProcessAddr, ProcessMailbox, Request};
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

async fn sell(mut orders: ProcessMailbox<Request<&'static str, u32>>) {
    while let Some(order) = orders.receive().await {
        let price = if order.message == "tea" { 3 } else { 5 };
        // An error only says that nobody waits for the answer any more.
        let _ = order.reply.send(price);
    }
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

    let orders = ProcessMailbox::new(10)?;
    let shop = orders.address();
    let open = sched::spawn(sell(orders))?;
    assert_eq!(shop.ask("tea").await? + shop.ask("cake").await?, 8);
    drop(shop);
    open.await?;
    Ok(())
}
