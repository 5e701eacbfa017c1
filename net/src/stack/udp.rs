//! Datagrams.

use alloc::vec::Vec;
use core::net::SocketAddrV4;

use magpie::channel::Reply;
use magpie::sched::ProcessRef;
use smoltcp::socket::udp::{PacketBuffer, SendError, Socket};
use smoltcp::time::{Duration, Instant};
use smoltcp::wire::{IpAddress, IpEndpoint};

use super::run::{Stack, answer};
use super::slots::{Kind, Udp};
use super::tcp::address_of;
use crate::buffers::Datagrams;
use crate::command::{Answer, Half, Id, Outcome, Token};
use crate::error::Error;

/// Who is next is asked for its card's address every second. A datagram for whom nobody says one, or to whom there is no way, would hold up all behind it for ever.
pub const PATIENCE: Duration = Duration::from_secs(4);

/// Whether anything waits to be sent. An empty datagram has no bytes, but takes a place.
fn waits(socket: &Socket<'_>) -> bool {
    socket.send_queue() > 0 || !socket.can_send()
}

/// Whether nothing went for too long.
fn is_stuck(stuck: &mut Option<(Instant, usize)>, socket: &Socket<'_>, now: Instant, has_room: bool) -> bool {
    let bytes = socket.send_queue();
    match *stuck {
        _ if !waits(socket) => *stuck = None,
        Some((since, before)) if has_room && bytes >= before => {
            if now >= since + PATIENCE {
                *stuck = None;
                return true;
            }
        }
        _ => *stuck = Some((now, bytes)),
    }
    false
}

impl Stack {
    pub(super) fn bind(
        &mut self,
        port: u16,
        receive: Datagrams,
        send: Datagrams,
        token: Token,
        by: Option<ProcessRef>,
        reply: Reply<Answer>,
    ) {
        let is_taken = |port| {
            self.slots.iter().any(|slot| match &slot.kind {
                Kind::Udp(udp) => self.sockets.get::<Socket<'_>>(udp.handle).endpoint().port == port,
                _ => false,
            })
        };
        let port = match port {
            0 => (0xc000..=u16::MAX).find(|&port| !is_taken(port)),
            port => Some(port).filter(|&port| !is_taken(port)),
        };
        let Some(port) = port else { return answer(reply, Err(Error::PortInUse)) };
        if !self.makes_room(1) {
            return answer(reply, Err(Error::TooMany));
        }
        let mut socket = Socket::new(
            PacketBuffer::new(receive.places, receive.bytes),
            PacketBuffer::new(send.places, send.bytes),
        );
        if socket.bind(port).is_err() {
            return answer(reply, Err(Error::NoSuchAddress));
        }
        let handle = self.sockets.add(socket);
        let udp = Udp { handle, token, sends: None, receives: None, stuck: None };
        let Some(id) = self.slots.add(Kind::Udp(udp)) else {
            return answer(reply, Err(Error::TooMany));
        };
        let _ = self.slots.hold(id, Half::Read, by, &self.ends_address);
        answer(reply, Ok(Outcome::Socket { id, port }));
    }

    fn udp(&mut self, id: Id) -> Option<&mut Udp> {
        match &mut self.slots.get(id)?.kind {
            Kind::Udp(udp) => Some(udp),
            _ => None,
        }
    }

    pub(super) fn send_to(&mut self, id: Id, to: SocketAddrV4, data: Vec<u8>, reply: Reply<Answer>) {
        match self.udp(id) {
            Some(udp) => udp.sends = Some((data, to, reply)),
            None => answer(reply, Err(Error::Reset)),
        }
    }

    pub(super) fn receive_from(&mut self, id: Id, buffer: Vec<u8>, reply: Reply<Answer>) {
        match self.udp(id) {
            Some(udp) => udp.receives = Some((buffer, reply)),
            None => answer(reply, Err(Error::Reset)),
        }
    }

    /// Serves whoever waits for this socket.
    pub(super) fn tend_udp(&mut self, id: Id) {
        let (now, has_room) = (self.now(), self.port.has_room());
        let Some(Kind::Udp(udp)) = self.slots.get(id).map(|slot| &mut slot.kind) else { return };
        let socket = self.sockets.get_mut::<Socket<'_>>(udp.handle);
        // Without a link it waits for that.
        if is_stuck(&mut udp.stuck, socket, now, has_room) {
            let port = socket.endpoint().port;
            self.statistics.unreachable += 1;
            socket.close();
            // It is closed, and the port is not zero.
            let _ = socket.bind(port);
        }
        if let Some((mut data, to, reply)) = udp.sends.take() {
            let there = IpEndpoint::new(IpAddress::Ipv4(*to.ip()), to.port());
            if data.len() > socket.payload_send_capacity() {
                answer(reply, Err(Error::TooLong));
            } else {
                match socket.send_slice(&data, there) {
                    Ok(()) => {
                        data.clear();
                        answer(reply, Ok(Outcome::Buffer(data)));
                    }
                    Err(SendError::BufferFull) => udp.sends = Some((data, to, reply)),
                    Err(SendError::Unaddressable) => answer(reply, Err(Error::NoSuchAddress)),
                }
            }
        }
        // What came to it just now counts from now on.
        udp.stuck = match udp.stuck {
            None if waits(socket) => Some((now, socket.send_queue())),
            stuck => stuck.map(|(since, _)| (since, socket.send_queue())),
        };
        if socket.can_recv()
            && let Some((mut buffer, reply)) = udp.receives.take()
        {
            match socket.recv() {
                Ok((bytes, from)) => {
                    // What is too long is cut off, as with any other host.
                    let count = bytes.len().min(buffer.len());
                    buffer[..count].copy_from_slice(&bytes[..count]);
                    buffer.truncate(count);
                    let from = address_of(from.endpoint);
                    answer(reply, Ok(Outcome::Datagram { from, buffer }));
                }
                Err(_) => udp.receives = Some((buffer, reply)),
            }
        }
    }
}
