//! Numbers of segments that only acknowledge. smoltcp gives them the number from which it is sending; after a time-out that is the first byte that was
//! not acknowledged, and lies below what the other side expects. Such a segment is out of the window, so what it acknowledges is not read; when both
//! sides are sending, neither hears the other again. They are to have the number behind all that was ever sent (RFC 9293, 3.10.7.4 and 3.8.6.3), and
//! get it here, on their way out.

use alloc::vec::Vec;
use core::net::Ipv4Addr;

use magpie::mem::OutOfMemory;
use smoltcp::wire::{EthernetFrame, EthernetProtocol, IpProtocol, Ipv4Packet, TcpPacket, TcpSeqNumber};

/// A connection, and the number behind what it has sent.
struct Sent {
    ports: (u16, u16),
    to: Ipv4Addr,
    end: TcpSeqNumber,
    /// The other side takes nothing: what is sent now, only to ask whether that is still so, does not count.
    is_shut_out: bool,
}

/// The connections that have sent last.
pub struct Acknowledging {
    sent: Vec<Sent>,
    /// Which is forgotten next, when there is no room: that one is as smoltcp has it.
    oldest: usize,
}

impl Acknowledging {
    pub fn new(most: usize) -> Result<Self, OutOfMemory> {
        let mut sent = Vec::new();
        sent.try_reserve_exact(most).map_err(|_| OutOfMemory)?;
        Ok(Self { sent, oldest: 0 })
    }

    /// Looks at a frame that is about to be sent.
    pub fn amend(&mut self, frame: &mut [u8]) {
        let Ok(mut frame) = EthernetFrame::new_checked(frame) else { return };
        if frame.ethertype() != EthernetProtocol::Ipv4 {
            return;
        }
        let Ok(mut packet) = Ipv4Packet::new_checked(frame.payload_mut()) else { return };
        if packet.next_header() != IpProtocol::Tcp {
            return;
        }
        let (from, to) = (packet.src_addr(), packet.dst_addr());
        let Ok(mut segment) = TcpPacket::new_checked(packet.payload_mut()) else { return };
        if segment.rst() {
            return;
        }
        let ports = (segment.src_port(), segment.dst_port());
        let begin = segment.seq_number();
        let length = segment.segment_len();
        let known = self.sent.iter_mut().find(|sent| sent.ports == ports && sent.to == to);
        let Some(known) = known else {
            if length > 0 {
                self.add(Sent { ports, to, end: begin + length, is_shut_out: false });
            }
            return;
        };
        if segment.syn() {
            (known.end, known.is_shut_out) = (begin + length, false);
        } else if length > 0 {
            if !known.is_shut_out && begin + length > known.end {
                known.end = begin + length;
            }
        } else if known.end > begin {
            segment.set_seq_number(known.end);
            segment.fill_checksum(&from.into(), &to.into());
        }
    }

    /// Looks at a frame that has come: without a window, the other side expects just what it acknowledges.
    pub fn hear(&mut self, frame: &[u8]) {
        let Ok(frame) = EthernetFrame::new_checked(frame) else { return };
        if frame.ethertype() != EthernetProtocol::Ipv4 {
            return;
        }
        let Ok(packet) = Ipv4Packet::new_checked(frame.payload()) else { return };
        if packet.next_header() != IpProtocol::Tcp || packet.frag_offset() != 0 {
            return;
        }
        let Ok(segment) = TcpPacket::new_checked(packet.payload()) else { return };
        let (from, to) = (packet.src_addr(), packet.dst_addr());
        let ports = (segment.dst_port(), segment.src_port());
        let known = self.sent.iter_mut().find(|sent| sent.ports == ports && sent.to == from);
        let Some(known) = known else { return };
        if !segment.ack() || !segment.verify_checksum(&from.into(), &to.into()) {
            return;
        }
        known.is_shut_out = segment.window_len() == 0;
        if known.is_shut_out {
            known.end = segment.ack_number();
        }
    }

