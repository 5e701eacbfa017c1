//! What a line makes of what it hears.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::string::ToString;
use alloc::sync::Arc;
use core::future::Future;
use core::pin::Pin;

use futures_util::stream::FuturesUnordered;
use magpie::actor::AskError;
use magpie::channel::ProcessAddr;
use magpie::sched::{self, JoinError};
use magpie::watch::{Ended, Exit};
use magpie_dist::connection::{Body, Destination, Event, LocalPid, MonitorId, Peer, ReplyTo};
use magpie_dist::term::{Atom, DecodeError, Pid, Term, TermBuf};

use super::duty::{Duty, Waiting};
use crate::exports::{Answering, Failed, List, NotTaken, Unanswered};
use crate::reason::{Reason, Refusal};
use crate::shared::Shared;

/// Something to say, once somebody else has done something.
pub type Later = Pin<Box<dyn Future<Output = Duty> + Send>>;

/// What is done about an event.
#[derive(PartialEq, Eq)]
pub enum Heard {
    Done,
    /// The mailbox is full: the same again, later.
    Again,
    /// The other side gives its name: it is to be asked whether it may come in.
    Named,
    /// It is up.
    Up,
}

/// What a line keeps of what it has heard.
pub struct Hearing {
    // As in `Line`.
    pub waiting: Waiting,
    pub shared: Arc<Shared>,
    /// What is to be said first, in this order.
    pub duties: VecDeque<Duty>,
    pub later: FuturesUnordered<Later>,
    /// Whose ends are told here, by the numbers of the watches.
    watched: BTreeMap<u64, LocalPid>,
    ends: ProcessAddr<Ended>,
}

impl Hearing {
    pub fn new(shared: Arc<Shared>, ends: ProcessAddr<Ended>) -> Self {
        Self {
            shared,
            duties: VecDeque::new(),
            later: FuturesUnordered::new(),
            waiting: Waiting::default(),
            watched: BTreeMap::new(),
            ends,
        }
    }

    /// How many answers there are, and other duties, to be said now or later.
    pub fn owed(&self) -> usize {
        self.duties.len() + self.later.len()
    }

    /// One event. What somebody would have to answer is refused, if it `refuses`.
    pub fn hear(&mut self, event: Event<'_>, peer: &mut Peer, refuses: bool) -> Heard {
        match event {
            Event::Named { .. } => return Heard::Named,
            Event::Up => return Heard::Up,
            Event::Message { to, message, .. } => return self.message(&to, message, peer, refuses),
            Event::Monitored { monitor, target, .. } => {
                let duty = match self.watch(&target) {
                    Ok(pid) => match target {
                        Destination::Name(_) => Duty::Resolve(monitor, pid),
                        Destination::Pid(_) => Duty::Nothing,
                    },
                    Err(reason) => Duty::Down(monitor, reason),
                };
                self.duties.push_back(duty);
            }
            Event::Linked { to, .. } => {
                if let Err(reason) = self.watch(&Destination::Pid(to)) {
                    self.duties.push_back(Duty::Exited(to, reason));
                }
            }
            // With a link to one that ends as it wanted, nothing happens.
            Event::Exit { reason, .. } if reason.reader().atom().is_ok_and(|atom| atom.is("normal")) => {}
            Event::Exit { to, .. } => self.end(to),
            Event::ExitAsked { to, .. } => self.end(to),
            Event::Down { watch, reason, .. } => {
                if let Ok(reason) = reason.to_buf() {
                    self.waiting.down(watch, reason);
                }
            }
            Event::Replied { call, reply, .. } => {
                let answer = reply.to_buf().map(Some).map_err(|_| crate::Error::OutOfMemory);
                self.waiting.answer(call, answer);
            }
            Event::CallFailed { call, reason, .. } => {
                let answer = match reason.to_buf() {
                    Ok(reason) => crate::Error::Ended(reason),
                    Err(_) => crate::Error::OutOfMemory,
                };
                self.waiting.answer(call, Err(answer));
            }
            Event::Rpc { call, .. } if refuses => {
                self.shared.counted.refused_calls.add();
                self.duties.extend(call.map(|call| Duty::Raised(call, Reason::Busy)));
            }
            Event::Rpc { call, module, function, arguments } => {
                self.call(call, &module, &function, arguments)
            }
            // The kernel's own watches need not be undone: one for each actor and connection.
            Event::Demonitored { .. } | Event::Unlinked { .. } => {}
            _ => {}
        }
        Heard::Done
    }

    /// One who is watched has ended.
    pub fn ended(&mut self, ended: Ended) {
        if let Some(pid) = self.watched.remove(&ended.watch().number()) {
            self.duties.push_back(Duty::Exited(pid, Reason::Exit(ended.exit())));
        }
    }

