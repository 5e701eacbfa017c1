//! Drivers: the actor that starts a benchmark, for the first message must come from a worker, too.

use magpie::actor::{Actor, Context, ExecutorHandle, Receive};
use magpie::arch::CoreId;

use crate::failed::Failed;

/// An actor that does one thing when it is told to go, and ends.
struct Driver<F>(Option<F>);

struct Go;

impl<F: Send + 'static> Actor for Driver<F> {}

impl<F: FnOnce() + Send + 'static> Receive<Go> for Driver<F> {
    type Reply = ();

    fn receive(&mut self, _: Go, context: &mut Context<Self>) {
        if let Some(body) = self.0.take() {
            body();
        }
        context.end();
    }
}

/// Runs `body` in an actor on the first worker.
pub fn drive(handle: &ExecutorHandle, body: impl FnOnce() + Send + 'static) -> Result<(), Failed> {
    let driver = handle.spawn_on(CoreId::BOOT, Driver(Some(body)))?;
    driver.send(Go).map_err(|_| Failed::Memory)?;
    Ok(())
}
