//! An actor that is exported under its name in the registry: whoever has that name when a message comes gets it. So one that a supervisor has started anew is
//! reached as before.

use alloc::boxed::Box;
use alloc::string::String;
use core::cell::Cell;
use core::marker::PhantomData;

use critical_section::Mutex;
use magpie::actor::{Actor, Addr, Answers, AskError};
use magpie::channel::ProcessAddr;
use magpie::mem::OutOfMemory;
use magpie::message::{Message, SendError};
use magpie::registry;
use magpie::watch::{Ended, Watch};
use magpie_dist::term::{FromAnyTerm, Term, TermBuf, ToTerm};

use super::{Answering, Exported, NotTaken, Unanswered};

/// The actor, its messages, and how it answers.
pub struct ByName<A: Actor, M, K> {
    name: String,
    may_be_ended: bool,
    /// Who was there last, and how many others before.
    last: Mutex<Cell<(Option<Addr<A>>, u32)>>,
    types: PhantomData<fn(M, K)>,
}

impl<A: Actor, M, K> ByName<A, M, K> {
    pub fn new(name: String, may_be_ended: bool) -> Self {
        Self { name, may_be_ended, last: Mutex::new(Cell::new((None, 0))), types: PhantomData }
    }

    fn current(&self) -> Option<(Addr<A>, u32)> {
        let now = registry::find::<Addr<A>>(&self.name).ok()?;
        let serial = critical_section::with(|section| {
            let last = self.last.borrow(section);
            let (before, serial) = last.get();
            let serial = if before == Some(now) { serial } else { serial.wrapping_add(1) };
            last.set((Some(now), serial));
            serial
        });
        Some((now, serial))
    }

    /// That incarnation, if it is the one that lives.
    fn incarnation(&self, serial: u32) -> Option<Addr<A>> {
        self.current().filter(|(_, now)| *now == serial).map(|(address, _)| address)
    }
}

impl<A, M, K> Exported for ByName<A, M, K>
where
    A: Actor + Answers<M, K, Reply: ToTerm>,
    M: Message + FromAnyTerm,
    K: 'static,
{
    fn name(&self) -> &str {
        &self.name
    }

    fn serial(&self) -> Option<u32> {
        self.current().map(|(_, serial)| serial)
    }

    fn ask(&self, serial: u32, message: Term<'_>, limit: usize) -> Result<Answering, NotTaken> {
        let address = self.incarnation(serial).ok_or(NotTaken::Nobody)?;
        let message = message.decode::<M>().map_err(NotTaken::Shape)?;
        let answer = address.try_ask(message).map_err(|error| match error.without_message() {
            SendError::Ended(()) => NotTaken::Nobody,
            _ => NotTaken::Full,
        })?;
        // Of one that has ended, the request may be dropped with its other mail: while an actor crashes on one core, another may drop what waits for it
        // before whoever asked is told of the crash.
        let asked = move |error| match error {
            AskError::Unanswered if !address.is_alive() => Unanswered::Ask(AskError::Ended),
            error => Unanswered::Ask(error),
        };
        Ok(Box::pin(async move {
            let answer = answer.await.map_err(asked)?;
            TermBuf::of(&answer, limit).map_err(Unanswered::Encode)
        }))
    }

    fn watch(&self, serial: u32, watcher: &ProcessAddr<Ended>) -> Option<Result<Watch, OutOfMemory>> {
        self.incarnation(serial).map(|address| address.watch(watcher))
    }

    fn end(&self, serial: u32) {
        if self.may_be_ended
            && let Some(address) = self.incarnation(serial)
        {
            // Without memory for it the actor lives on: whoever asked sees that it does.
            let _ = address.kill();
        }
    }
}