    fn message(&mut self, to: &Destination<'_>, message: Term<'_>, peer: &mut Peer, refuses: bool) -> Heard {
        let Some((actor, pid)) = self.shared.exports.find(to) else {
            self.shared.counted.unreachable.add();
            return Heard::Done;
        };
        let (serial, limit) = (pid.serial(), self.shared.limits.frame);
        let (reply_to, taken) = match peer.body(message) {
            Body::Call { to, .. } if refuses => {
                self.shared.counted.refused_calls.add();
                let text = "too many calls wait for their answers".to_string();
                self.duties.push_back(Duty::Refuse(to, Refusal { tag: "busy", text }));
                return Heard::Done;
            }
            Body::Call { to, request } => (Some(to), actor.ask(serial, request, limit)),
            Body::Cast(message) | Body::Other(message) => (None, actor.ask(serial, message, limit)),
        };
        match (taken, reply_to) {
            (Ok(answering), Some(to)) => self.later.push(Box::pin(answer(to, answering))),
            // Whoever has sent it without asking wants no answer.
            (Ok(_), None) => {}
            (Err(NotTaken::Full), _) => return Heard::Again,
            (Err(NotTaken::Nobody), _) => self.shared.counted.unreachable.add(),
            (Err(NotTaken::Shape(error)), to) => {
                self.shared.counted.misshapen.add();
                if let Some(to) = to {
                    self.duties.push_back(Duty::Refuse(to, refusal(&error)));
                }
            }
        }
        self.shared.counted.received.add();
        Heard::Done
    }

    /// Watches an exported actor, once for each incarnation.
    fn watch(&mut self, target: &Destination<'_>) -> Result<LocalPid, Reason> {
        let (actor, pid) = self.shared.exports.find(target).ok_or(Reason::Nobody)?;
        if self.watched.values().any(|watched| *watched == pid) {
            return Ok(pid);
        }
        let watch =
            actor.watch(pid.serial(), &self.ends).ok_or(Reason::Nobody)?.map_err(|_| Reason::NoMemory)?;
        self.watched.insert(watch.id().number(), pid);
        Ok(pid)
    }

    pub fn end(&self, pid: LocalPid) {
        if let Some((actor, _)) = self.shared.exports.find(&Destination::Pid(pid)) {
            actor.end(pid.serial());
        }
    }

    fn call(&mut self, rpc: Option<MonitorId>, module: &Atom<'_>, name: &Atom<'_>, arguments: Term<'_>) {
        let arguments = List::of(&arguments);
        if module.is("erlang") && name.is("whereis") {
            let found = arguments.and_then(|list| self.whereis(&list));
            self.duties
                .extend(rpc.map(|rpc| found.map_or(Duty::Undefined(rpc), |pid| Duty::Returned(rpc, pid))));
            return;
        }
        let function = arguments
            .as_ref()
            .and_then(|list| self.shared.exports.function(module, name, list.count).cloned());
        let (Some(function), Some(arguments)) = (function, arguments) else {
            if let Some(rpc) = rpc {
                self.duties.push_back(Duty::Undefined(rpc));
            }
            return;
        };
        let limit = self.shared.limits.frame;
        // In a process of its own: it may last, or crash.
        let started = sched::spawn(async move { function.call(&arguments, limit) });
        match (started, rpc) {
            // Nobody waits for it; but it counts, so that nobody starts any number of them.
            (Ok(running), None) => self.later.push(Box::pin(async move {
                let _ = running.await;
                Duty::Nothing
            })),
            (Ok(running), Some(rpc)) => self.later.push(Box::pin(async move {
                match running.await {
                    Ok(Ok(result)) => Duty::Returned(rpc, result),
                    Ok(Err(Failed::Arguments(_))) => Duty::Undefined(rpc),
                    Ok(Err(Failed::Result(_))) => Duty::Raised(rpc, Reason::NoMemory),
                    Err(JoinError::Crashed) => Duty::Raised(rpc, Reason::Crashed),
                    Err(_) => Duty::Raised(rpc, Reason::Exit(Exit::Killed)),
                }
            })),
            (Err(_), Some(rpc)) => self.duties.push_back(Duty::Raised(rpc, Reason::NoMemory)),
            (Err(_), None) => {}
        }
    }
}

impl Hearing {
    /// The pid of an exported actor, or `undefined`: as Erlang's own function of this name.
    fn whereis(&self, arguments: &List) -> Option<TermBuf> {
        let name = arguments.only()?;
        let found = self.shared.exports.find(&Destination::Name(name.as_atom()));
        let identity = &self.shared.identity;
        let node = Atom::new(identity.name()).ok()?;
        let creation = identity.creation();
        let pid = found.map(|(_, pid)| Pid { node, id: pid.id(), serial: pid.serial(), creation });
        TermBuf::of(&pid, self.shared.limits.frame).ok()
    }
}

/// What a caller is told.
async fn answer(to: ReplyTo, answering: Answering) -> Duty {
    match answering.await {
        Ok(answer) => Duty::Reply(to, answer),
        // The caller monitors the actor, and hears of that.
        Err(Unanswered::Ask(AskError::Crashed | AskError::Ended)) => Duty::Nothing,
        Err(Unanswered::Ask(error)) => {
            Duty::Refuse(to, Refusal { tag: "unanswered", text: error.to_string() })
        }
        Err(Unanswered::Encode(error)) => {
            Duty::Refuse(to, Refusal { tag: "unanswered", text: error.to_string() })
        }
    }
}

fn refusal(error: &DecodeError) -> Refusal {
    Refusal { tag: "badarg", text: error.to_string() }
}
