//! Messages that an interrupt sends.

use super::Result;
use magpie::actor::{Actor, Config, Context, Executor, Hook, Receive, Signal};
use magpie::sched;

/// Something has arrived.
#[derive(Clone, Copy)]
struct Arrived;

/// Takes what has arrived.
struct Port;

static LINE: Signal<Arrived> = Signal::new();

fn on_interrupt() {
    // Here it would mask the device's interrupt.
    LINE.raise();
}

impl Actor for Port {
    fn started() -> Option<Hook<Self>> {
        Some(|_, context| LINE.send_to(context.address().recipient(), Arrived))
    }
}

impl Receive<Arrived> for Port {
    type Reply = ();

    fn receive(&mut self, _: Arrived, context: &mut Context<Self>) {
        context.end();
    }
}

pub async fn chapter() -> Result {
    let executor = Executor::start(&Config::default())?;
    executor.handle().spawn(Port)?;
    while !LINE.has_recipient() {
        sched::yield_now().await;
    }
    // A host has no interrupts.
    on_interrupt();
    executor.all_ended().await;
    on_interrupt();
    assert!(!LINE.has_recipient());
    assert_eq!(LINE.missed(), 0);
    executor.stop().await;
    Ok(())
}
