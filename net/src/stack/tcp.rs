//! Connections: opened from here, read, written, and ended.

use alloc::vec::Vec;
use core::net::SocketAddrV4;

use magpie::channel::Reply;
use magpie::sched::ProcessRef;
use magpie::watch::Ended;
use smoltcp::iface::SocketHandle;
use smoltcp::socket::tcp::{RecvError, Socket, SocketBuffer, State};
use smoltcp::time::{Duration, Instant};
use smoltcp::wire::{IpAddress, IpEndpoint};

use super::run::{Stack, answer};
use super::slots::{Kind, Tcp};
use crate::buffers::Buffers;
use crate::command::{Answer, Connection, Half, Id, Outcome, Token};
use crate::error::Error;

/// The first of the ports that connections from here have.
const FIRST_PORT: u16 = 0xc000;

/// So many connections that have ended well, and that nobody holds, may rest with their buffers, lest late frames reach the next one of that number.
pub const RESTING: usize = 16;

impl Stack {
    /// A socket for a connection.
    pub(super) fn add_tcp(&mut self, buffers: Buffers) -> SocketHandle {
        let mut socket = Socket::new(SocketBuffer::new(buffers.receive), SocketBuffer::new(buffers.send));
        // What is written comes in whole pieces, so there is nothing to wait for.
        socket.set_nagle_enabled(false);
        socket.set_timeout(Some(Duration::from(self.config.timeout)));
        socket.set_keep_alive(self.config.keep_alive.map(Duration::from));
        self.sockets.add(socket)
    }

    /// Whether the interface can have so many more sockets, and somebody a place for them. Connections that only rest, and that nobody holds, make room.
    pub(super) fn makes_room(&mut self, sockets: usize) -> bool {
        let most = self.config.sockets + 1 + usize::from(self.dhcp.is_some());
        while self.sockets.iter().count() + sockets > most || !self.slots.has_room() {
            if !self.ends_resting(0) {
                return false;
            }
        }
        true
    }

