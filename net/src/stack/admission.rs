//! What is let through to smoltcp. A request for a connection that finds no socket in store would be refused by a reset; it is dropped, and so comes again, as
//! with any other host that has many visitors. When only half-open ones are in the way, the oldest of them makes room: a flood of requests from nowhere
//! keeps others waiting, and not out.

use smoltcp::socket::tcp::{Socket, State};
use smoltcp::wire::{EthernetFrame, EthernetProtocol, IpEndpoint, IpProtocol, Ipv4Packet, TcpPacket};

use super::run::Stack;
use super::slots::Kind;

impl Stack {
    /// Whether smoltcp is to see the frame.
    pub(super) fn admits(&mut self, frame: &[u8]) -> bool {
        let Some((from, port)) = asks_for(frame) else { return true };
        // It has come twice, and its connection is there: another socket in store would take it for a new one, and answer with other numbers.
        let is_known = self.sockets.iter().any(|(_, socket)| match socket {
            smoltcp::socket::Socket::Tcp(socket) => {
                socket.is_active()
                    && socket.remote_endpoint() == Some(from)
                    && socket.local_endpoint().is_some_and(|local| local.port == port)
            }
            _ => false,
        });
        if is_known {
            return false;
        }
        let now = self.now();
        let sockets = &mut self.sockets;
        for place in 0..self.slots.end() {
            let Some(Kind::Listener(listener)) = self.slots.at(place).map(|slot| &mut slot.kind) else {
                continue;
            };
            if listener.port != port {
                continue;
            }
            let listens = |handle| sockets.get::<Socket<'_>>(handle).state() == State::Listen;
            if listener.store.iter().any(|stored| listens(stored.handle)) {
                return true;
            }
            self.statistics.backlog_full += 1;
            let least = smoltcp::time::Duration::from_secs(1);
            let oldest = listener
                .store
                .iter_mut()
                .filter(|stored| stored.half_open.is_some_and(|since| now >= since + least))
                .min_by_key(|stored| stored.half_open);
            let Some(oldest) = oldest else { return false };
            let socket = sockets.get_mut::<Socket<'_>>(oldest.handle);
            if socket.state() != State::SynReceived {
                return false;
            }
            self.statistics.half_open += 1;
            socket.abort();
            // This takes back the abort's reset, which would be one more answer to a flood.
            let _ = socket.listen(port);
            oldest.half_open = None;
            return true;
        }
        true
    }
}

/// Whose request for a connection it is and for which port, if the frame is one. What is malformed is smoltcp's affair.
fn asks_for(frame: &[u8]) -> Option<(IpEndpoint, u16)> {
    let frame = EthernetFrame::new_checked(frame).ok()?;
    if frame.ethertype() != EthernetProtocol::Ipv4 {
        return None;
    }
    let packet = Ipv4Packet::new_checked(frame.payload()).ok()?;
    if packet.next_header() != IpProtocol::Tcp || packet.frag_offset() != 0 {
        return None;
    }
    let segment = TcpPacket::new_checked(packet.payload()).ok()?;
    let from = IpEndpoint::new(packet.src_addr().into(), segment.src_port());
    (segment.syn() && !segment.ack() && !segment.rst()).then(|| (from, segment.dst_port()))
}
