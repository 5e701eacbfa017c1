//! The loop: what has come by message, then what smoltcp has to send, then whoever waits for what that has changed.

use alloc::vec::Vec;
use core::future::{Future, poll_fn};
use core::pin::pin;
use core::task::Poll;
use core::time::Duration;

use magpie::channel::{ProcessAddr, ProcessMailbox, Request};
use magpie::mem::OutOfMemory;
use magpie::watch::Ended;
use magpie::{sched, time};
use smoltcp::iface::{Interface, PollResult, SocketHandle, SocketSet};
use smoltcp::time::Instant;
use smoltcp::wire::{EthernetAddress, HardwareAddress};

use super::acknowledging::Acknowledging;
use super::addresses::{self, Asker, Lookup};
use super::port::Port;
use super::slots::{Kind, Slots};
use super::tcp::RESTING;
use crate::command::{Answer, Command, Desk, Outcome, Statistics};
use crate::config::Config;
use crate::error::Error;
use crate::frame::Frame;
use crate::link::Feed;

/// So many messages are taken before smoltcp has its turn: what they fill is sent together.
const AT_ONCE: usize = 32;
/// How often it is looked whether somebody has dropped a handle and could not say so.
const LOOK: Duration = Duration::from_secs(1);

/// What the network's process has.
pub struct Stack {
    pub(super) config: Config,
    pub(super) interface: Interface,
    pub(super) sockets: SocketSet<'static>,
    pub(super) port: Port,
    pub(super) slots: Slots,
    pub(super) statistics: Statistics,
    pub(super) names: SocketHandle,
    pub(super) dhcp: Option<SocketHandle>,
    pub(super) lookups: Vec<Lookup>,
    pub(super) wants_address: Vec<Asker>,
    /// Counts connections as they are established.
    pub(super) established: u64,
    /// The last port that was used for a connection from here.
    pub(super) last_port: u16,
    /// Sockets that are closed, and removed once that was said.
    pub(super) closing: Vec<SocketHandle>,
    begin: time::Instant,
    commands: ProcessMailbox<Request<Command, Answer>>,
    feed: ProcessMailbox<Feed>,
    /// Kept, so that the mailbox always has an address.
    _feed_address: ProcessAddr<Feed>,
    ends: ProcessMailbox<Ended>,
    pub(super) ends_address: ProcessAddr<Ended>,
}

/// What has come.
enum Come {
    Command(Request<Command, Answer>),
    Feed(Feed),
    Ended(Ended),
    /// Nobody can ask any more.
    Nobody,
}

impl Stack {
    /// As yet without a link.
    ///
    /// # Errors
    /// Without memory, or with an address that cannot be.
    pub fn new(config: Config) -> Result<(Self, Desk, ProcessAddr<Feed>), Error> {
        let mut storage = Vec::new();
        let most = config.sockets.checked_add(2).ok_or(OutOfMemory)?;
        // Room for all, and filled from the front as they come: smoltcp looks at each place that was ever used, for each frame.
        storage.try_reserve_exact(most).map_err(|_| OutOfMemory)?;
        let mut sockets = SocketSet::new(storage);
        let mut port = Port::new(Frame::new()?, Acknowledging::new(config.sockets)?);
        // A locally administered address, until a card says its own.
        let mac = HardwareAddress::Ethernet(EthernetAddress([2, 0, 0, 0, 0, 0]));
        let mut settings = smoltcp::iface::Config::new(mac);
        settings.random_seed = config.seed;
        let mut interface = Interface::new(settings, &mut port, Instant::ZERO);
        let (names, dhcp) = addresses::begin(&config, &mut interface, &mut sockets)?;
        let slots = Slots::new(config.sockets)?;
        let (commands, feed, ends) = (
            ProcessMailbox::new(usize::MAX)?,
            ProcessMailbox::new(usize::MAX)?,
            ProcessMailbox::new(usize::MAX)?,
        );
        let (desk, feed_address, ends_address) = (commands.address(), feed.address(), ends.address());
        let mut closing = Vec::new();
        closing.try_reserve_exact(most).map_err(|_| OutOfMemory)?;
        // The range of dynamic ports begins at 49152.
        let last_port = 0xc000 | (config.seed >> 7) as u16;
        let stack = Self {
            config,
            interface,
            sockets,
            port,
            slots,
            statistics: Statistics::default(),
            names,
            dhcp,
            lookups: Vec::new(),
            wants_address: Vec::new(),
            established: 0,
            last_port,
            closing,
            begin: time::Instant::now(),
            commands,
            feed,
            _feed_address: feed_address.clone(),
            ends,
            ends_address,
        };
        Ok((stack, desk, feed_address))
    }