    /// If more than `most` connections rest in TIME-WAIT, held by nobody, the one that has rested longest is removed.
    pub(super) fn ends_resting(&mut self, most: usize) -> bool {
        let mut count = 0;
        let mut oldest: Option<(Instant, Id, SocketHandle)> = None;
        for place in 0..self.slots.end() {
            let Some(id) = self.slots.id_at(place) else { continue };
            let Some(tcp) = self.slots.tcp(id) else { continue };
            let Some(until) = tcp.until else { continue };
            let handle = tcp.handle;
            if self.sockets.get::<Socket<'_>>(handle).state() == State::TimeWait {
                count += 1;
                if oldest.is_none_or(|(before, ..)| until < before) {
                    oldest = Some((until, id, handle));
                }
            }
        }
        let Some((_, id, handle)) = oldest.filter(|_| count > most) else { return false };
        self.slots.remove(id);
        drop(self.sockets.remove(handle));
        true
    }

    pub(super) fn connect(
        &mut self,
        remote: SocketAddrV4,
        buffers: Buffers,
        (read, write): (Token, Token),
        by: Option<ProcessRef>,
        reply: Reply<Answer>,
    ) {
        if !self.makes_room(1) {
            return answer(reply, Err(Error::TooMany));
        }
        let Some(port) = self.free_port() else { return answer(reply, Err(Error::TooMany)) };
        let handle = self.add_tcp(buffers);
        let socket = self.sockets.get_mut::<Socket<'_>>(handle);
        let there = IpEndpoint::new(IpAddress::Ipv4(*remote.ip()), remote.port());
        if socket.connect(self.interface.context(), there, port).is_err() {
            drop(self.sockets.remove(handle));
            return answer(reply, Err(Error::NoSuchAddress));
        }
        let mut tcp = Tcp::new(handle, remote, (read.clone(), write.clone()));
        tcp.connect = Some((reply, read, write));
        self.add_connection(tcp, by);
    }

    /// A place for it, which there is.
    pub(super) fn add_connection(&mut self, tcp: Tcp, by: Option<ProcessRef>) -> Option<Id> {
        let id = self.slots.add(Kind::Tcp(tcp))?;
        for half in [Half::Read, Half::Write] {
            // Without memory to watch by, only what drops its handles is found.
            let _ = self.slots.hold(id, half, by.clone(), &self.ends_address);
        }
        Some(id)
    }

    /// A port that no connection from here has.
    fn free_port(&mut self) -> Option<u16> {
        for _ in FIRST_PORT..=u16::MAX {
            self.last_port = self.last_port.checked_add(1).unwrap_or(FIRST_PORT);
            let is_taken = self.sockets.iter().any(|(_, socket)| match socket {
                smoltcp::socket::Socket::Tcp(socket) => {
                    socket.local_endpoint().is_some_and(|local| local.port == self.last_port)
                }
                _ => false,
            });
            if !is_taken {
                return Some(self.last_port);
            }
        }
        None
    }

    pub(super) fn read(&mut self, id: Id, buffer: Vec<u8>, reply: Reply<Answer>) {
        match self.slots.tcp(id) {
            Some(tcp) => tcp.reads = Some((buffer, reply)),
            None => answer(reply, Err(Error::Reset)),
        }
    }

    pub(super) fn write(&mut self, id: Id, data: Vec<u8>, reply: Reply<Answer>) {
        match self.slots.tcp(id) {
            Some(tcp) if !tcp.is_shut => tcp.writes = Some((data, 0, reply)),
            Some(_) => answer(reply, Err(Error::Closed)),
            None => answer(reply, Err(Error::Reset)),
        }
    }

    pub(super) fn shutdown(&mut self, id: Id, waits: bool, reply: Reply<Answer>) {
        let Some(tcp) = self.slots.tcp(id) else { return answer(reply, Err(Error::Reset)) };
        tcp.is_shut = true;
        if waits {
            tcp.ends = Some(reply);
        } else {
            answer(reply, Ok(Outcome::Done));
        }
    }

    /// Ends a connection at once: the other side is told by a reset.
    pub(super) fn abort(&mut self, id: Id) {
        let Some(tcp) = self.slots.tcp(id) else { return };
        let handle = tcp.handle;
        tcp.fail(Error::Reset);
        self.slots.remove(id);
        self.sockets.get_mut::<Socket<'_>>(handle).abort();
        self.closing.push(handle);
    }

    /// Serves whoever waits for this connection.
    pub(super) fn tend_tcp(&mut self, id: Id) {
        let now = self.now();
        let Some(tcp) = self.slots.tcp(id) else { return };
        let socket = self.sockets.get_mut::<Socket<'_>>(tcp.handle);
        if let Some((reply, read, write)) = tcp.connect.take() {
            match socket.state() {
                State::SynSent | State::SynReceived => {
                    tcp.connect = Some((reply, read, write));
                    if !tcp.is_held() {
                        self.abort(id);
                    }
                    return;
                }
                State::Closed => {
                    answer(reply, Err(Error::Refused));
                    let handle = tcp.handle;
                    self.slots.remove(id);
                    self.closing.push(handle);
                    return;
                }
                _ => {
                    let connection = connection(id, socket, tcp.remote, (read, write));
                    answer(reply, Ok(Outcome::Connection(connection)));
                }
            }
        }
        tcp.serve(socket);
        if self.config.keep_alive.is_none() {
            // smoltcp counts silence, too, of which nobody asks the other side here: only an answer that is due may be late.
            let is_due = match socket.state() {
                State::Established | State::CloseWait | State::FinWait2 => socket.send_queue() > 0,
                _ => true,
            };
            socket.set_timeout(is_due.then(|| Duration::from(self.config.timeout)));
        }
        if socket.state() == State::Closed && !tcp.waits_for_holder(socket) {
            let handle = tcp.handle;
            self.slots.remove(id);
            self.closing.push(handle);
            return;
        }
        if tcp.is_held() {
            return;
        }
        // Nobody reads what comes now, so the other side had better know.
        let linger = Duration::from(self.config.linger);
        let until = *tcp.until.get_or_insert(now + linger);
        let rests = socket.state() == State::TimeWait;
        if socket.recv_queue() > 0 {
            self.abort(id);
        } else if now >= until && rests {
            let handle = tcp.handle;
            self.slots.remove(id);
            drop(self.sockets.remove(handle));
        } else if now >= until {
            self.statistics.cut_off += 1;
            self.abort(id);
        }
    }

    /// Looks which handles were dropped.
    pub(super) fn look(&mut self) {
        for place in 0..self.slots.end() {
            let Some(id) = self.slots.id_at(place) else { continue };
            let Some(slot) = self.slots.at(place) else { continue };
            match &mut slot.kind {
                Kind::Tcp(tcp) => {
                    let (read, write) = (is_dropped(&tcp.read), is_dropped(&tcp.write));
                    if read {
                        tcp.read = None;
                        tcp.reads = None;
                    }
                    if write {
                        tcp.write = None;
                        tcp.is_shut = true;
                    }
                    for (dropped, half) in [(read, Half::Read), (write, Half::Write)] {
                        if dropped {
                            slot.forget(half);
                        }
                    }
                }
                Kind::Listener(listener) if listener.token.is_only() => {
                    self.close_listener(id);
                }
                Kind::Udp(udp) if udp.token.is_only() => {
                    let handle = udp.handle;
                    self.slots.remove(id);
                    drop(self.sockets.remove(handle));
                }
                _ => {}
            }
        }
    }

    /// Who held a socket has ended.
    pub(super) fn owner_ended(&mut self, ended: &Ended) {
        let Some((id, _half)) = self.slots.held_under(ended.watch()) else { return };
        if !ended.exit().is_failure() {
            // It has dropped its handle, or has given it away.
            return;
        }
        self.statistics.owner_crashed += 1;
        match self.slots.get(id).map(|slot| &slot.kind) {
            Some(Kind::Tcp(_)) => self.abort(id),
            Some(Kind::Listener(_)) => self.close_listener(id),
            Some(Kind::Udp(udp)) => {
                let handle = udp.handle;
                self.slots.remove(id);
                drop(self.sockets.remove(handle));
            }
            None => {}
        }
    }

    /// When a connection that is being closed is cut off, or one that is half open given up.
    pub(super) fn own_deadline(&self) -> Option<Instant> {
        let half_open = Duration::from(self.config.half_open);
        self.slots
            .iter()
            .filter_map(|slot| match &slot.kind {
                Kind::Tcp(tcp) => tcp.until,
                Kind::Listener(listener) => listener
                    .store
                    .iter()
                    .filter_map(|stored| stored.half_open.map(|since| since + half_open))
                    .min(),
                Kind::Udp(udp) => udp.stuck.map(|(since, _)| since + super::udp::PATIENCE),
            })
            .min()
    }
}

