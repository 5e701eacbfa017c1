//! The node's own process: knows which connections there are, makes new ones, and decides which of two stays when both sides begin at once.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::cmp::Ordering;
use core::future::{Future, poll_fn};
use core::net::SocketAddrV4;
use core::pin::pin;
use core::task::Poll;
use core::time::Duration;

use magpie::channel::{ProcessAddr, ProcessMailbox, Reply, Request};
use magpie::message::SendError;
use magpie::sched::{self, ProcessRef};
use magpie::time;
use magpie::watch::Ended;
use magpie_dist::connection::{Admission, Closed, Connection};
use magpie_net::{TcpListener, TcpStream};

use crate::epmd;
use crate::error::Error;
use crate::line::{self, End, MOST_ORDERS, Order, Ordered, now};
use crate::shared::Shared;

/// Where a line is told what to do.
pub type Orders = ProcessAddr<Request<Order, Ordered>>;

/// What is asked of the desk.
pub enum Wish {
    /// The line to that node; it is made if there is none.
    Line { peer: String },
    /// May that line be the one to `peer`?
    Named { peer: String, number: u64 },
    /// It is.
    Up { peer: String, number: u64, orders: Orders },
    /// It could not be made.
    Failed { peer: String, number: u64, error: Error },
    /// It has ended.
    Gone { peer: String, number: u64 },
    /// Who is connected.
    Peers,
}

/// What it answers.
pub enum Answer {
    Line(Orders),
    Admission(Admission),
    Peers(Vec<String>),
    Done,
}

type Asked = Request<Wish, Result<Answer, Error>>;

/// Where the desk is asked.
#[derive(Clone)]
pub struct DeskAddr(ProcessAddr<Asked>);

/// So long the other side's own connection may take, when both have begun.
const OTHERS_PATIENCE: Duration = Duration::from_secs(5);
/// How many wishes may wait.
const MOST_WISHES: usize = 1024;

impl DeskAddr {
    pub async fn ask(&self, wish: Wish) -> Result<Answer, Error> {
        self.0.ask(wish).await.map_err(|_| Error::Stopped)?
    }

    /// Nobody waits for the answer.
    pub fn tell(&self, wish: Wish) -> Result<(), Error> {
        self.0.try_ask(wish).map(drop).map_err(|error| match error.without_message() {
            SendError::Ended(()) => Error::Stopped,
            SendError::OutOfMemory(()) => Error::OutOfMemory,
            SendError::Full(()) => Error::Busy,
            _ => Error::Busy,
        })
    }

    pub async fn named(self, peer: String, number: u64) -> Admission {
        match self.ask(Wish::Named { peer, number }).await {
            Ok(Answer::Admission(admission)) => admission,
            _ => Admission::NotAllowed,
        }
    }
}

enum State {
    /// Who waits for it.
    Connecting {
        by_us: bool,
        waiting: Vec<Reply<Result<Answer, Error>>>,
    },
    Up(Orders),
}

struct Entry {
    number: u64,
    process: ProcessRef,
    state: State,
}

pub struct Desk {
    shared: Arc<Shared>,
    wishes: ProcessMailbox<Asked>,
    ends: ProcessMailbox<Ended>,
    lines: BTreeMap<String, Entry>,
    /// The lines' processes, by the numbers of their watches, with those whose peer is not known yet.
    processes: BTreeMap<u64, (u64, ProcessRef)>,
    next: u64,
}

impl Desk {
    pub fn new(shared: Arc<Shared>) -> Result<(Self, DeskAddr), Error> {
        let wishes = ProcessMailbox::new(MOST_WISHES)?;
        let address = DeskAddr(wishes.address());
        let (lines, processes) = (BTreeMap::new(), BTreeMap::new());
        Ok((Self { shared, wishes, ends: ProcessMailbox::new(1)?, lines, processes, next: 0 }, address))
    }

