//! A question to the network's process that is kept until it is answered: whoever waits may give up, and ask for the answer again later.

use alloc::boxed::Box;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, ready};

use magpie::mem::try_box;

use crate::command::{Answer, Command, Desk, Outcome};
use crate::error::Error;

/// At most one question under way.
#[derive(Default)]
pub struct Pending(Option<Pin<Box<dyn Future<Output = Answer> + Send>>>);

impl Pending {
    /// Asks, once this is polled.
    pub fn start(&mut self, desk: &Desk, command: Command) -> Result<(), Error> {
        self.0 = Some(prepare(desk.clone(), command)?);
        Ok(())
    }

    pub const fn is_under_way(&self) -> bool {
        self.0.is_some()
    }

    /// The answer.
    pub fn poll(&mut self, context: &mut Context<'_>) -> Poll<Result<Outcome, Error>> {
        let Some(asked) = &mut self.0 else { return Poll::Ready(Err(Error::Stopped)) };
        let answer = ready!(asked.as_mut().poll(context));
        self.0 = None;
        Poll::Ready(answer)
    }
}

/// Boxes the question with the desk's address, which an answer borrows.
fn prepare(desk: Desk, command: Command) -> Result<Pin<Box<dyn Future<Output = Answer> + Send>>, Error> {
    let asks = async move { desk.ask(command).await? };
    let boxed = try_box(asks).map_err(|(error, _)| error)?;
    Ok(Box::into_pin(boxed))
}

/// Asks, and waits.
pub async fn ask(desk: &Desk, command: Command) -> Answer {
    desk.ask(command).await?
}
