//! Messages, calls and answers.

use super::payload::{Answer, GenCall, GenCast};
use super::{Call, Called, Peer, atom};
use crate::connection::error::SendError;
use crate::connection::event::{Body, ReplyTo, Tag};
use crate::connection::ids::{CallId, LocalPid, To};
use crate::flags::ALIAS;
use crate::signal::{Control, Target};
use crate::term::{Atom, DecodeError, Reader, Term, ToTerm, Token};

/// How long a tag may be that is kept with a call until that is answered. A reference has half of that at most.
const LONGEST_TAG: usize = 2048;

impl Peer {
    /// Sends a message.
    ///
    /// # Errors
    /// When it cannot be sent, or not yet. Whether it arrives is not known.
    pub fn send(&mut self, from: LocalPid, to: To<'_>, message: &impl ToTerm) -> Result<(), SendError> {
        self.send_any(from, to, message)
    }

    fn send_any(&mut self, from: LocalPid, to: To<'_>, message: &dyn ToTerm) -> Result<(), SendError> {
        let from = self.names.local(from);
        let control = match to {
            To::Pid(pid) => Control::Send { from: Some(from), to: self.names.remote(pid) },
            To::Name(name) => Control::SendName { from, name: Atom::new(name).map_err(SendError::Encode)? },
            To::Alias(alias) => Control::SendAlias { from, alias: self.names.remote_reference(alias) },
        };
        self.wire.put(&[(control, Some(message))])
    }

    /// Casts: what `gen_server:cast` does.
    ///
    /// ```
    /// use magpie_dist::connection::{LocalPid, Peer, SendError, To};
    /// fn log(peer: &mut Peer, from: LocalPid, line: &str) -> Result<(), SendError> {
    ///     peer.cast(from, To::Name("logger_of_boards"), &line)
    /// }
    /// ```
    ///
    /// # Errors
    /// As for [`send`](Self::send).
    pub fn cast(&mut self, from: LocalPid, to: To<'_>, request: &impl ToTerm) -> Result<(), SendError> {
        self.send_any(from, to, &GenCast(request))
    }

    /// Calls: what `gen_server:call` does. The end of it is [`Event::Replied`](super::super::Event::Replied),
    /// [`Event::CallFailed`](super::super::Event::CallFailed), or [`Lost::Call`](super::super::Lost::Call) with the connection, unless it is
    /// given up before.
    ///
    /// ```
    /// use magpie_dist::connection::{CallId, LocalPid, Peer, SendError, To};
    /// fn ask(peer: &mut Peer, from: LocalPid) -> Result<CallId, SendError> {
    ///     peer.call(from, To::Name("bank"), &("balance of", 17))
    /// }
    /// ```
    ///
    /// # Errors
    /// When it cannot be sent, or not yet, or as many calls as may are under way. An alias cannot be called: [`SendError::Unknown`].
    pub fn call(&mut self, from: LocalPid, to: To<'_>, request: &impl ToTerm) -> Result<CallId, SendError> {
        self.calls.reserve()?;
        let called = Called::new(to)?;
        let number = self.next();
        let reference = self.names.reference(number).ok_or(SendError::Unknown)?;
        let pid = self.names.local(from);
        let has_alias = self.wire.flags & ALIAS != 0;
        let message = GenCall { from: pid, reference, has_alias, request };
        let target = called.target(&self.names);
        let send = match target {
            Target::Pid(to) => Control::Send { from: Some(pid), to },
            Target::Name(name) => Control::SendName { from: pid, name },
        };
        let monitor = Control::Monitor { from: pid, target, reference };
        self.wire.put(&[(monitor, None), (send, Some(&message))])?;
        self.calls.insert(number, Call { local: from, target: called })?;
        Ok(CallId(number))
    }

    /// Waits for a call's answer no longer. If it comes all the same it is dropped.
    ///
    /// ```
    /// use magpie_dist::connection::{CallId, Peer, SendError};
    /// fn at_the_time_limit(peer: &mut Peer, call: CallId) -> Result<(), SendError> {
    ///     match peer.give_up(call) {
    ///         // It was answered just now.
    ///         Err(SendError::Unknown) => Ok(()),
    ///         other => other,
    ///     }
    /// }
    /// ```
    ///
    /// # Errors
    /// When there is no such call any more, and when that cannot be said to the other side, or not yet.
    pub fn give_up(&mut self, call: CallId) -> Result<(), SendError> {
        let Call { local, target } = self.calls.get(call.0).ok_or(SendError::Unknown)?;
        let reference = self.names.reference(call.0).ok_or(SendError::Unknown)?;
        let target = target.target(&self.names);
        let control = Control::Demonitor { from: self.names.local(*local), target, reference };
        self.wire.put(&[(control, None)])?;
        self.calls.remove(call.0);
        Ok(())
    }