    /// Serves, until the network ends.
    pub async fn run(mut self, mut listener: TcpListener, mut names: TcpListener) {
        let alive: Arc<Shared> = self.shared.clone();
        loop {
            let step = poll_fn(|context| {
                if let Poll::Ready(Some(ended)) = pin!(self.ends.receive()).poll(context) {
                    return Poll::Ready(Step::Ended(ended));
                }
                if let Poll::Ready(asked) = pin!(self.wishes.receive()).poll(context) {
                    return Poll::Ready(asked.map_or(Step::Over, Step::Asked));
                }
                if let Poll::Ready(accepted) = pin!(listener.accept()).poll(context) {
                    return Poll::Ready(Step::Accepted(accepted));
                }
                if let Poll::Ready(accepted) = pin!(names.accept()).poll(context) {
                    return Poll::Ready(Step::Names(accepted));
                }
                Poll::Pending
            });
            match step.await {
                Step::Over => return,
                Step::Ended(ended) => self.ended(ended),
                Step::Asked(asked) => self.asked(asked),
                Step::Accepted(Ok(stream)) => self.accepted(stream),
                // Its process ends after a time limit by itself.
                Step::Names(Ok(stream)) => _ = sched::spawn(epmd::serve(alive.clone(), stream)),
                Step::Accepted(Err(error)) | Step::Names(Err(error)) => {
                    if error != magpie_net::Error::OutOfMemory {
                        return;
                    }
                    // Others give some back, perhaps.
                    time::sleep(Duration::from_millis(10)).await;
                }
            }
        }
    }

    fn accepted(&mut self, stream: TcpStream) {
        if self.processes.len() >= self.shared.connections {
            self.shared.counted.refused.add();
            return;
        }
        let shared = self.shared.clone();
        let made = Connection::accept(shared.identity.clone(), shared.limits, shared.chance(), now());
        let Ok(connection) = made else { return };
        let Some((number, desk, node)) = self.number() else { return };
        let _ = self.start(number, async move {
            let Ok(orders) = ProcessMailbox::new(MOST_ORDERS) else { return };
            line::drive(&shared, desk, &node, number, stream, connection, orders).await;
        });
    }

    fn number(&mut self) -> Option<(u64, DeskAddr, ProcessRef)> {
        self.next += 1;
        Some((self.next, DeskAddr(self.wishes.address()), sched::current_process()?))
    }

    fn start(
        &mut self,
        number: u64,
        line: impl Future<Output = ()> + Send + 'static,
    ) -> Result<ProcessRef, Error> {
        let process = sched::spawn(line).map_err(|_| Error::OutOfMemory)?.process().clone();
        match process.watch(&self.ends.address()) {
            Ok(watch) => _ = self.processes.insert(watch.id().number(), (number, process.clone())),
            Err(_) => {
                process.kill();
                return Err(Error::OutOfMemory);
            }
        }
        Ok(process)
    }

    fn asked(&mut self, asked: Asked) {
        let Request { message: wish, reply } = asked;
        let answer = match wish {
            Wish::Line { peer } => return self.line(peer, reply),
            Wish::Named { peer, number } => Ok(Answer::Admission(self.admit(peer, number))),
            Wish::Up { peer, number, orders } => {
                self.up(peer, number, orders);
                Ok(Answer::Done)
            }
            Wish::Failed { peer, number, error } => {
                if self.lines.get(&peer).is_some_and(|entry| entry.number == number) {
                    self.lose(&peer, &error);
                }
                Ok(Answer::Done)
            }
            Wish::Gone { peer, number } => {
                // Who waits until it is made hears why of whoever made it.
                let is_up = |entry: &Entry| matches!(entry.state, State::Up(_));
                if self.lines.get(&peer).is_some_and(|entry| entry.number == number && is_up(entry)) {
                    self.lines.remove(&peer);
                }
                Ok(Answer::Done)
            }
            Wish::Peers => Ok(Answer::Peers(
                self.lines
                    .iter()
                    .filter(|(_, entry)| matches!(entry.state, State::Up(_)))
                    .map(|(peer, _)| peer.clone())
                    .collect(),
            )),
        };
        // Whoever has gone wants no answer.
        let _ = reply.send(answer);
    }

    fn line(&mut self, peer: String, reply: Reply<Result<Answer, Error>>) {
        if let Some(entry) = self.lines.get_mut(&peer) {
            match &mut entry.state {
                State::Up(orders) => _ = reply.send(Ok(Answer::Line(orders.clone()))),
                State::Connecting { waiting, .. } => waiting.push(reply),
            }
            return;
        }
        if self.processes.len() >= self.shared.connections {
            _ = reply.send(Err(Error::Busy));
            return;
        }
        let Some((number, desk, node)) = self.number() else { return };
        let (shared, name) = (self.shared.clone(), peer.clone());
        let started = self.start(number, async move {
            if let Err(error) = connect(&shared, &desk, &node, number, &name).await {
                if error == Error::Closed(Closed::Refused) {
                    // The other side's own is under way: if that comes in it takes this one's place, and this process ends.
                    time::sleep(OTHERS_PATIENCE).await;
                }
                let _ = desk.ask(Wish::Failed { peer: name, number, error }).await;
            }
        });
        match started {
            Ok(process) => {
                let state = State::Connecting { by_us: true, waiting: alloc::vec![reply] };
                self.lines.insert(peer, Entry { number, process, state });
            }
            Err(error) => _ = reply.send(Err(error)),
        }
    }

