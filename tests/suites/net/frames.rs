//! Frames by hand: malformed ones, floods, and requests from nowhere.

use alloc::vec::Vec;
use core::time::Duration;

use magpie::internals::Random;
use magpie::{sched, time};
use magpie_net::{Cable, Config, Error, FRAME_BYTES, Faults, Frame, Link, LinkEvent, Network};
use magpie_tests::{Failure, amount, ensure, kernel_test};

use crate::common::{HERE, THERE, at, echo, there_and_back};

/// Bytes of the heap that are in use; none on the host, whose allocator does not say.
pub fn heap_in_use() -> usize {
    #[cfg(target_os = "none")]
    return magpie::internals::mem::heap::HEAP.usage().0;
    #[cfg(not(target_os = "none"))]
    0
}

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

/// A link by hand: frames that are made here come, and what is sent is heard.
pub struct Hand {
    link: Link,
    free: Vec<Frame>,
    /// What was sent last.
    heard: Option<Vec<u8>>,
}

impl Hand {
    pub fn new(network: &Network) -> Result<Self, Error> {
        let (link, free) = Link::attach(network, [2, 0, 0, 0, 0, 2], 16, 16)?;
        Ok(Self { link, free, heard: None })
    }

    /// What the network sends next, or has sent since this was asked last.
    pub async fn hear(&mut self) -> Result<Vec<u8>, Failure> {
        loop {
            if let Some(heard) = self.heard.take() {
                return Ok(heard);
            }
            let event = time::timeout(Duration::from_secs(20), self.link.next()).await?;
            self.take(event.ok_or("the network has ended")?)?;
        }
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
                self.heard = Some(frame.bytes().to_vec());
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

/// A request for a connection, whole and right: from that address and port of the network of `THERE`.
fn request(from: [u8; 4], port: u16, to: u16) -> [u8; 54] {
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
    segment[2..4].copy_from_slice(&to.to_be_bytes());
    segment[4] = 0x77;
    (segment[12], segment[13], segment[14]) = (0x50, 2, 0x20);
    let check = sum(&[&from, &THERE.octets(), &[0, 6, 0, 20], segment]);
    frame[50..52].copy_from_slice(&check.to_be_bytes());
    frame
}

kernel_test! {
    /// Half-open connections from a flood keep others waiting, and not out.
    async fn a_flood_of_requests_is_got_over() -> Outcome {
        let there = Network::start(Config { half_open: Duration::from_secs(2), ..Config::fixed(THERE, 24) })?;
        sched::spawn(echo(there.listen(7, 4).await?))?;
        let mut hand = Hand::new(&there)?;
        for number in 0..amount("flood", 2000) {
            let from = [10, 0, 0, 100 + (number % 100) as u8];
            hand.receive(&request(from, 1024 + number as u16, 7)).await?;
        }
        let statistics = there.statistics().await?;
        ensure!(statistics.backlog_full > 0, "nobody was kept waiting: {statistics:?}");
        ensure!(statistics.sockets <= 5, "{} sockets", statistics.sockets);
        drop(hand);
        let here = Network::start(Config::fixed(HERE, 24))?;
        let _cable = Cable::connect(&here, &there, Faults::none())?;
        let stream = time::timeout(Duration::from_secs(30), here.connect(at(THERE, 7))).await??;
        there_and_back(stream, 1, 10_000).await
    }
}

kernel_test! {
    /// Whatever comes, the network lives. Random bytes, and right frames with some of them changed.
    async fn malformed_frames_are_no_trouble() -> Outcome {
        let there = Network::start(Config::fixed(THERE, 24))?;
        sched::spawn(echo(there.listen(7, 4).await?))?;
        let mut hand = Hand::new(&there)?;
        let random = Random::new(amount("seed", 1), 0);
        let mut bytes = [0; FRAME_BYTES];
        for round in 0..amount("frames", 20_000) {
            let length = if round % 3 == 0 {
                let length = random.below(200);
                bytes[..length].fill_with(|| random.bits() as u8);
                if length > 14 {
                    // For this card, so that it is not thrown away at once.
                    bytes[..6].copy_from_slice(&[2, 0, 0, 0, 0, 2]);
                    bytes[12..14].copy_from_slice(&if random.below(2) == 0 { [8, 0] } else { [8, 6] });
                }
                length
            } else {
                let frame = request([10, 0, 0, 7], 4000 + random.below(4) as u16, 7);
                bytes[..frame.len()].copy_from_slice(&frame);
                for _ in 0..random.below(4) {
                    bytes[14 + random.below(frame.len() - 14)] = random.bits() as u8;
                }
                // The header's sum made right again, so that what is behind it is looked at.
                bytes[24..26].fill(0);
                let check = sum(&[&bytes[14..34]]);
                bytes[24..26].copy_from_slice(&check.to_be_bytes());
                frame.len() - random.below(3)
            };
            let frame = bytes;
            hand.receive(&frame[..length]).await?;
        }
        let statistics = there.statistics().await?;
        ensure!(statistics.received >= amount("frames", 20_000), "{statistics:?}");
        drop(hand);
        let here = Network::start(Config::fixed(HERE, 24))?;
        let _cable = Cable::connect(&here, &there, Faults::none())?;
        let stream = time::timeout(Duration::from_secs(30), here.connect(at(THERE, 7))).await??;
        there_and_back(stream, 1, 10_000).await
    }
}
