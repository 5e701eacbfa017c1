//! The node's own process: knows which connections there are, makes new ones, and decides which of two stays when both sides begin at once.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::future::{Future, pending, poll_fn};
use core::mem;
use core::net::SocketAddrV4;
use core::pin::pin;
use core::task::Poll;
use core::time::Duration;

use magpie::channel::{ProcessAddr, ProcessMailbox, Request};
use magpie::mem::Counted;
use magpie::message::SendError;
use magpie::sched::{self, ProcessRef};
use magpie::time::{self, Instant};
use magpie::watch::Ended;
use magpie_dist::connection::{Admission, Closed, Connection};
use magpie_net::{TcpListener, TcpStream};

use crate::epmd;
use crate::error::Error;
use crate::line::{self, End, MOST_ORDERS, Order, Ordered, now};
use crate::lines::{Entry, Lines, State, Waiting, copy};
use crate::shared::Shared;
use crate::watched::{Book, Watched};

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
    /// Somebody there is monitored from now on. Answered with the line, if there is one.
    Watch { peer: Counted<String>, watched: Counted<Watched> },
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
/// So long it waits until it tries again what there was no memory or no place for.
const AGAIN_AFTER: Duration = Duration::from_millis(10);
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

pub struct Desk {
    shared: Arc<Shared>,
    wishes: ProcessMailbox<Asked>,
    ends: ProcessMailbox<Ended>,
    lines: Lines,
    /// The lines' processes, with those whose peer is not known yet. There is room for as many as there may be connections.
    processes: Vec<Process>,
    next: u64,
    /// Of lines that have ended, while there is no memory to tell all who monitor somebody there.
    untold: Vec<Book>,
}

struct Process {
    /// Of its watch.
    watch: u64,
    /// Of its line.
    number: u64,
    process: ProcessRef,
}

impl Desk {
    pub fn new(shared: Arc<Shared>) -> Result<(Self, DeskAddr), Error> {
        let wishes = ProcessMailbox::new(MOST_WISHES)?;
        let address = DeskAddr(wishes.address());
        let lines = Lines::new(shared.connections)?;
        let mut processes = Vec::new();
        processes.try_reserve_exact(shared.connections).map_err(|_| Error::OutOfMemory)?;
        let mut untold = Vec::new();
        untold.try_reserve_exact(shared.connections).map_err(|_| Error::OutOfMemory)?;
        Ok((
            Self { shared, wishes, ends: ProcessMailbox::new(1)?, lines, processes, next: 0, untold },
            address,
        ))
    }

