//! The gateway: smoltcp on the line, listeners of this machine, and the connections between the two.

use super::carried::{self, Carried};
use super::notice::Notice;
use super::wire::Wire;
use crate::failure::usage;
use anyhow::{Context, Result};
use nix::poll::PollFlags;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, SockaddrIn, connect, socket};
use smoltcp::iface::{Config, Interface, PollResult, SocketSet};
use smoltcp::socket::tcp::{Socket, State};
use smoltcp::time::{Duration, Instant};
use smoltcp::wire::{HardwareAddress, IpCidr, IpProtocol, Ipv4Packet, TcpPacket};
use std::collections::VecDeque;
use std::hash::{BuildHasher, RandomState};
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener, TcpStream};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

/// This machine, and the other.
pub const HERE: Ipv4Addr = Ipv4Addr::new(10, 0, 2, 2);
pub const THERE: Ipv4Addr = Ipv4Addr::new(10, 0, 2, 15);
/// So many connections at a time. Who wants more waits.
const MOST: usize = 256;
/// So many that have ended may rest, as TCP wants it.
const MOST_RESTING: usize = 64;
/// After so long without an answer to the first connection that is said.
const SILENCE: Duration = Duration::from_secs(5);
/// Ports of connections from here: the dynamic ones.
const FIRST_PORT: u16 = 49_152;

/// A connection that the other machine wants, while this one's end of it is being opened; and the packet in which it was asked for.
struct Dialled {
    stream: TcpStream,
    port: u16,
    packet: Vec<u8>,
}

/// This machine's end of a line.
pub struct Gateway {
    interface: Interface,
    sockets: SocketSet<'static>,
    wire: Wire,
    listeners: Vec<(TcpListener, u16)>,
    carried: Vec<Carried>,
    dialled: Vec<Dialled>,
    next_port: u16,
    /// Since when somebody has waited for a first answer.
    waiting: Option<Instant>,
    is_silent: bool,
    notice: Option<Notice>,
}

/// A packet that asks for a connection, to which port; and who asks.
fn asks_for(packet: &[u8]) -> Option<(SocketAddrV4, u16)> {
    let packet = Ipv4Packet::new_checked(packet).ok()?;
    if packet.next_header() != IpProtocol::Tcp || packet.dst_addr() != HERE {
        return None;
    }
    let segment = TcpPacket::new_checked(packet.payload()).ok()?;
    // One that was garbled is smoltcp's affair.
    let is_whole = packet.verify_checksum()
        && segment.verify_checksum(&packet.src_addr().into(), &packet.dst_addr().into());
    let asks = is_whole && segment.syn() && !segment.ack() && !segment.rst();
    asks.then(|| (SocketAddrV4::new(packet.src_addr(), segment.src_port()), segment.dst_port()))
}

/// Begins to connect to a port of this machine's own.
fn dial(port: u16) -> std::io::Result<TcpStream> {
    let made = socket(AddressFamily::Inet, SockType::Stream, SockFlag::empty(), None)?;
    let stream = TcpStream::from(made);
    stream.set_nonblocking(true)?;
    stream.set_nodelay(true)?;
    match connect(stream.as_raw_fd(), &SockaddrIn::from(SocketAddrV4::new(Ipv4Addr::LOCALHOST, port))) {
        Ok(()) | Err(nix::errno::Errno::EINPROGRESS) => Ok(stream),
        Err(error) => Err(error.into()),
    }
}

impl Gateway {
    /// With these ports of this machine forwarded to those of the other.
    pub fn new(forwards: &[(SocketAddrV4, u16)]) -> Result<Self> {
        let mut wire = Wire::new();
        let mut config = Config::new(HardwareAddress::Ip);
        config.random_seed = RandomState::new().hash_one(std::process::id());
        let next_port = FIRST_PORT | config.random_seed as u16;
        let mut interface = Interface::new(config, &mut wire, Instant::ZERO);
        interface.update_ip_addrs(|addresses| {
            // There is room for more than one.
            let _ = addresses.push(IpCidr::new(HERE.into(), 24));
        });
        let mut listeners = Vec::new();
        for (host, guest) in forwards {
            let listener = TcpListener::bind(host).map_err(|error| {
                usage(format!("--forward: {host} cannot be taken ({error}); give another"))
            })?;
            listener.set_nonblocking(true).context("a port cannot be listened at")?;
            listeners.push((listener, *guest));
        }
        Ok(Self {
            interface,
            sockets: SocketSet::new(Vec::new()),
            wire,
            listeners,
            carried: Vec::new(),
            dialled: Vec::new(),
            next_port,
            waiting: None,
            is_silent: false,
            notice: None,
        })
    }

    /// Takes what has come on the line.
    pub fn hear(&mut self, bytes: &[u8], now: Instant) {
        for &byte in bytes {
            let Some(packet) = self.wire.hear(byte) else { continue };
            self.waiting = None;
            if std::mem::take(&mut self.is_silent) {
                self.notice = Some(Notice::Answers);
            }
            match asks_for(&packet) {
                Some((from, port)) if !self.is_known(from, port) => self.dial(port, packet),
                _ => {
                    self.wire.put(packet, false);
                    self.interface.poll_ingress_single(now, &mut self.wire, &mut self.sockets);
                }
            }
        }
    }

