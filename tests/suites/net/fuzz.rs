//! Real frames, changed: between two networks that talk stands somebody who hands on each frame, or not, and broken copies of it besides, with right check sums more often than not.

use alloc::vec::Vec;
use core::future::poll_fn;
use core::pin::pin;
use core::task::Poll;
use core::time::Duration;

use magpie::internals::Random;
use magpie::sched::JoinHandle;
use magpie::{sched, time};
use magpie_net::{Addressing, Cable, Config, Error, FRAME_BYTES, Faults, Frame, Link, LinkEvent, Network};
use magpie_tests::{amount, ensure, kernel_test};

use crate::by_hand::sum;
use crate::common::{HERE, THERE, at, echo, heap_in_use, there_and_back};

const FRAMES: usize = 64;
/// How many frames are remembered, to put pieces of one into another.
const REMEMBERED: usize = 32;
/// How many in a hundred get lost.
const LOST: usize = 5;
/// A listener's sockets in store: the only ones that stay. Connections that rest after their end are gone after a second.
const STORED: usize = 8;
/// What may be in use beside what was before: a few connections' places, and what a core keeps for next time.
const SLACK: usize = 64 << 10;
/// How long it takes until it looks again whether all has come back.
const A_MOMENT: Duration = Duration::from_millis(10);
/// For what takes seconds: it decides nothing but that a test ends.
const PATIENCE: Duration = Duration::from_secs(40);

/// One end: the link, and frames for what is to be handed to its network.
struct End {
    link: Link,
    free: Vec<Frame>,
}

/// Somebody in the middle.
struct Middle {
    ends: [End; 2],
    random: Random,
    remembered: Vec<Vec<u8>>,
    left: u64,
}

impl Middle {
    fn new(here: &Network, there: &Network, seed: u64, changed: u64) -> Result<Self, Error> {
        let end = |network, last| {
            let (link, free) = Link::attach(network, [2, 0, 0, 0, 2, last], FRAMES, FRAMES)?;
            Ok::<_, Error>(End { link, free })
        };
        let ends = [end(here, 1)?, end(there, 2)?];
        Ok(Self { ends, random: Random::new(seed, 0), remembered: Vec::new(), left: changed })
    }

    /// Carries frames until so many were changed.
    async fn run(mut self) -> Result<(), Error> {
        while self.left > 0 {
            let (from, event) = self.next().await;
            match event.ok_or(Error::Stopped)? {
                LinkEvent::Again(frame) => self.ends[from].free.push(frame),
                LinkEvent::Send(frame) => {
                    let bytes = frame.bytes().to_vec();
                    self.ends[from].link.sent(frame)?;
                    self.carry(from, bytes)?;
                }
            }
            if sched::is_exhausted() {
                sched::yield_now().await;
            }
        }
        Ok(())
    }

    /// What either network says next.
    async fn next(&mut self) -> (usize, Option<LinkEvent>) {
        let [one, other] = &mut self.ends;
        let (mut one, mut other) = (pin!(one.link.next()), pin!(other.link.next()));
        let next = poll_fn(|context| {
            if let Poll::Ready(event) = one.as_mut().poll(context) {
                return Poll::Ready((0, event));
            }
            other.as_mut().poll(context).map(|event| (1, event))
        });
        next.await
    }

    fn carry(&mut self, from: usize, bytes: Vec<u8>) -> Result<(), Error> {
        for _ in 0..self.random.below(3) {
            let mut changed = bytes.clone();
            self.change(&mut changed);
            // Its own side hears it now and then.
            let to = if self.random.below(8) == 0 { from } else { 1 - from };
            self.hand_on(to, &changed)?;
            self.left = self.left.saturating_sub(1);
        }
        if self.random.below(100) >= LOST {
            self.hand_on(1 - from, &bytes)?;
        }
        if self.remembered.len() < REMEMBERED {
            self.remembered.push(bytes);
        } else {
            let place = self.random.below(REMEMBERED);
            self.remembered[place] = bytes;
        }
        Ok(())
    }

    fn hand_on(&mut self, to: usize, bytes: &[u8]) -> Result<(), Error> {
        let End { link, free } = &mut self.ends[to];
        let Some(mut frame) = free.pop() else { return Ok(()) };
        frame.room()[..bytes.len()].copy_from_slice(bytes);
        frame.set_length(bytes.len());
        link.received(frame)
    }

    fn change(&self, bytes: &mut Vec<u8>) {
        let below = |bound: usize| self.random.below(bound.max(1));
        for _ in 0..=below(3) {
            let length = bytes.len();
            // Headers are where it hurts.
            let place = if below(4) > 0 { below(length.min(74)) } else { below(length) };
            match below(7) {
                0 if length > 0 => bytes[place] ^= 1 << below(8),
                1 if length > 0 => bytes[place] = self.random.bits() as u8,
                2 if length > 0 => bytes[place] = [0, 1, 0x7f, 0x80, 0xff][below(5)],
                3 => bytes.truncate(place),
                4 => {
                    let more = below(FRAME_BYTES - length + 1).min(100);
                    bytes.extend((0..more).map(|_| self.random.bits() as u8));
                }
                5 if !self.remembered.is_empty() => {
                    let other = &self.remembered[below(self.remembered.len())];
                    let end = length.min(other.len());
                    if place < end {
                        let end = place + below(end - place) + 1;
                        bytes[place..end].copy_from_slice(&other[place..end]);
                    }
                }
                // A number somewhere: a length, an offset, a port.
                _ if place + 2 <= length => {
                    let number = self.random.bits() as u16 >> below(16);
                    bytes[place..place + 2].copy_from_slice(&number.to_be_bytes());
                }
                _ => {}
            }
        }
        if below(4) > 0 {
            // For either, so that it is not thrown away at once.
            amend(bytes);
        }
    }
}