    pub(super) fn now(&self) -> Instant {
        Instant::from_micros(i64::try_from(self.begin.elapsed().as_micros()).unwrap_or(i64::MAX))
    }

    /// Runs until nobody can ask any more: all handles are gone, and those of all sockets.
    pub async fn run(mut self) {
        // Whoever looks into the mailboxes owns them: its crash is told to who waits for an answer.
        while let Some(come) = self.more() {
            self.take(come);
        }
        self.serve();
        loop {
            let first = match self.due() {
                Some((wait, true)) => time::timeout(wait, self.come()).await.ok(),
                Some((wait, false)) => time::background_timeout(wait, self.come()).await.ok(),
                None => Some(self.come().await),
            };
            let waited = first.is_none();
            let mut next = first;
            for _ in 0..AT_ONCE {
                match next {
                    Some(Come::Nobody) => return,
                    Some(come) => self.take(come),
                    None => break,
                }
                next = self.more();
            }
            if let Some(last) = next {
                match last {
                    Come::Nobody => return,
                    come => self.take(come),
                }
            }
            if waited {
                self.look();
            }
            self.serve();
            if sched::is_exhausted() {
                sched::yield_now().await;
            }
        }
    }

    /// Waits for a message.
    async fn come(&mut self) -> Come {
        let mut commands = pin!(self.commands.receive());
        let mut feed = pin!(self.feed.receive());
        let mut ends = pin!(self.ends.receive());
        poll_fn(|context| {
            if let Poll::Ready(Some(feed)) = feed.as_mut().poll(context) {
                return Poll::Ready(Come::Feed(feed));
            }
            if let Poll::Ready(command) = commands.as_mut().poll(context) {
                return Poll::Ready(command.map_or(Come::Nobody, Come::Command));
            }
            if let Poll::Ready(Some(ended)) = ends.as_mut().poll(context) {
                return Poll::Ready(Come::Ended(ended));
            }
            Poll::Pending
        })
        .await
    }

    /// A message that waits already.
    fn more(&mut self) -> Option<Come> {
        if let Some(feed) = self.feed.try_receive() {
            return Some(Come::Feed(feed));
        }
        if let Some(command) = self.commands.try_receive() {
            return Some(Come::Command(command));
        }
        self.ends.try_receive().map(Come::Ended)
    }

    fn take(&mut self, come: Come) {
        // As dear as a few messages.
        sched::charge(8);
        match come {
            Come::Feed(Feed::Attach { link, to, mac, frames, kept }) => {
                self.port.attach(link, to, frames, kept);
                let address = HardwareAddress::Ethernet(EthernetAddress(mac));
                // The same card, whose driver was started anew, is in the same network: connections go on.
                if self.interface.hardware_addr() != address {
                    if EthernetAddress(mac).is_unicast() {
                        self.interface.set_hardware_addr(address);
                    }
                    self.link_has_changed();
                }
            }
            Come::Feed(Feed::Received { link, frame }) => {
                if link == self.port.number() {
                    self.received(frame);
                }
            }
            Come::Feed(Feed::Sent { link, frame }) => {
                if link == self.port.number() {
                    self.port.take_back(frame);
                }
            }
            Come::Command(Request { message, reply }) => self.command(message, reply),
            Come::Ended(ended) => self.owner_ended(&ended),
            Come::Nobody => {}
        }
    }

    fn received(&mut self, frame: Frame) {
        self.statistics.received += 1;
        if !self.admits(frame.bytes()) {
            self.port.give_back(frame);
            return;
        }
        self.port.put(frame);
        let now = self.now();
        self.interface.poll_ingress_single(now, &mut self.port, &mut self.sockets);
        self.port.give_back_read();
    }