/// What its holder is to know.
pub fn connection(
    id: Id,
    socket: &Socket<'_>,
    remote: SocketAddrV4,
    (read, write): (Token, Token),
) -> Connection {
    let local = socket.local_endpoint().map_or(SocketAddrV4::new([0; 4].into(), 0), address_of);
    Connection { id, local, remote, read, write }
}

/// smoltcp's, as the rest of the world has it.
pub fn address_of(endpoint: IpEndpoint) -> SocketAddrV4 {
    let IpAddress::Ipv4(address) = endpoint.addr;
    SocketAddrV4::new(address, endpoint.port)
}

/// Whether the end is to be said only when all that was said before is acknowledged. smoltcp refuses whatever acknowledges nothing new once both sides
/// have closed, and so does not hear of a window that opens again (its pull request 1126): what is left would go out in probes alone, a second apart.
fn is_to_wait_with_its_end(socket: &Socket<'_>) -> bool {
    socket.state() == State::CloseWait && socket.send_queue() > 0
}

fn is_dropped(token: &Option<Token>) -> bool {
    token.as_ref().is_some_and(Token::is_only)
}

impl Tcp {
    pub(super) fn new(handle: SocketHandle, remote: SocketAddrV4, (read, write): (Token, Token)) -> Self {
        Self {
            handle,
            remote,
            read: Some(read),
            write: Some(write),
            connect: None,
            reads: None,
            writes: None,
            ends: None,
            is_shut: false,
            has_heard_all: false,
            unread: 0,
            until: None,
        }
    }

    const fn is_held(&self) -> bool {
        self.read.is_some() || self.write.is_some()
    }

    /// Whether a closed connection is still to be read from.
    fn waits_for_holder(&self, socket: &Socket<'_>) -> bool {
        self.is_held() && (socket.recv_queue() > 0 || self.read.is_some())
    }

    fn serve(&mut self, socket: &mut Socket<'_>) {
        let state = socket.state();
        self.has_heard_all |=
            matches!(state, State::CloseWait | State::LastAck | State::Closing | State::TimeWait);
        if let Some((mut buffer, reply)) = self.reads.take() {
            match socket.recv_slice(&mut buffer) {
                Ok(0) => self.reads = Some((buffer, reply)),
                Ok(count) => {
                    buffer.truncate(count);
                    answer(reply, Ok(Outcome::Buffer(buffer)));
                }
                Err(RecvError::Finished | RecvError::InvalidState)
                    if self.has_heard_all && self.unread == 0 =>
                {
                    buffer.clear();
                    answer(reply, Ok(Outcome::Buffer(buffer)));
                }
                Err(_) => answer(reply, Err(Error::Reset)),
            }
        }
        if socket.state() != State::Closed {
            self.unread = socket.recv_queue();
        }
        if let Some((mut data, written, reply)) = self.writes.take() {
            match socket.send_slice(&data[written..]) {
                Ok(count) if written + count == data.len() => {
                    data.clear();
                    answer(reply, Ok(Outcome::Buffer(data)));
                }
                Ok(count) => self.writes = Some((data, written + count, reply)),
                Err(_) => answer(reply, Err(Error::Reset)),
            }
        }
        if self.is_shut && self.writes.is_none() && !is_to_wait_with_its_end(socket) {
            socket.close();
        }
        if let Some(reply) = self.ends.take() {
            match socket.state() {
                State::FinWait2 | State::TimeWait => answer(reply, Ok(Outcome::Done)),
                // The last byte and the FIN were acknowledged, in this order of closing; or it was reset.
                State::Closed if socket.send_queue() == 0 && self.has_heard_all => {
                    answer(reply, Ok(Outcome::Done));
                }
                State::Closed => answer(reply, Err(Error::Reset)),
                _ => self.ends = Some(reply),
            }
        }
    }

    /// All who wait are told.
    fn fail(&mut self, error: Error) {
        if let Some((reply, ..)) = self.connect.take() {
            answer(reply, Err(error));
        }
        if let Some((_, reply)) = self.reads.take() {
            answer(reply, Err(error));
        }
        if let Some((.., reply)) = self.writes.take() {
            answer(reply, Err(error));
        }
        if let Some(reply) = self.ends.take() {
            answer(reply, Err(error));
        }
    }
}