    /// Whether there is such a connection.
    fn is_known(&self, from: SocketAddrV4, port: u16) -> bool {
        self.carried.iter().any(|carried| {
            let socket = self.sockets.get::<Socket<'_>>(carried.handle);
            socket.is_active()
                && socket.remote_endpoint() == Some(from.into())
                && socket.local_endpoint().is_some_and(|local| local.port == port)
        })
    }

    fn dial(&mut self, port: u16, packet: Vec<u8>) {
        let is_dialled = self.dialled.iter().any(|dialled| asks_for(&dialled.packet) == asks_for(&packet));
        // It is asked again.
        if is_dialled || self.is_full() {
            return;
        }
        match dial(port) {
            Ok(stream) => self.dialled.push(Dialled { stream, port, packet }),
            // Without a listener smoltcp says no.
            Err(_) => self.wire.put(packet, false),
        }
    }

    fn is_full(&self) -> bool {
        self.dialled.len() + self.carried.iter().filter(|carried| carried.is_open()).count() >= MOST
    }

    /// Does what there is to do, until something comes.
    pub fn turn(&mut self, now: Instant) {
        self.accept(now);
        self.answer_dialled(now);
        loop {
            for carried in &mut self.carried {
                carried.carry(self.sockets.get_mut::<Socket<'_>>(carried.handle));
            }
            if self.interface.poll(now, &mut self.wire, &mut self.sockets) == PollResult::None {
                break;
            }
        }
        self.forget();
        self.listen_to_silence(now);
    }

    /// Whoever has connected to a port that is forwarded.
    fn accept(&mut self, now: Instant) {
        for at in 0..self.listeners.len() {
            while !self.is_full() {
                let (listener, port) = &self.listeners[at];
                let Ok((stream, _)) = listener.accept() else { break };
                if stream.set_nonblocking(true).is_err() || stream.set_nodelay(true).is_err() {
                    continue;
                }
                let mut socket = carried::socket();
                self.next_port = self.next_port.checked_add(1).unwrap_or(FIRST_PORT);
                if socket.connect(self.interface.context(), (THERE, *port), self.next_port).is_ok() {
                    self.carried.push(Carried::new(self.sockets.add(socket), stream));
                    self.waiting.get_or_insert(now);
                }
            }
        }
    }

    /// Connections of the other machine whose ends here are open, or refused.
    fn answer_dialled(&mut self, now: Instant) {
        let dialled = std::mem::take(&mut self.dialled);
        for Dialled { stream, port, packet } in dialled {
            let is_open = match stream.take_error() {
                Ok(None) => match stream.peer_addr() {
                    Ok(_) => true,
                    // Not yet.
                    Err(_) => {
                        self.dialled.push(Dialled { stream, port, packet });
                        continue;
                    }
                },
                _ => false,
            };
            let mut socket = carried::socket();
            let handle = (is_open && socket.listen(port).is_ok()).then(|| self.sockets.add(socket));
            // Now, so that nobody else comes to that socket.
            self.wire.put(packet, true);
            self.interface.poll_ingress_single(now, &mut self.wire, &mut self.sockets);
            if let Some(handle) = handle {
                let socket = self.sockets.get_mut::<Socket<'_>>(handle);
                if socket.is_listening() {
                    // smoltcp has found something wrong with it.
                    socket.close();
                }
                self.carried.push(Carried::new(handle, stream));
            }
        }
    }

    /// Connections that have ended.
    fn forget(&mut self) {
        let sockets = &mut self.sockets;
        let mut resting = self.carried.iter().filter(|carried| !carried.is_open()).count();
        self.carried.retain(|carried| {
            let socket = sockets.get::<Socket<'_>>(carried.handle);
            // A reset that is still to be sent is sent first.
            let has_ended = socket.state() == State::Closed && socket.remote_endpoint().is_none();
            let rests = socket.state() == State::TimeWait;
            let is_over = !carried.is_open() && (has_ended || rests && resting > MOST_RESTING);
            if is_over {
                resting -= 1;
                sockets.remove(carried.handle);
            }
            !is_over
        });
    }

    fn listen_to_silence(&mut self, now: Instant) {
        if !self.is_silent && self.waiting.is_some_and(|since| now >= since + SILENCE) {
            self.is_silent = true;
            self.notice = Some(Notice::Silent);
        }
    }

    /// What is to be said.
    pub const fn notice(&mut self) -> Option<Notice> {
        self.notice.take()
    }

    /// What waits to be written on the line.
    pub const fn out(&mut self) -> &mut VecDeque<u8> {
        self.wire.out()
    }

    /// When there is something to do though nothing comes.
    pub fn delay(&mut self, now: Instant) -> Option<Duration> {
        // Without room it is to be written first.
        let has_room = self.wire.has_room();
        has_room.then(|| self.interface.poll_delay(now, &self.sockets)).flatten()
    }

    /// What is waited for.
    pub fn waits(&self) -> Vec<(BorrowedFd<'_>, PollFlags)> {
        let mut waits = Vec::new();
        if !self.is_full() {
            waits.extend(self.listeners.iter().map(|(listener, _)| (listener.as_fd(), PollFlags::POLLIN)));
        }
        waits.extend(self.dialled.iter().map(|dialled| (dialled.stream.as_fd(), PollFlags::POLLOUT)));
        waits.extend(self.carried.iter().filter_map(|carried| {
            let (stream, flags) = carried.waits(self.sockets.get::<Socket<'_>>(carried.handle))?;
            Some((stream.as_fd(), flags))
        }));
        waits
    }
}
