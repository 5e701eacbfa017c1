//! Who is to be told of the end of somebody on another node. The line that leads there tells, and when it has ended, however it did, the desk: each keeps all of
//! them. What a line is told by the other side is none of this.

use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, Ordering};

use magpie::channel::ProcessAddr;
use magpie::mem::Counted;
use magpie::message::SendError;
use magpie_dist::term::TermBuf;

use crate::error::Error;
use crate::line::{RemoteDown, Token};

/// A monitor, and who has it.
pub struct Watched {
    pub token: Token,
    watcher: ProcessAddr<RemoteDown>,
    is_over: AtomicBool,
}

impl Watched {
    pub fn new(token: Token, watcher: ProcessAddr<RemoteDown>) -> Result<Counted<Self>, Error> {
        let watched = Self { token, watcher, is_over: AtomicBool::new(false) };
        Counted::new(watched).map_err(|(error, _)| error.into())
    }

    /// Tells why, unless it is over. Whether it is then: without memory it is not.
    ///
    /// First it tells and then it notes that. So whoever crashes in the middle leaves a monitor that tells twice, and none that never does.
    pub fn tell(&self, reason: TermBuf) -> bool {
        if self.is_over() {
            return true;
        }
        // One whose mailbox is full misses it, as it would any message.
        let told = self.watcher.send_urgent(RemoteDown { monitor: self.token.0, reason });
        if matches!(told, Err(SendError::OutOfMemory(_))) {
            return false;
        }
        self.forget();
        true
    }

    /// It was taken back.
    pub fn forget(&self) {
        // Relaxed: who tells after this, elsewhere, has heard by a message that it is its turn.
        self.is_over.store(true, Ordering::Relaxed);
    }

    /// Whether nobody is to be told any more.
    pub fn is_over(&self) -> bool {
        // Relaxed: as above.
        self.is_over.load(Ordering::Relaxed) || !self.watcher.is_alive()
    }
}

/// The monitors of a line.
#[derive(Default)]
pub struct Book(Vec<Counted<Watched>>);

impl Book {
    /// One more.
    pub fn note(&mut self, watched: Counted<Watched>) -> Result<(), Error> {
        if self.0.len() == self.0.capacity() {
            self.0.retain(|watched| !watched.is_over());
        }
        self.0.try_reserve(1).map_err(|_| Error::OutOfMemory)?;
        self.0.push(watched);
        Ok(())
    }

    /// Tells all that the connection has gone; those that there was no memory for stay.
    pub fn tell(&mut self) {
        self.0.retain(|watched| !watched.tell(TermBuf::NO_CONNECTION));
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