    fn add(&mut self, sent: Sent) {
        if self.sent.len() < self.sent.capacity() {
            self.sent.push(sent);
        } else if let Some(oldest) = self.sent.get_mut(self.oldest) {
            *oldest = sent;
            self.oldest = (self.oldest + 1) % self.sent.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Acknowledging;
    use core::net::Ipv4Addr;
    use smoltcp::phy::ChecksumCapabilities;
    use smoltcp::wire::{
        EthernetAddress, EthernetFrame, EthernetProtocol, EthernetRepr, IpProtocol, Ipv4Packet, Ipv4Repr,
        TcpControl, TcpPacket, TcpRepr, TcpSeqNumber,
    };
    use std::vec;
    use std::vec::Vec;

    const HERE: (Ipv4Addr, u16) = (Ipv4Addr::new(10, 0, 0, 1), 7);
    const THERE: (Ipv4Addr, u16) = (Ipv4Addr::new(10, 0, 0, 2), 40_000);

    fn frame(
        (from, to): ((Ipv4Addr, u16), (Ipv4Addr, u16)),
        control: TcpControl,
        (sequence, acknowledged): (i32, i32),
        (bytes, window): (usize, u16),
    ) -> Vec<u8> {
        let content = vec![0; bytes];
        let tcp = TcpRepr {
            src_port: from.1,
            dst_port: to.1,
            control,
            seq_number: TcpSeqNumber(sequence),
            ack_number: Some(TcpSeqNumber(acknowledged)),
            window_len: window,
            window_scale: None,
            max_seg_size: None,
            sack_permitted: false,
            sack_ranges: [None; 3],
            timestamp: None,
            payload: &content,
        };
        let ip = Ipv4Repr {
            src_addr: from.0,
            dst_addr: to.0,
            next_header: IpProtocol::Tcp,
            payload_len: tcp.buffer_len(),
            hop_limit: 64,
        };
        let address = EthernetAddress([2, 0, 0, 0, 0, 1]);
        let ethernet =
            EthernetRepr { src_addr: address, dst_addr: address, ethertype: EthernetProtocol::Ipv4 };
        let mut bytes = vec![0; ethernet.buffer_len() + ip.buffer_len() + tcp.buffer_len()];
        let mut frame = EthernetFrame::new_unchecked(&mut bytes[..]);
        ethernet.emit(&mut frame);
        let mut packet = Ipv4Packet::new_unchecked(frame.payload_mut());
        let sums = ChecksumCapabilities::default();
        ip.emit(&mut packet, &sums);
        let mut segment = TcpPacket::new_unchecked(packet.payload_mut());
        tcp.emit(&mut segment, &from.0.into(), &to.0.into(), &sums);
        bytes
    }

    /// The number with which a segment leaves, whose checksum is right.
    fn leaves(acknowledging: &mut Acknowledging, control: TcpControl, sequence: i32, bytes: usize) -> i32 {
        let mut frame = frame((HERE, THERE), control, (sequence, 1), (bytes, 1000));
        acknowledging.amend(&mut frame);
        let frame = EthernetFrame::new_checked(&frame[..]).unwrap();
        let packet = Ipv4Packet::new_checked(frame.payload()).unwrap();
        let segment = TcpPacket::new_checked(packet.payload()).unwrap();
        assert!(segment.verify_checksum(&HERE.0.into(), &THERE.0.into()));
        segment.seq_number().0
    }

    fn hears(acknowledging: &mut Acknowledging, acknowledged: i32, window: u16) {
        acknowledging.hear(&frame((THERE, HERE), TcpControl::None, (1, acknowledged), (0, window)));
    }

    #[test]
    fn what_only_acknowledges_bears_the_number_behind_all_that_was_sent() {
        let mut all = Acknowledging::new(2).unwrap();
        // Of a connection that has sent nothing nothing is known.
        assert_eq!(leaves(&mut all, TcpControl::None, 100, 0), 100);
        assert_eq!(leaves(&mut all, TcpControl::None, 100, 50), 100);
        assert_eq!(leaves(&mut all, TcpControl::None, 150, 50), 150);
        // After a time-out it is sent again, and what only acknowledges goes ahead.
        assert_eq!(leaves(&mut all, TcpControl::None, 100, 0), 200);
        assert_eq!(leaves(&mut all, TcpControl::None, 100, 50), 100);
        assert_eq!(leaves(&mut all, TcpControl::None, 150, 0), 200);
        // A reset is as it is, and a new connection begins anew.
        assert_eq!(leaves(&mut all, TcpControl::Rst, 100, 0), 100);
        assert_eq!(leaves(&mut all, TcpControl::Syn, 7, 0), 7);
        assert_eq!(leaves(&mut all, TcpControl::None, 8, 0), 8);
    }

    #[test]
    fn without_a_window_it_is_what_the_other_side_expects() {
        let mut all = Acknowledging::new(2).unwrap();
        assert_eq!(leaves(&mut all, TcpControl::None, 100, 50), 100);
        hears(&mut all, 120, 0);
        assert_eq!(leaves(&mut all, TcpControl::None, 110, 0), 120);
        // A byte that asks whether there is room does not count.
        assert_eq!(leaves(&mut all, TcpControl::None, 120, 1), 120);
        assert_eq!(leaves(&mut all, TcpControl::None, 110, 0), 120);
        hears(&mut all, 120, 1000);
        assert_eq!(leaves(&mut all, TcpControl::None, 120, 30), 120);
        assert_eq!(leaves(&mut all, TcpControl::None, 120, 0), 150);
    }

    #[test]
    fn what_is_no_segment_is_left_alone() {
        let mut all = Acknowledging::new(1).unwrap();
        let whole = frame((HERE, THERE), TcpControl::None, (100, 1), (20, 1000));
        for end in 0..whole.len() {
            let mut part = whole[..end].to_vec();
            all.amend(&mut part);
            all.hear(&part);
            assert_eq!(part, whole[..end]);
        }
    }
}
