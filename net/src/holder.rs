//! Who holds a socket: the network's process is told when that is another process than before, because it watches the one that it knows of. So a
//! crash, which drops nothing, ends the sockets of who has crashed.

use magpie::sched::{self, ProcessRef};

use crate::command::{Command, Desk, Half, Id, Token};

/// What keeps a socket.
pub struct Holder {
    id: Id,
    half: Half,
    known: Option<ProcessRef>,
    desk: Desk,
    token: Option<Token>,
}

impl Holder {
    /// `known` is who the network's process watches already.
    pub fn new(id: Id, half: Half, desk: Desk, token: Token, known: Option<ProcessRef>) -> Self {
        Self { id, half, known, desk, token: Some(token) }
    }

    pub const fn desk(&self) -> &Desk {
        &self.desk
    }

    pub const fn id(&self) -> Id {
        self.id
    }

    /// Called before each use. A lack of memory is no trouble: it is said with the next use.
    pub fn note(&mut self) {
        let now = sched::current_process();
        let known = self.known.as_ref().map(ProcessRef::id);
        if now.as_ref().map(ProcessRef::id) == known {
            return;
        }
        let command = Command::Held { id: self.id, half: self.half, by: now.clone() };
        // Nobody waits for the answer.
        if self.desk.try_ask(command).map(drop).is_ok() {
            self.known = now;
        }
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        // First: who looks before that finds nothing, and does not look again so soon.
        self.token = None;
        // If this cannot be sent it is found a little later.
        let _ = self.desk.try_ask(Command::Look).map(drop);
    }
}
