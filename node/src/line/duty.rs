//! What a line has to say to the other side.

use alloc::collections::BTreeMap;

use magpie::channel::Reply;
use magpie::mem::Counted;
use magpie_dist::connection::{CallId, Class, LocalPid, MonitorId, Peer, ReplyTo, SendError, To, WatchId};
use magpie_dist::term::TermBuf;

use super::order::{Order, Ordered, Place, Token};
use crate::error::Error;
use crate::exports::OWN_PID;
use crate::reason::{Reason, Refusal};
use crate::watched::Watched;

/// Something to say.
pub enum Duty {
    Down(MonitorId, Reason),
    Resolve(MonitorId, LocalPid),
    Exited(LocalPid, Reason),
    Reply(ReplyTo, TermBuf),
    Refuse(ReplyTo, Refusal),
    Returned(MonitorId, TermBuf),
    Raised(MonitorId, Reason),
    Undefined(MonitorId),
    Order(Order, Reply<Ordered>),
    Nothing,
}

/// Who waits for something from the other side.
#[derive(Default)]
pub struct Waiting {
    calls: BTreeMap<CallId, (Token, Reply<Ordered>)>,
    by_token: BTreeMap<Token, CallId>,
    watchers: BTreeMap<WatchId, Counted<Watched>>,
    watches: BTreeMap<Token, WatchId>,
}

impl Waiting {
    /// A call has an answer, or none.
    pub fn answer(&mut self, call: CallId, answer: Ordered) {
        if let Some((token, reply)) = self.calls.remove(&call) {
            self.by_token.remove(&token);
            // Whoever has given up wants none.
            let _ = reply.send(answer);
        }
    }

    /// A monitor tells.
    pub fn down(&mut self, watch: WatchId, reason: TermBuf) {
        if let Some(watched) = self.watchers.remove(&watch) {
            self.watches.remove(&watched.token);
            // Without memory it is told when the connection ends.
            let _ = watched.tell(reason);
        }
    }

    /// Gives up calls whose callers have gone without a word, as those do that are killed.
    fn give_up_unwanted(&mut self, peer: &mut Peer) {
        let unwanted = |(call, (token, reply)): (&CallId, &(Token, Reply<Ordered>))| {
            (!reply.is_wanted()).then_some((*call, *token))
        };
        while let Some((call, token)) = self.calls.iter().find_map(unwanted) {
            self.calls.remove(&call);
            self.by_token.remove(&token);
            // It is given up here, whatever the other side hears of it.
            let _ = peer.give_up(call);
        }
    }

    /// Takes back monitors whose watchers have gone without a word, as far as there is room to say so.
    fn demonitor_unwatched(&mut self, peer: &mut Peer) {
        let unwatched = |(watch, watched): (&WatchId, &Counted<Watched>)| {
            watched.is_over().then_some((*watch, watched.token))
        };
        while let Some((watch, token)) = self.watchers.iter().find_map(unwatched) {
            if matches!(peer.demonitor(watch), Err(SendError::Full)) {
                return;
            }
            self.watchers.remove(&watch);
            self.watches.remove(&token);
        }
    }

    /// All who wait for an answer.
    pub fn lose_calls(&mut self) {
        self.by_token.clear();
        while let Some((_, (_, reply))) = self.calls.pop_first() {
            let _ = reply.send(Err(Error::Disconnected));
        }
    }
}

fn target(place: &Place) -> To<'_> {
    match place {
        Place::Name(name) => To::Name(name),
        Place::Pid(pid) => To::Pid(*pid),
    }
}

