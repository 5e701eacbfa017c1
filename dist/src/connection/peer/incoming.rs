//! What signals of the other side mean: what is known is kept up, and the node told of what concerns it.
//!
//! Some are answered without the node: pings, ends of links, monitors beyond the limit, processes that are to be started. While the
//! output has no room for such an answer, the signal waits, and with it all that is behind.

use super::payload::Word;
use super::rpc::Request;
use super::{Link, Monitor, Peer, Watched};
use crate::connection::error::Closed;
use crate::connection::event::{Body, Destination, Event};
use crate::connection::ids::{CallId, MonitorId, Pair, RemotePid, WatchId};
use crate::signal::{Control, Signal, Target};
use crate::term::{Atom, Pid, Reference, Term};

/// The process that answers pings on a node of Erlang's. Here the connection does.
const PINGED: &str = "net_kernel";

/// What became of a signal.
#[derive(Debug)]
pub enum Step<'a> {
    /// All was done.
    Nothing,
    /// It is for the node.
    Event(Event<'a>),
    /// It has to wait until some of the output was sent. Nothing was done.
    Stalled,
}

impl Peer {
    /// Takes in the content of one frame.
    pub fn take_in<'a>(&mut self, frame: &'a [u8]) -> Result<Step<'a>, Closed> {
        let Signal { control, payload } = Signal::read(frame).map_err(Closed::Malformed)?;
        if self.is_answered(&control) && !self.wire.has_room() {
            return Ok(Step::Stalled);
        }
        self.statistics.received += 1;
        let step = match payload {
            Some(payload) if control.has_payload() => self.take_in_with(control, payload),
            _ => self.take_in_alone(control),
        };
        Ok(step.unwrap_or_else(|| {
            self.statistics.unknown += 1;
            Step::Nothing
        }))
    }

    /// Whether the connection may have to answer by itself.
    fn is_answered(&self, control: &Control<'_>) -> bool {
        match control {
            Control::SendName { name, .. } => name.is(PINGED),
            // The end of a call.
            Control::Send { .. } | Control::SendAlias { .. } => self.calls.len() > 0,
            Control::Link { .. }
            | Control::Unlink { .. }
            | Control::Monitor { .. }
            | Control::Spawn { .. } => true,
            _ => false,
        }
    }

    /// What has something behind it. `None`: nobody knows what to do with it.
    fn take_in_with<'a>(&mut self, control: Control<'a>, payload: Term<'a>) -> Option<Step<'a>> {
        Some(Step::Event(match control {
            Control::Send { from, to } => {
                if let Some(step) = self.answered(payload) {
                    return Some(step);
                }
                let to = Destination::Pid(self.names.local_of(&to)?);
                let from = from.and_then(|from| self.names.remote_of(&from));
                Event::Message { from, to, message: payload }
            }
            Control::SendName { from, name } => {
                if name.is(PINGED) && self.ping(payload) {
                    return Some(Step::Nothing);
                }
                let from = self.names.remote_of(&from);
                Event::Message { from, to: Destination::Name(name), message: payload }
            }
            Control::SendAlias { alias, .. } => {
                self.names.own_number(&alias)?;
                return Some(self.answered(payload).unwrap_or(Step::Nothing));
            }
            Control::Exit { from, to } => {
                let pair = self.pair(&from, &to)?;
                match self.links.get(pair) {
                    Some(Link { is_active: true, ended: None }) => drop(self.links.remove(pair)),
                    // It is that of a link that was ended from here.
                    _ => return Some(Step::Nothing),
                }
                Event::Exit { from: pair.1, to: pair.0, reason: payload }
            }
            Control::ExitTo { from, to } => {
                let (to, from) = self.pair(&from, &to)?;
                Event::ExitAsked { from, to, reason: payload }
            }
            Control::Down { reference, .. } => {
                let number = self.names.own_number(&reference)?;
                if let Some(watch) = self.watches.remove(number) {
                    Event::Down { watch: WatchId(number), local: watch.local, reason: payload }
                } else if let Some(call) = self.calls.remove(number) {
                    Event::CallFailed { call: CallId(number), local: call.local, reason: payload }
                } else {
                    // It was watched no longer.
                    return Some(Step::Nothing);
                }
            }
            Control::Spawn { request, from, module, function, options, .. } => {
                let from = self.names.remote_of(&from)?;
                let request =
                    Request { reference: request, from, module, function, options, arguments: payload };
                return Some(self.spawn(&request));
            }
            _ => return None,
        }))
    }

    /// What stands by itself.
    fn take_in_alone<'a>(&mut self, control: Control<'a>) -> Option<Step<'a>> {
        match control {
            Control::Link { from, to } => self.linked(&from, &to),
            Control::Unlink { id, from, to } => {
                let answer = Control::UnlinkAck { id, from: to, to: from };
                // There is room for it. Without memory nothing more can be done.
                let _ = self.wire.answer((answer, None));
                let pair = self.pair(&from, &to)?;
                let link = self.links.get_mut(pair).filter(|link| link.is_active);
                let Some(link) = link else { return Some(Step::Nothing) };
                link.is_active = false;
                if link.ended.is_none() {
                    self.links.remove(pair);
                }
                Some(Step::Event(Event::Unlinked { from: pair.1, to: pair.0 }))
            }
            Control::UnlinkAck { id, from, to } => {
                let pair = self.pair(&from, &to)?;
                let link = self.links.get_mut(pair)?;
                if link.ended == Some(id) {
                    link.ended = None;
                    if !link.is_active {
                        self.links.remove(pair);
                    }
                }
                Some(Step::Nothing)
            }
            Control::Monitor { from, target, reference } => self.monitored(&from, target, &reference),
            Control::Demonitor { reference, .. } => {
                let reference = self.names.remote_reference_of(&reference)?;
                Some(match self.monitors.remove(reference) {
                    Some(_) => Step::Event(Event::Demonitored { monitor: MonitorId(reference) }),
                    // Its end has crossed with this.
                    None => Step::Nothing,
                })
            }
            _ => None,
        }
    }

    /// One of theirs and one of ours.
    fn pair(&self, from: &Pid<'_>, to: &Pid<'_>) -> Option<Pair> {
        Some((self.names.local_of(to)?, self.names.remote_of(from)?))
    }

    /// If it is an answer to a call.
    fn answered<'a>(&mut self, message: Term<'a>) -> Option<Step<'a>> {
        let (number, reply) = self.read_reply(message)?;
        let ended = number.and_then(|number| Some((number, self.end_call(number)?)));
        Some(match ended {
            Some((number, local)) => Step::Event(Event::Replied { call: CallId(number), local, reply }),
            // It comes too late.
            None => Step::Nothing,
        })
    }

    /// Answers a ping, if it is one: `{is_auth, Node}`.
    fn ping(&mut self, message: Term<'_>) -> bool {
        let Body::Call { to, request } = self.body(message) else { return false };
        let mut reader = request.reader();
        let is_one = reader.tuple_of(2).is_ok() && reader.atom().is_ok_and(|word| word.is("is_auth"));
        is_one && self.answer_reply(&to, &Word("yes")).is_ok()
    }

    fn linked<'a>(&mut self, from: &Pid<'a>, to: &Pid<'a>) -> Option<Step<'a>> {
        let remote = self.names.remote_of(from)?;
        let refused = match self.names.local_of(to) {
            None => "noproc",
            Some(local) => match self.links.get((local, remote)) {
                Some(Link { is_active: false, ended: Some(_) }) => {
                    // It has crossed with the end of the link before, which ends this one there, too.
                    return Some(Step::Nothing);
                }
                Some(_) => return Some(Step::Nothing),
                None => match self.links.insert((local, remote), Link { is_active: true, ended: None }) {
                    Ok(()) => return Some(Step::Event(Event::Linked { from: remote, to: local })),
                    Err(_) => {
                        self.statistics.refused += 1;
                        "system_limit"
                    }
                },
            },
        };
        // There is room for it. Without memory nothing more can be done.
        let _ = self.wire.answer((Control::Exit { from: *to, to: *from }, Some(&Word(refused))));
        Some(Step::Nothing)
    }

    fn monitored<'a>(
        &mut self,
        from: &Pid<'a>,
        target: Target<'a>,
        reference: &Reference<'a>,
    ) -> Option<Step<'a>> {
        let own = self.names.remote_reference_of(reference)?;
        let remote = self.names.remote_of(from)?;
        if self.monitors.get(own).is_some() || matches!(target, Target::Name(name) if name.is(PINGED)) {
            return Some(Step::Nothing);
        }
        let refused = match self.watched(target) {
            Ok((watched, destination)) => match self.keep(own, remote, watched) {
                true => {
                    let event =
                        Event::Monitored { monitor: MonitorId(own), from: remote, target: destination };
                    return Some(Step::Event(event));
                }
                false => "system_limit",
            },
            Err(word) => word,
        };
        let down = Control::Down { from: target, to: *from, reference: *reference };
        // There is room for it. Without memory nothing more can be done.
        let _ = self.wire.answer((down, Some(&Word(refused))));
        Some(Step::Nothing)
    }

    /// Who is to be watched, or why that cannot be.
    fn watched<'a>(&self, target: Target<'a>) -> Result<(Watched, Destination<'a>), &'static str> {
        match target {
            Target::Pid(pid) => {
                let local = self.names.local_of(&pid).ok_or("noproc")?;
                Ok((Watched::Pid(local), Destination::Pid(local)))
            }
            Target::Name(name) => Ok((Watched::Name(Self::kept(name)?, None), Destination::Name(name))),
        }
    }

    fn kept(name: Atom<'_>) -> Result<crate::term::AtomBuf, &'static str> {
        name.to_buf().map_err(|_| "system_limit")
    }

    fn keep(&mut self, own: super::RemoteRef, from: RemotePid, target: Watched) -> bool {
        let is_kept = self.monitors.insert(own, Monitor { from, target }).is_ok();
        self.statistics.refused += u64::from(!is_kept);
        is_kept
    }
}