    /// What a message is to a server: a call, a cast, or something else. A call in the name of a process of a third node is something else,
    /// and so is one with a tag of more than 2048 bytes.
    ///
    /// ```
    /// use magpie_dist::connection::{Body, Peer, SendError};
    /// use magpie_dist::term::Term;
    /// /// Answers calls with what was asked.
    /// fn echo(peer: &mut Peer, message: Term<'_>) -> Result<(), SendError> {
    ///     match peer.body(message) {
    ///         Body::Call { to, request } => peer.reply(&to, &request),
    ///         Body::Cast(_) | Body::Other(_) => Ok(()),
    ///     }
    /// }
    /// ```
    pub fn body<'a>(&self, message: Term<'a>) -> Body<'a> {
        self.read_body(message).unwrap_or(Body::Other(message))
    }

    fn read_body<'a>(&self, message: Term<'a>) -> Result<Body<'a>, DecodeError> {
        let mut reader = message.reader();
        let arity = reader.tuple()?;
        let word = reader.atom()?;
        if arity == 2 && word.is("$gen_cast") {
            return Ok(Body::Cast(reader.term()?));
        }
        if arity != 3 || !word.is("$gen_call") {
            return Err(DecodeError::UnknownVariant);
        }
        reader.tuple_of(2)?;
        let to = self.names.remote_of(&reader.pid()?).ok_or(DecodeError::UnknownVariant)?;
        let tag = self.read_tag(reader.term()?)?;
        Ok(Body::Call { to: ReplyTo { to, tag }, request: reader.term()? })
    }

    fn read_tag(&self, term: Term<'_>) -> Result<Tag, DecodeError> {
        let mut reader = term.reader();
        let alias = |reader: &mut Reader<'_>| {
            let Ok(Token::List(1)) = reader.token() else { return None };
            let word = reader.atom().ok()?;
            let reference = reader.reference().ok()?;
            self.names.remote_reference_of(&reference).filter(|_| word.is("alias"))
        };
        if let Some(alias) = alias(&mut reader) {
            return Ok(Tag::Alias(alias));
        }
        let mut reader = term.reader();
        let within = match reader.token() {
            Ok(Token::List(_)) => alias(&mut reader),
            _ => None,
        };
        if term.bytes().len() > LONGEST_TAG {
            return Err(DecodeError::OutOfRange);
        }
        let tag = term.to_buf()?;
        Ok(match within {
            Some(alias) => Tag::Within(alias, tag),
            None => Tag::Any(tag),
        })
    }

    /// Answers a call.
    ///
    /// # Errors
    /// When it cannot be sent, or not yet.
    pub fn reply(&mut self, to: &ReplyTo, reply: &impl ToTerm) -> Result<(), SendError> {
        let answer = Answer { tag: &to.tag, names: &self.names, reply };
        self.wire.put(&[(self.names.answer_to(to), Some(&answer))])
    }

    /// Answers what the protocol itself asks.
    pub(super) fn answer_reply(&mut self, to: &ReplyTo, reply: &dyn ToTerm) -> Result<(), SendError> {
        let answer = Answer { tag: &to.tag, names: &self.names, reply };
        self.wire.answer((self.names.answer_to(to), Some(&answer)))
    }

    /// If a message is the answer to a call: the call's number if it still waits, and the answer.
    pub(super) fn read_reply<'a>(&self, message: Term<'a>) -> Option<(Option<u64>, Term<'a>)> {
        let mut reader = message.reader();
        reader.tuple_of(2).ok()?;
        let reference = match reader.token().ok()? {
            Token::Reference(reference) => reference,
            Token::List(1) if reader.atom().ok()?.is("alias") => reader.reference().ok()?,
            _ => return None,
        };
        let number = self.names.own_number(&reference)?;
        let waits = self.calls.get(number).map(|_| number);
        Some((waits, reader.term().ok()?))
    }

    /// Ends a call that was answered.
    pub(super) fn end_call(&mut self, number: u64) -> Option<LocalPid> {
        let call = self.calls.remove(number)?;
        let reference = self.names.reference(number)?;
        let target = call.target.target(&self.names);
        let control = Control::Demonitor { from: self.names.local(call.local), target, reference };
        // Room for it was there; without memory the other side keeps a monitor of no use.
        let _ = self.wire.answer((control, None));
        Some(call.local)
    }
}

impl super::Names {
    /// The control message of an answer.
    fn answer_to(&self, to: &ReplyTo) -> Control<'_> {
        let from = self.local(LocalPid::NODE);
        match &to.tag {
            Tag::Alias(alias) | Tag::Within(alias, _) => {
                Control::SendAlias { from, alias: self.remote_reference(*alias) }
            }
            Tag::Any(_) => Control::Send { from: Some(from), to: self.remote(to.to) },
        }
    }
}

impl Called {
    pub(super) fn new(to: To<'_>) -> Result<Self, SendError> {
        match to {
            To::Pid(pid) => Ok(Self::Pid(pid)),
            To::Name(name) => Ok(Self::Name(atom(name)?)),
            To::Alias(_) => Err(SendError::Unknown),
        }
    }

    pub(super) fn target<'a>(&'a self, names: &'a super::Names) -> Target<'a> {
        match self {
            Self::Pid(pid) => Target::Pid(names.remote(*pid)),
            Self::Name(name) => Target::Name(name.as_atom()),
        }
    }
}
