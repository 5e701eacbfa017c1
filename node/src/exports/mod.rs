//! What others can reach: actors and functions that were named. Nothing else can be reached.

mod actor;
mod built_in;
mod functions;

pub use functions::{Arguments, Failed};

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::future::Future;
use core::pin::Pin;

use magpie::actor::{Actor, Answers, AskError};
use magpie::channel::ProcessAddr;
use magpie::mem::OutOfMemory;
use magpie::message::Message;
use magpie::watch::{Ended, Watch};
use magpie_dist::connection::{Destination, LocalPid};
use magpie_dist::term::{Atom, DecodeError, EncodeError, FromAnyTerm, Term, TermBuf, ToTerm};

pub use functions::{Function, List};

/// The pid of the node itself, as whoever calls.
pub const OWN_PID: LocalPid = LocalPid::new(1, 0);
/// The first of exported actors; theirs follow one another.
const FIRST: u32 = 2;

/// What comes of a request.
pub type Answering = Pin<Box<dyn Future<Output = Result<TermBuf, Unanswered>> + Send>>;

/// Why there is no answer.
#[derive(Debug)]
pub enum Unanswered {
    Ask(AskError),
    Encode(EncodeError),
}

/// Why a message was not taken.
#[derive(Debug)]
pub enum NotTaken {
    /// Nobody is there.
    Nobody,
    /// It is not of the actor's type.
    Shape(DecodeError),
    /// The mailbox is full: it is to be tried again.
    Full,
}

/// An actor that others reach.
pub trait Exported: Send + Sync {
    fn name(&self) -> &str;
    /// Which incarnation of it lives now.
    fn serial(&self) -> Option<u32>;
    /// Hands that incarnation a message; the answer is wanted, or not.
    fn ask(&self, serial: u32, message: Term<'_>, limit: usize) -> Result<Answering, NotTaken>;
    /// Watches that incarnation, unless it has ended.
    fn watch(&self, serial: u32, watcher: &ProcessAddr<Ended>) -> Option<Result<Watch, OutOfMemory>>;
    /// Ends that incarnation, if whoever has exported it allows that.
    fn end(&self, serial: u32);
}

/// All that is exported.
#[derive(Default)]
pub struct Exports {
    actors: Vec<Box<dyn Exported>>,
    functions: Vec<Function>,
}

impl Exports {
    pub fn add_actor<A, M, K>(&mut self, name: String, may_be_ended: bool)
    where
        A: Actor + Answers<M, K, Reply: ToTerm>,
        M: Message + FromAnyTerm,
        K: 'static,
    {
        self.actors.push(Box::new(actor::ByName::<A, M, K>::new(name, may_be_ended)));
    }

    pub fn add_function(&mut self, function: Function) {
        self.functions.push(function);
    }

    pub fn add_built_in(&mut self) {
        built_in::add(self);
    }

    /// Whom a message is for, and its pid, if somebody is there.
    pub fn find(&self, to: &Destination<'_>) -> Option<(&dyn Exported, LocalPid)> {
        let (index, wanted) = match to {
            Destination::Name(name) => (self.actors.iter().position(|actor| name.is(actor.name()))?, None),
            Destination::Pid(pid) => {
                (usize::try_from(pid.id().checked_sub(FIRST)?).ok()?, Some(pid.serial()))
            }
        };
        let actor = self.actors.get(index)?;
        let serial = actor.serial()?;
        let pid = LocalPid::new(u32::try_from(index).ok()?.checked_add(FIRST)?, serial);
        wanted.is_none_or(|wanted| wanted == serial).then_some((&**actor, pid))
    }

    pub fn function(&self, module: &Atom<'_>, name: &Atom<'_>, arity: usize) -> Option<&Function> {
        self.functions.iter().find(|function| {
            module.is(function.module()) && name.is(function.name()) && function.arity() == arity
        })
    }
}
