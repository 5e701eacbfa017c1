//! smoltcp's view of the line: packets that have come, and bytes that wait to be written.

use super::slip::{Decoder, Encoder};
use smoltcp::phy::{Device, DeviceCapabilities, Medium, RxToken, TxToken};
use smoltcp::time::Instant;
use std::collections::VecDeque;

/// The longest packet, as on Ethernet.
pub const PACKET_BYTES: usize = 1500;
/// While more waits nothing is sent, so that it waits where it was written; and while much more does, nothing is answered either.
const ENOUGH_BYTES: usize = 2 * PACKET_BYTES;
const MUCH_BYTES: usize = 32 * PACKET_BYTES;
/// Packets beyond that are lost, as on any line. They are taken at once, so there are none.
const MOST_PACKETS: usize = 64;

/// The line.
pub struct Wire {
    decoder: Decoder,
    room: Box<[u8; PACKET_BYTES]>,
    come: VecDeque<Vec<u8>>,
    out: VecDeque<u8>,
}

impl Wire {
    pub fn new() -> Self {
        let (come, out) = (VecDeque::new(), VecDeque::new());
        Self { decoder: Decoder::default(), room: Box::new([0; PACKET_BYTES]), come, out }
    }

    /// The next byte that has come: the packet that it completes.
    pub fn hear(&mut self, byte: u8) -> Option<Vec<u8>> {
        self.decoder.push(byte, &mut self.room[..]).map(|length| self.room[..length].to_vec())
    }

    /// smoltcp is to see that next, or after all the others.
    pub fn put(&mut self, packet: Vec<u8>, is_next: bool) {
        if is_next {
            self.come.push_front(packet);
        } else if self.come.len() < MOST_PACKETS {
            self.come.push_back(packet);
        }
    }

    /// What waits to be written.
    pub const fn out(&mut self) -> &mut VecDeque<u8> {
        &mut self.out
    }

    pub fn has_room(&self) -> bool {
        self.out.len() < ENOUGH_BYTES
    }
}

/// A packet that has come.
pub struct Come(Vec<u8>);

impl RxToken for Come {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, read: F) -> R {
        read(&self.0)
    }
}

/// Room for a packet.
pub struct Room<'a>(&'a mut VecDeque<u8>);

impl TxToken for Room<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, length: usize, write: F) -> R {
        let mut packet = vec![0; length];
        let result = write(&mut packet);
        if self.0.len() < MUCH_BYTES {
            let mut encoder = Encoder::default();
            self.0.extend(std::iter::from_fn(|| encoder.next(&packet)));
        }
        result
    }
}

impl Device for Wire {
    type RxToken<'a> = Come;
    type TxToken<'a> = Room<'a>;

    fn receive(&mut self, _: Instant) -> Option<(Come, Room<'_>)> {
        let packet = self.come.pop_front()?;
        Some((Come(packet), Room(&mut self.out)))
    }

    fn transmit(&mut self, _: Instant) -> Option<Room<'_>> {
        self.has_room().then_some(Room(&mut self.out))
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ip;
        capabilities.max_transmission_unit = PACKET_BYTES;
        capabilities
    }
}