    /// Serves, until the network ends.
    pub async fn run(mut self, mut listener: TcpListener, mut names: TcpListener) {
        let alive: Arc<Shared> = self.shared.clone();
        // Until when nothing is tried that there was no memory or no place for.
        let mut pause: Option<Instant> = None;
        loop {
            let (until, accepts) = (pause, pause.is_none());
            let mut again = pin!(async move {
                match until {
                    Some(moment) => time::sleep_until(moment).await,
                    None => pending().await,
                }
            });
            let step = poll_fn(|context| {
                if let Poll::Ready(Some(ended)) = pin!(self.ends.receive()).poll(context) {
                    return Poll::Ready(Step::Ended(ended));
                }
                if let Poll::Ready(asked) = pin!(self.wishes.receive()).poll(context) {
                    return Poll::Ready(asked.map_or(Step::Over, Step::Asked));
                }
                if again.as_mut().poll(context).is_ready() {
                    return Poll::Ready(Step::Again);
                }
                if !accepts {
                    return Poll::Pending;
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
                    if error == magpie_net::Error::Stopped {
                        return;
                    }
                    // Memory, or the network's places, are used up: others give some back, perhaps.
                    pause = Some(Instant::now() + AGAIN_AFTER);
                }
                Step::Again => {
                    pause = None;
                    self.tell_untold();
                }
            }
            if pause.is_none() && !self.untold.is_empty() {
                pause = Some(Instant::now() + AGAIN_AFTER);
            }
        }
    }

    fn accepted(&mut self, stream: TcpStream) {
        if !self.has_room() {
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
            // Who calls this has seen that there is room.
            Ok(watch) => {
                self.processes.push(Process { watch: watch.id().number(), number, process: process.clone() });
            }
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
                    self.lose(number, &error);
                }
                Ok(Answer::Done)
            }
            Wish::Gone { peer, number } => {
                // Who waits until it is made hears why of whoever made it.
                let is_up = |entry: &Entry| matches!(entry.state, State::Up(_));
                if self.lines.get(&peer).is_some_and(|entry| entry.number == number && is_up(entry)) {
                    self.lose(number, &Error::Disconnected);
                }
                Ok(Answer::Done)
            }
            Wish::Watch { peer, watched } => match self.lines.get(&peer) {
                Some(entry) => entry.note(watched).map(Answer::Line),
                None => Err(Error::Disconnected),
            },
            Wish::Peers => self.lines.up().map(Answer::Peers),
        };
        // Whoever has gone wants no answer.
        let _ = reply.send(answer);
    }

    fn line(&mut self, peer: String, reply: Waiting) {
        if let Some(entry) = self.lines.get(&peer) {
            return entry.ask(reply);
        }
        if !self.has_room() {
            _ = reply.send(Err(Error::Busy));
            return;
        }
        if let Err((error, reply)) = self.begin(peer, reply) {
            _ = reply.send(Err(error));
        }
    }

    /// Whether there may be one connection more.
    fn has_room(&self) -> bool {
        self.processes.len() < self.shared.connections && self.lines.has_room()
    }

    /// Makes a connection. `reply` is answered when it is there.
    fn begin(&mut self, peer: String, reply: Waiting) -> Result<(), (Error, Waiting)> {
        let mut waiting = Vec::new();
        let name = match copy(&peer).and_then(|name| {
            waiting.try_reserve(1).map_err(|_| Error::OutOfMemory)?;
            Ok(name)
        }) {
            Ok(name) => name,
            Err(error) => return Err((error, reply)),
        };
        let Some((number, desk, node)) = self.number() else { return Err((Error::Stopped, reply)) };
        let shared = self.shared.clone();
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
                waiting.push(reply);
                self.lines.put(Entry {
                    peer,
                    number,
                    process,
                    state: State::Connecting { by_us: true, waiting },
                    book: Book::default(),
                });
                Ok(())
            }
            Err(error) => Err((error, reply)),
        }
    }

    /// The process of that line, unless it has ended since.
    fn process(&self, number: u64) -> Option<ProcessRef> {
        self.processes.iter().find(|own| own.number == number).map(|own| own.process.clone())
    }

    /// Whether one that has come in may be the line to that node.
    fn admit(&mut self, peer: String, number: u64) -> Admission {
        let Some(process) = self.process(number) else { return Admission::NotAllowed };
        let Some(entry) = self.lines.get(&peer) else {
            if !self.lines.has_room() {
                return Admission::NotAllowed;
            }
            let state = State::Connecting { by_us: false, waiting: Vec::new() };
            self.lines.put(Entry { peer, number, process, state, book: Book::default() });
            return Admission::Accepted;
        };
        match &mut entry.state {
            // The other side says whether it has lost that one.
            State::Up(_) => Admission::Alive,
            // Both have begun: that of the greater name stays.
            State::Connecting { by_us: true, .. } if peer.as_str() <= self.shared.name.as_str() => {
                Admission::Refused
            }
            State::Connecting { by_us, .. } => {
                let admission = if *by_us { Admission::Simultaneous } else { Admission::Accepted };
                *by_us = false;
                entry.process.kill();
                (entry.number, entry.process) = (number, process);
                admission
            }
        }
    }

    fn up(&mut self, peer: String, number: u64, orders: Orders) {
        let Some(process) = self.process(number) else { return };
        let state = State::Up(orders.clone());
        let book = Book::default();
        let Some(entry) = self.lines.get(&peer) else {
            if self.lines.has_room() {
                return self.lines.put(Entry { peer, number, process, state, book });
            }
            // It carries nothing that anybody here has begun.
            return process.kill();
        };
        let before = mem::replace(entry, Entry { peer, number, process, state, book });
        self.tell(before.book);
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
        let watch = ended.watch().number();
        let Some(place) = self.processes.iter().position(|own| own.watch == watch) else { return };
        let Process { number, .. } = self.processes.swap_remove(place);
        self.lose(number, &Error::Disconnected);
    }

    /// That line has ended, or is not made: tells who waits for it, and who monitors somebody there.
    fn lose(&mut self, number: u64, error: &Error) {
        let Some(Entry { state, book, .. }) = self.lines.remove(number) else { return };
        self.tell(book);
        if let State::Connecting { waiting, .. } = state {
            for reply in waiting {
                let _ = reply.send(Err(error.clone()));
            }
        }
    }

    /// Tells who monitors somebody at the end of a line that has gone; later, if there is no memory now.
    fn tell(&mut self, mut book: Book) {
        book.tell();
        if !book.is_empty() && self.untold.len() < self.untold.capacity() {
            self.untold.push(book);
        }
    }

    fn tell_untold(&mut self) {
        self.untold.retain_mut(|book| {
            book.tell();
            !book.is_empty()
        });
    }
}

enum Step {
    /// The pause is over.
    Again,
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
