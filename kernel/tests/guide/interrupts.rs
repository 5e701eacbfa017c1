//! Messages that an interrupt sends, and a process that waits for a device's interrupts.

use super::Result;
use magpie::actor::{Actor, Config, Context, Executor, Hook, Receive, Signal};
use magpie::interrupt::{ClaimError, Interrupt, Line, Revoked, Trigger};
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

/// What a driver does, in a process of its own.
async fn drive(mut interrupt: Interrupt) -> Result<(), Revoked> {
    loop {
        interrupt.wait().await?;
        // Here it would look at its device, and quieten it.
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

    let line = Line { number: 79, trigger: Trigger::Edge };
    match Interrupt::claim(line) {
        Ok(interrupt) => drive(interrupt).await?,
        // A host has no devices, either.
        Err(error) => assert!(matches!(error, ClaimError::NoSuchLine), "{error}"),
    }
    executor.stop().await;
    Ok(())
}