/// Makes check sums right, as far as there is something that has them.
fn amend(bytes: &mut [u8]) {
    let Some(packet) = bytes.get_mut(14..) else { return };
    let header = packet.first().map_or(0, |first| usize::from(first & 15) * 4);
    if header < 20 || packet.len() < header {
        return;
    }
    packet[10..12].fill(0);
    let check = sum(&[&packet[..header]]);
    packet[10..12].copy_from_slice(&check.to_be_bytes());
    let whole = usize::from(u16::from_be_bytes([packet[2], packet[3]])).min(packet.len());
    if whole < header {
        return;
    }
    let (kind, addresses): (u8, [u8; 8]) = (packet[9], core::array::from_fn(|at| packet[12 + at]));
    let segment = &mut packet[header..whole];
    let (place, is_with_addresses) = match kind {
        1 => (2, false),
        6 => (16, true),
        17 => (6, true),
        _ => return,
    };
    if segment.len() < place + 2 {
        return;
    }
    segment[place..place + 2].fill(0);
    let length = (segment.len() as u16).to_be_bytes();
    let pseudo = [0, kind, length[0], length[1]];
    let check = if is_with_addresses { sum(&[&addresses, &pseudo, segment]) } else { sum(&[segment]) };
    segment[place..place + 2].copy_from_slice(&check.to_be_bytes());
}

/// Talks without end, and takes what comes: connections, datagrams, names.
async fn talk(here: Network, there: Network, number: u16) -> Result<(), Error> {
    const A_WHILE: Duration = Duration::from_millis(100);
    let mut own = there.bind(1000 + number, 4, 4096).await?;
    let mut socket = here.bind(0, 4, 4096).await?;
    let mut bytes = [0; 700];
    loop {
        // What becomes of it is the other's affair, and somebody's in the middle.
        let _ = time::timeout(A_WHILE, async {
            let mut stream = here.connect(at(THERE, 7)).await?;
            for _ in 0..5 {
                stream.write_all(&[number as u8; 3000]).await?;
                stream.read(&mut bytes).await?;
            }
            stream.close().await
        })
        .await;
        let _ = time::timeout(A_WHILE / 10, async {
            socket.send_to(&bytes[..600], at(THERE, 1000 + number)).await?;
            let (count, from) = own.receive_from(&mut bytes).await?;
            own.send_to(&bytes[..count], from).await?;
            socket.receive_from(&mut bytes).await.map(drop)
        })
        .await;
        let _ = time::timeout(A_WHILE / 10, here.resolve("magpie.test")).await;
    }
}

kernel_test! {
    /// Neither network crashes, whatever comes; memory stays as it was; and over a good cable they go on.
    async fn changed_frames_are_no_trouble() -> Outcome {
        let addressing = Addressing::Fixed { address: HERE, prefix: 24, gateway: Some(THERE), names: Some(THERE) };
        let short = |config| Config { timeout: Duration::from_secs(2), linger: Duration::from_secs(1), ..config };
        let here = Network::start(short(Config { addressing, ..Config::dhcp() }))?;
        let there = Network::start(short(Config::fixed(THERE, 24)))?;
        sched::spawn(echo(there.listen(7, STORED).await?))?;
        let mut used = None;
        for round in 0..4 {
            let talkers: Vec<JoinHandle<_>> = (0..8)
                .map(|number| sched::spawn(talk(here.clone(), there.clone(), number)))
                .collect::<Result<_, _>>()?;
            let middle = Middle::new(&here, &there, amount("seed", 1) + round, amount("changed", 2000))?;
            sched::spawn(middle.run())?.await??;
            for talker in talkers {
                ensure!(!talker.process().is_done(), "one could not go on");
                talker.process().kill();
                ensure!(talker.await.is_err(), "one has ended");
            }
            let _cable = Cable::connect(&here, &there, Faults::none())?;
            let stream = time::timeout(PATIENCE, async {
                loop {
                    // What the middle has left of connections may be in the way at first.
                    if let Ok(stream) = here.connect(at(THERE, 7)).await {
                        return stream;
                    }
                }
            });
            there_and_back(stream.await?, 1, 50_000).await?;
            let rest = async {
                while here.statistics().await?.sockets > 0 || there.statistics().await?.sockets > STORED {
                    time::sleep(A_MOMENT).await;
                }
                Ok::<_, Error>(())
            };
            time::timeout(PATIENCE, rest).await??;
            let first = *used.get_or_insert_with(heap_in_use);
            let given_back = async {
                while heap_in_use() > first + SLACK {
                    time::sleep(A_MOMENT).await;
                }
            };
            let is_given_back = time::timeout(PATIENCE, given_back).await.is_ok();
            ensure!(is_given_back, "{} bytes are in use, {first} were after the first round", heap_in_use());
        }
        Ok(())
    }
}
