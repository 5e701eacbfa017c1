//! A link by hand, and what goes over it: frames that are made here.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::time::Duration;

use magpie::time;
use magpie_net::{Error, Frame, Link, LinkEvent, Network};
use magpie_tests::{Failure, Outcome, ensure_eq};

use crate::common::{HERE, THERE};

/// A link that loses everything.
pub async fn hole(network: Network) -> Result<(), Error> {
    let (mut link, _free) = Link::attach(&network, [2, 0, 0, 0, 0, 9], 8, 8)?;
    drop(network);
    while let Some(event) = link.next().await {
        if let LinkEvent::Send(frame) = event {
            link.sent(frame)?;
        }
    }
    Ok(())
}

/// So many frames are kept until somebody asks what was sent.
const MOST_HEARD: usize = 64;

/// A link by hand: frames that are made here come, and what is sent is heard.
pub struct Hand {
    link: Link,
    free: Vec<Frame>,
    /// What was sent last, and not asked for yet.
    heard: VecDeque<Vec<u8>>,
}

impl Hand {
    pub fn new(network: &Network) -> Result<Self, Error> {
        let (link, free) = Link::attach(network, [2, 0, 0, 0, 0, 2], 16, 16)?;
        Ok(Self { link, free, heard: VecDeque::new() })
    }

    /// What the network sends next, or has sent already.
    pub async fn hear(&mut self) -> Result<Vec<u8>, Failure> {
        loop {
            if let Some(heard) = self.heard.pop_front() {
                return Ok(heard);
            }
            let event = time::timeout(Duration::from_secs(20), self.link.next()).await?;
            self.take(event.ok_or("the network has ended")?)?;
        }
    }

    /// Asks who has the address of `THERE`: afterwards the network knows who has that of `HERE`.
    pub async fn introduce(&mut self) -> Outcome {
        let mut request = Vec::from([0, 1, 8, 0, 6, 4, 0, 1, 2, 0, 0, 0, 9, 1]);
        request.extend_from_slice(&HERE.octets());
        request.extend_from_slice(&[0; 6]);
        request.extend_from_slice(&THERE.octets());
        self.receive(&frame([8, 6], &request)).await?;
        let told = self.hear().await?;
        ensure_eq!((&told[12..14], told[21]), (&[8, 6][..], 2), "the answer to who has the address");
        Ok(())
    }

    /// Hands up a frame, once there is room.
    pub async fn receive(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        loop {
            while let Some(event) = self.link.try_next() {
                self.take(event)?;
            }
            if let Some(mut frame) = self.free.pop() {
                frame.room()[..bytes.len()].copy_from_slice(bytes);
                frame.set_length(bytes.len());
                self.link.received(frame)?;
                return Ok(());
            }
            let event = self.link.next().await.ok_or("the network has ended")?;
            self.take(event)?;
        }
    }

    fn take(&mut self, event: LinkEvent) -> Result<(), Error> {
        match event {
            LinkEvent::Send(frame) => {
                if self.heard.len() == MOST_HEARD {
                    self.heard.pop_front();
                }
                self.heard.push_back(frame.bytes().to_vec());
                self.link.sent(frame)
            }
            LinkEvent::Again(frame) => {
                self.free.push(frame);
                Ok(())
            }
        }
    }
}

/// The check sum of the Internet.
pub fn sum(parts: &[&[u8]]) -> u16 {
    let mut sum = 0_u32;
    for part in parts {
        for pair in part.chunks(2) {
            sum += u32::from(pair[0]) << 8 | pair.get(1).copied().map_or(0, u32::from);
        }
    }
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

/// A frame of the network's `THERE`, from `HERE`, of that kind.
pub fn frame(kind: [u8; 2], content: &[u8]) -> Vec<u8> {
    let mut frame = Vec::from([2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 9, 1]);
    frame.extend_from_slice(&kind);
    frame.extend_from_slice(content);
    frame
}

/// The bits of a segment.
pub mod flags {
    pub const FIN: u8 = 1;
    pub const SYN: u8 = 2;
    pub const ACK: u8 = 0x10;
}

/// A segment to the network of `THERE`, without data.
#[derive(Clone, Copy)]
pub struct Segment {
    /// From where.
    pub from: ([u8; 4], u16),
    /// To which port.
    pub to: u16,
    /// Its number, and the one that it acknowledges.
    pub numbers: (u32, u32),
    pub flags: u8,
    pub window: u16,
}

impl Segment {
    /// Its frame, whole and right.
    pub fn frame(self) -> [u8; 54] {
        let (from, port) = self.from;
        let mut frame = [0; 54];
        frame[..6].copy_from_slice(&[2, 0, 0, 0, 0, 2]);
        frame[6..12].copy_from_slice(&[2, 0, 0, 0, 9, from[3]]);
        frame[12] = 8;
        let ip = &mut frame[14..34];
        ip[0] = 0x45;
        ip[3] = 40;
        (ip[8], ip[9]) = (64, 6);
        ip[12..16].copy_from_slice(&from);
        ip[16..20].copy_from_slice(&THERE.octets());
        let check = sum(&[ip]);
        frame[24..26].copy_from_slice(&check.to_be_bytes());
        let segment = &mut frame[34..54];
        segment[..2].copy_from_slice(&port.to_be_bytes());
        segment[2..4].copy_from_slice(&self.to.to_be_bytes());
        segment[4..8].copy_from_slice(&self.numbers.0.to_be_bytes());
        segment[8..12].copy_from_slice(&self.numbers.1.to_be_bytes());
        (segment[12], segment[13]) = (0x50, self.flags);
        segment[14..16].copy_from_slice(&self.window.to_be_bytes());
        let check = sum(&[&from, &THERE.octets(), &[0, 6, 0, 20], segment]);
        frame[50..52].copy_from_slice(&check.to_be_bytes());
        frame
    }
}
