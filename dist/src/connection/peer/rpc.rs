//! Function calls of theirs, by `rpc` and `erpc`: they ask that a process be started which calls a function and ends with what that
//! returned. Here nothing is started but that; any other process is refused.

use super::payload::{Raised, Returned};
use super::{Monitor, Peer, Step, Watched};
use crate::connection::error::SendError;
use crate::connection::event::{Class, Event};
use crate::connection::ids::{LocalPid, MonitorId, RemotePid};
use crate::signal::Control;
use crate::term::{Atom, DecodeError, Reference, Term, ToTerm, Token};

/// A process that is to be started.
pub struct Request<'a> {
    pub reference: Reference<'a>,
    pub from: RemotePid,
    pub module: Atom<'a>,
    pub function: Atom<'a>,
    pub options: Term<'a>,
    pub arguments: Term<'a>,
}

/// What is called.
struct Function<'a> {
    /// What its result is sent with, if it is.
    tag: Option<Term<'a>>,
    module: Atom<'a>,
    name: Atom<'a>,
    arguments: Term<'a>,
}

/// In `flags` of the answer: the new process is watched.
const IS_MONITORED: u8 = 2;

impl Peer {
    /// Says what a function call returned.
    ///
    /// ```
    /// use magpie_dist::connection::{Class, MonitorId, Peer, SendError};
    /// fn load(peer: &mut Peer, call: MonitorId, load: Option<f64>) -> Result<(), SendError> {
    ///     match load {
    ///         Some(load) => peer.returned(call, &load),
    ///         None => peer.raised(call, Class::Error, &"no such core"),
    ///     }
    /// }
    /// ```
    ///
    /// # Errors
    /// When nobody waits for it any more, and when it cannot be sent, or not yet.
    pub fn returned(&mut self, call: MonitorId, value: &impl ToTerm) -> Result<(), SendError> {
        self.end_rpc(call, None, value)
    }

    /// Says that a function call ended in something else than a value.
    ///
    /// # Errors
    /// As for [`returned`](Self::returned).
    pub fn raised(&mut self, call: MonitorId, class: Class, reason: &impl ToTerm) -> Result<(), SendError> {
        self.end_rpc(call, Some(class), reason)
    }

    fn end_rpc(
        &mut self,
        call: MonitorId,
        class: Option<Class>,
        value: &dyn ToTerm,
    ) -> Result<(), SendError> {
        let Some(Monitor { target: Watched::Call(_, tag), .. }) = self.monitors.get(call.0) else {
            return Err(SendError::Unknown);
        };
        // It is a few words.
        let tag = tag.as_term().to_buf().map_err(|_| SendError::OutOfMemory)?;
        match class {
            None => self.down_any(call.0, &Returned(tag.as_term(), value)),
            Some(class) => self.down_any(call.0, &Raised(tag.as_term(), class, value)),
        }
    }

    /// Takes up a function call, or refuses to start anything else. There is room for an answer.
    pub(super) fn spawn<'a>(&mut self, request: &Request<'a>) -> Step<'a> {
        let Some(function) =
            request.function().filter(|_| self.names.remote_reference_of(&request.reference).is_some())
        else {
            self.statistics.spawns += 1;
            return self.answer_spawn(request, 0, Err("notsup"));
        };
        let Function { tag, module, name, arguments } = function;
        let number = self.next();
        // No process of the node's own has such a serial number.
        let local = LocalPid::new(number as u32, self.names.salt | 1 << 31);
        let Some(tag) = tag else {
            self.answer_spawn(request, 0, Ok(local));
            return Step::Event(Event::Rpc { call: None, module, function: name, arguments });
        };
        let reference = super::RemoteRef::of(&request.reference);
        let kept = tag.to_buf().map_err(|_| SendError::OutOfMemory).and_then(|tag| {
            let monitor = Monitor { from: request.from, target: Watched::Call(local, tag) };
            if self.monitors.get(reference).is_some() {
                return Err(SendError::TooMany);
            }
            self.monitors.insert(reference, monitor)
        });
        if kept.is_err() {
            self.statistics.refused += 1;
            return self.answer_spawn(request, 0, Err("system_limit"));
        }
        self.answer_spawn(request, IS_MONITORED, Ok(local));
        Step::Event(Event::Rpc { call: Some(MonitorId(reference)), module, function: name, arguments })
    }

    fn answer_spawn<'a>(
        &mut self,
        request: &Request<'_>,
        flags: u8,
        result: Result<LocalPid, &'static str>,
    ) -> Step<'a> {
        let to = self.names.remote(request.from);
        let result = match result {
            Ok(pid) => Ok(self.names.local(pid)),
            Err(word) => match Atom::new(word) {
                Ok(word) => Err(word),
                Err(_) => return Step::Nothing,
            },
        };
        let control = Control::SpawnReply { request: request.reference, to, flags, result };
        // There is room for it. Without memory nothing more can be done.
        let _ = self.wire.answer((control, None));
        Step::Nothing
    }
}

impl<'a> Request<'a> {
    /// The function that is to be called, if that is all that is asked.
    fn function(&self) -> Option<Function<'a>> {
        if !self.module.is("erpc") {
            return None;
        }
        self.read_function().ok().flatten()
    }

    fn read_function(&self) -> Result<Option<Function<'a>>, DecodeError> {
        let (is_monitored, is_linked) = self.read_options()?;
        if is_linked {
            return Ok(None);
        }
        let mut reader = self.arguments.reader();
        let tag = match (self.function.as_str(), reader.token()?) {
            (Some("execute_call"), Token::List(4)) if is_monitored => {
                // It is kept until there is a result, so it is what `erpc` makes it: a reference, not whatever somebody sends.
                let tag = reader.term()?;
                tag.reader().reference()?;
                Some(tag)
            }
            (Some("execute_cast"), Token::List(3)) if !is_monitored => None,
            _ => return Ok(None),
        };
        Ok(Some(Function { tag, module: reader.atom()?, name: reader.atom()?, arguments: reader.term()? }))
    }

    /// Whether the new process is to be watched, and whether linked.
    fn read_options(&self) -> Result<(bool, bool), DecodeError> {
        let mut reader = self.options.reader();
        let mut found = (false, false);
        if let Token::List(count) = reader.token()? {
            for _ in 0..count {
                let mut option = reader.term()?.reader();
                let name = match option.token()? {
                    Token::Atom(name) => name,
                    Token::Tuple(_) => option.atom()?,
                    _ => continue,
                };
                found.0 |= name.is("monitor");
                found.1 |= name.is("link");
            }
        }
        Ok(found)
    }
}
