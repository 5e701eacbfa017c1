//! Who is killed, and who is linked to it.

use core::future::pending;

use super::Result;

use magpie::channel::ProcessMailbox;
use magpie::sched::{self, JoinError};
use magpie::watch::{Ended, Exit, link};

pub async fn chapter() -> Result {
    let mut ends = ProcessMailbox::<Ended>::new(10)?;
    let reader = sched::spawn(pending::<()>())?;
    let writer = sched::spawn(pending::<()>())?;
    link(reader.process(), writer.process())?;
    reader.process().watch(&ends.address())?;
    writer.process().kill();
    assert_eq!(writer.await, Err(JoinError::Killed));
    assert_eq!(ends.receive().await.map(|ended| ended.exit()), Some(Exit::Killed));
    Ok(())
}