    /// Whether one that has come in may be the line to that node.
    fn admit(&mut self, peer: String, number: u64) -> Admission {
        let process =
            self.processes.values().find(|(own, _)| *own == number).map(|(_, process)| process.clone());
        let Some(process) = process else { return Admission::NotAllowed };
        let Some(entry) = self.lines.get_mut(&peer) else {
            let state = State::Connecting { by_us: false, waiting: Vec::new() };
            self.lines.insert(peer, Entry { number, process, state });
            return Admission::Accepted;
        };
        match &entry.state {
            // The other side says whether it has lost that one.
            State::Up(_) => Admission::Alive,
            // Both have begun: that of the greater name stays.
            State::Connecting { by_us: true, .. }
                if peer.as_str().cmp(&self.shared.name) != Ordering::Greater =>
            {
                Admission::Refused
            }
            State::Connecting { by_us, .. } => {
                let admission = if *by_us { Admission::Simultaneous } else { Admission::Accepted };
                entry.process.kill();
                (entry.number, entry.process) = (number, process);
                if let State::Connecting { by_us, .. } = &mut entry.state {
                    *by_us = false;
                }
                admission
            }
        }
    }

    fn up(&mut self, peer: String, number: u64, orders: Orders) {
        let process =
            self.processes.values().find(|(own, _)| *own == number).map(|(_, process)| process.clone());
        // It may have ended since.
        let Some(process) = process else { return };
        let entry = Entry { number, process, state: State::Up(orders.clone()) };
        let Some(before) = self.lines.insert(peer, entry) else { return };
        match before.state {
            State::Connecting { waiting, .. } => {
                for reply in waiting {
                    let _ = reply.send(Ok(Answer::Line(orders.clone())));
                }
            }
            State::Up(old) if before.number != number => _ = old.try_ask(Order::Close).map(drop),
            State::Up(_) => {}
        }
    }

    fn ended(&mut self, ended: Ended) {
        let Some((number, _)) = self.processes.remove(&ended.watch().number()) else { return };
        let peer = self.lines.iter().find(|(_, entry)| entry.number == number).map(|(peer, _)| peer.clone());
        if let Some(peer) = peer {
            self.lose(&peer, &Error::Disconnected);
        }
    }

    fn lose(&mut self, peer: &str, error: &Error) {
        if let Some(Entry { state: State::Connecting { waiting, .. }, .. }) = self.lines.remove(peer) {
            for reply in waiting {
                let _ = reply.send(Err(error.clone()));
            }
        }
    }
}

enum Step {
    Over,
    Ended(Ended),
    Asked(Asked),
    Accepted(Result<TcpStream, magpie_net::Error>),
    Names(Result<TcpStream, magpie_net::Error>),
}

/// Makes a connection, and carries it.
async fn connect(
    shared: &Arc<Shared>,
    desk: &DeskAddr,
    node: &ProcessRef,
    number: u64,
    peer: &str,
) -> Result<(), Error> {
    let (alive, host) = peer.split_once('@').ok_or(Error::Name)?;
    let address = shared.network.resolve(host).await?;
    let mapper = SocketAddrV4::new(address, shared.mapper_port);
    let port = epmd::find(&shared.network, mapper, alive).await?;
    let stream = shared.network.connect(SocketAddrV4::new(address, port)).await?;
    let made = Connection::connect(shared.identity.clone(), peer, shared.limits, shared.chance(), now());
    let connection = made.map_err(|_| Error::Name)?;
    let orders = ProcessMailbox::new(MOST_ORDERS)?;
    match line::drive(shared, desk.clone(), node, number, stream, connection, orders).await {
        End::Closed(closed) => Err(Error::Closed(closed)),
        End::Network(error) => Err(Error::Network(error)),
        End::Gone | End::Told => Err(Error::Disconnected),
    }
}