impl Duty {
    /// Says it; gives it back if there is no room, to be said later. What cannot be said at all is left out: the other side hears of it by its monitor, or not.
    pub fn perform(self, peer: &mut Peer, waiting: &mut Waiting) -> Result<(), Self> {
        let said = match &self {
            Self::Down(monitor, reason) => peer.down(*monitor, reason),
            Self::Resolve(monitor, pid) => peer.resolve(*monitor, *pid),
            Self::Exited(pid, reason) => peer.exited(*pid, reason),
            Self::Reply(to, answer) => peer.reply(to, &answer.as_term()),
            Self::Refuse(to, refusal) => peer.reply(to, refusal),
            Self::Returned(rpc, result) => peer.returned(*rpc, &result.as_term()),
            Self::Raised(rpc, reason) => peer.raised(*rpc, Class::Exit, reason),
            Self::Undefined(rpc) => peer.raised(*rpc, Class::Error, &Undefined),
            Self::Order(..) => return self.carry_out(peer, waiting),
            Self::Nothing => return Ok(()),
        };
        match (said, self) {
            (Err(SendError::Full), duty) => Err(duty),
            // Whoever waits for it hears at least that.
            (Err(SendError::TooLong), Self::Reply(to, _)) => {
                Self::Refuse(to, Refusal { tag: "unanswered", text: "the answer is too long".into() })
                    .perform(peer, waiting)
            }
            (Err(SendError::TooLong), Self::Returned(rpc, _)) => {
                Self::Raised(rpc, Reason::NoMemory).perform(peer, waiting)
            }
            _ => Ok(()),
        }
    }

    /// Carries out an order.
    fn carry_out(self, peer: &mut Peer, waiting: &mut Waiting) -> Result<(), Self> {
        let Self::Order(order, reply) = self else { return Ok(()) };
        let said = match &order {
            Order::Send { to, message } => peer.send(OWN_PID, target(to), &message.as_term()),
            Order::Cast { to, message } => peer.cast(OWN_PID, target(to), &message.as_term()),
            Order::Call { token, to, message } => {
                let mut called = peer.call(OWN_PID, target(to), &message.as_term());
                if matches!(called, Err(SendError::TooMany)) {
                    waiting.give_up_unwanted(peer);
                    called = peer.call(OWN_PID, target(to), &message.as_term());
                }
                match called {
                    Ok(call) => {
                        waiting.by_token.insert(*token, call);
                        waiting.calls.insert(call, (*token, reply));
                        return Ok(());
                    }
                    Err(error) => Err(error),
                }
            }
            Order::GiveUp(token) => {
                if let Some(call) = waiting.by_token.remove(token) {
                    waiting.calls.remove(&call);
                    let _ = peer.give_up(call);
                }
                Ok(())
            }
            Order::Monitor { to, watched } => {
                let mut begun = peer.monitor(OWN_PID, target(to));
                if matches!(begun, Err(SendError::TooMany)) {
                    waiting.demonitor_unwatched(peer);
                    begun = peer.monitor(OWN_PID, target(to));
                }
                begun.map(|watch| {
                    waiting.watches.insert(watched.token, watch);
                    waiting.watchers.insert(watch, watched.clone());
                })
            }
            Order::Demonitor(token) => match waiting.watches.get(token) {
                Some(watch) => match peer.demonitor(*watch) {
                    Err(SendError::Full) => Err(SendError::Full),
                    _ => {
                        if let Some(watched) = waiting.watchers.remove(watch) {
                            watched.forget();
                        }
                        waiting.watches.remove(token);
                        Ok(())
                    }
                },
                None => Ok(()),
            },
            Order::Close => Ok(()),
        };
        let outcome = match said {
            Ok(()) => Ok(None),
            Err(SendError::Full) => return Err(Self::Order(order, reply)),
            Err(SendError::TooLong) => Err(Error::Encode(magpie_dist::term::EncodeError::TooLong)),
            Err(SendError::TooMany) => Err(Error::Busy),
            Err(SendError::Encode(error)) => Err(Error::Encode(error)),
            Err(SendError::OutOfMemory) => Err(Error::OutOfMemory),
            Err(_) => Err(Error::Disconnected),
        };
        // Whoever just sends does not wait for it.
        let _ = reply.send(outcome);
        Ok(())
    }
}

/// `undef`.
struct Undefined;

impl magpie_dist::term::ToTerm for Undefined {
    fn to_term(
        &self,
        writer: &mut magpie_dist::term::Writer<'_>,
    ) -> Result<(), magpie_dist::term::EncodeError> {
        writer.atom("undef")
    }
}
