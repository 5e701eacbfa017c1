//! Which lines there are, by the names of the nodes that they lead to. It allocates where it is made and nowhere else, so that used-up memory ends no
//! node.

use alloc::string::String;
use alloc::vec::Vec;

use magpie::channel::Reply;
use magpie::mem::Counted;
use magpie::sched::ProcessRef;

use crate::desk::{Answer, Orders};
use crate::error::Error;
use crate::watched::{Book, Watched};

/// Where somebody waits for an answer.
pub type Waiting = Reply<Result<Answer, Error>>;

pub enum State {
    /// Who waits for it.
    Connecting {
        by_us: bool,
        waiting: Vec<Waiting>,
    },
    Up(Orders),
}

/// A line.
pub struct Entry {
    /// The node that it leads to.
    pub peer: String,
    pub number: u64,
    pub process: ProcessRef,
    pub state: State,
    /// Who monitors somebody there.
    pub book: Book,
}

/// One for each node at most.
pub struct Lines(Vec<Entry>);

impl Lines {
    /// For so many.
    pub fn new(most: usize) -> Result<Self, Error> {
        let mut entries = Vec::new();
        entries.try_reserve_exact(most).map_err(|_| Error::OutOfMemory)?;
        Ok(Self(entries))
    }

    /// Whether one more has room. Each has a process, of which there are no more, but one whose process has ended stays until that was heard.
    pub fn has_room(&self) -> bool {
        self.0.len() < self.0.capacity()
    }

    pub fn get(&mut self, peer: &str) -> Option<&mut Entry> {
        self.0.iter_mut().find(|entry| entry.peer == peer)
    }

    /// One that there is not yet; there must be room.
    pub fn put(&mut self, entry: Entry) {
        self.0.push(entry);
    }

    /// The one with this number.
    pub fn remove(&mut self, number: u64) -> Option<Entry> {
        let place = self.0.iter().position(|entry| entry.number == number)?;
        Some(self.0.swap_remove(place))
    }

    /// Whose connection is made.
    pub fn up(&self) -> Result<Vec<String>, Error> {
        let is_up = |entry: &&Entry| matches!(entry.state, State::Up(_));
        let mut names = Vec::new();
        names.try_reserve_exact(self.0.len()).map_err(|_| Error::OutOfMemory)?;
        for entry in self.0.iter().filter(is_up) {
            names.push(copy(&entry.peer)?);
        }
        Ok(names)
    }
}

impl Entry {
    /// Notes that somebody monitors somebody there. The line, which is to be told next.
    pub fn note(&mut self, watched: Counted<Watched>) -> Result<Orders, Error> {
        let State::Up(orders) = &self.state else { return Err(Error::Disconnected) };
        self.book.note(watched)?;
        Ok(orders.clone())
    }

    /// Answers with the line, as soon as its connection is made.
    pub fn ask(&mut self, reply: Waiting) {
        let refused = match &mut self.state {
            State::Up(orders) => Ok(Answer::Line(orders.clone())),
            State::Connecting { waiting, .. } => match waiting.try_reserve(1) {
                Ok(()) => return waiting.push(reply),
                Err(_) => Err(Error::OutOfMemory),
            },
        };
        // Whoever has gone wants no answer.
        let _ = reply.send(refused);
    }
}

/// A copy of a name.
pub fn copy(name: &str) -> Result<String, Error> {
    let mut copy = String::new();
    copy.try_reserve_exact(name.len()).map_err(|_| Error::OutOfMemory)?;
    copy.push_str(name);
    Ok(copy)
}