    fn command(&mut self, command: Command, reply: magpie::channel::Reply<Answer>) {
        match command {
            Command::Connect { remote, buffers, tokens, by } => {
                self.connect(remote, buffers, tokens, by, reply);
            }
            Command::Listen { port, buffers, token, by } => self.listen(port, buffers, token, by, reply),
            Command::Accept { id, buffers, tokens, by } => self.accept(id, buffers, tokens, by, reply),
            Command::Read { id, buffer } => self.read(id, buffer, reply),
            Command::Write { id, data } => self.write(id, data, reply),
            Command::Shutdown { id, waits } => self.shutdown(id, waits, reply),
            Command::Abort { id } => {
                self.abort(id);
                answer(reply, Ok(Outcome::Done));
            }
            Command::Bind { port, receive, send, token, by } => {
                self.bind(port, receive, send, token, by, reply);
            }
            Command::SendTo { id, to, data } => self.send_to(id, to, data, reply),
            Command::ReceiveFrom { id, buffer } => self.receive_from(id, buffer, reply),
            Command::Held { id, half, by } => {
                let held = self.slots.hold(id, half, by, &self.ends_address);
                answer(reply, held.map(|()| Outcome::Done).map_err(Error::from));
            }
            // At once: who asks next finds the place free.
            Command::Look => self.look(),
            Command::Resolve { name, by } => self.resolve(&name, Asker { reply, by }),
            Command::Address { by } => self.say_address(Asker { reply, by }),
            Command::Statistics => {
                let outward = self.port.outward();
                let statistics = Statistics {
                    sent: outward.sent,
                    dropped_answers: outward.dropped_answers,
                    sockets: self.sockets.iter().count() - 1 - usize::from(self.dhcp.is_some()),
                    ..self.statistics
                };
                answer(reply, Ok(Outcome::Statistics(statistics)));
            }
        }
    }

    /// Lets smoltcp send, and answers whoever waits for what has changed.
    fn serve(&mut self) {
        loop {
            self.tend();
            let now = self.now();
            // One frame for each socket. What is sent was counted when the link was attached, so this comes to an end.
            let result = self.interface.poll_egress(now, &mut self.port, &mut self.sockets);
            if result == PollResult::None || !self.port.has_room() {
                break;
            }
            sched::charge(4);
        }
        self.tend();
        while self.ends_resting(RESTING) {}
        self.remove_closed();
    }

    /// Whoever waits, socket by socket.
    fn tend(&mut self) {
        for place in 0..self.slots.end() {
            let Some(id) = self.slots.id_at(place) else { continue };
            match self.slots.at(place).map(|slot| &slot.kind) {
                Some(Kind::Tcp(_)) => self.tend_tcp(id),
                Some(Kind::Listener(_)) => self.tend_listener(id),
                Some(Kind::Udp(_)) => self.tend_udp(id),
                None => {}
            }
        }
        self.tend_addresses();
    }

    /// When there is something to do though nothing comes, and whether somebody waits for that.
    fn due(&mut self) -> Option<(Duration, bool)> {
        let now = self.now();
        let mut due = None;
        if self.port.has_room() {
            due = self.interface.poll_at(now, &self.sockets);
        }
        if let Some(until) = self.own_deadline() {
            due = Some(due.map_or(until, |due: Instant| due.min(until)));
        }
        if !self.port.give_back_kept() {
            due = Some(now);
        }
        let look = self.slots.iter().next().map(|_| (LOOK, false));
        let Some(due) = due else { return look };
        // What is due at once was just refused: it is tried again a little later.
        let soonest = Duration::from_millis(1);
        let wait = if due <= now { soonest } else { Duration::from(due - now).max(soonest) };
        // Somebody waits for what is due later, too.
        Some((look.map_or(wait, |(look, _)| look.min(wait)), true))
    }

    /// Sockets that were closed and have said so.
    fn remove_closed(&mut self) {
        // Without a link nobody can be told.
        if self.port.outward().is_up() && !self.port.has_room() {
            return;
        }
        while let Some(handle) = self.closing.pop() {
            drop(self.sockets.remove(handle));
        }
    }
}

/// Answers. Who has given up waiting needs nothing.
pub fn answer(reply: magpie::channel::Reply<Answer>, answer: Answer) {
    let _ = reply.send(answer);
}
