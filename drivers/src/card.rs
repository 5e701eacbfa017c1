//! A network card of virtio: the process that carries frames between it and a [`Network`].
//!
//! Frames are copied into and out of the slots that the card shares. As many frames of the network's are with the card as it has slots; what comes and finds no free
//! frame stays in its slot, and the card loses what it has no slot for. So a flood costs no memory.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::convert::Infallible;

use magpie::channel::ProcessMailbox;
use magpie::registry;
use magpie_net::{FRAME_BYTES, Frame, Link, LinkEvent, Network};

use crate::DriverError;
use crate::race::{First, race};
use crate::virtio::{Device, Kind};

// Of the standard (virtio 1.3, 5.1).
const HAS_MAC: u64 = 1 << 5;
/// What stands before a frame. Of a legacy card two bytes less: nothing is wanted of the card, so all of it is zero.
const HEAD_BYTES: usize = 12;
const LEGACY_HEAD_BYTES: usize = 10;

/// Descriptors of a queue, and requests: one each.
const DESCRIPTORS: usize = 64;
/// The rings, by their numbers in the standard.
const RECEIVE: usize = 0;
const SEND: usize = 1;
/// Frames that one interrupt brings at most before others have a turn.
const AT_A_TIME: u64 = 64;

/// Drives the first virtio network card that nobody drives, and is the network's link. It returns only if it cannot, or cannot any more. The process has this name, by
/// which it can be found, and killed.
///
/// If it crashes, or is killed, the card is quiet at once. Connections stay, and go on when a supervisor has started it anew:
///
/// ```
/// use core::time::Duration;
/// use magpie::supervise::{Child, StartError, Supervisor, SupervisorRef};
/// use magpie_drivers::card;
/// use magpie_net::Network;
///
/// fn start(network: &Network) -> Result<SupervisorRef, StartError> {
///     let network = network.clone();
///     let card = Child::process("card", move |_| card::drive("card", network.clone())).within(Duration::ZERO);
///     Supervisor::one_for_one().child(card).start()
/// }
/// # let _ = start;
/// ```
///
/// # Errors
/// [`DriverError`].
pub async fn drive(name: &'static str, network: Network) -> Result<Infallible, DriverError> {
    let mut device = Device::open(Kind::Card, HAS_MAC).await?;
    let head = if device.is_modern() { HEAD_BYTES } else { LEGACY_HEAD_BYTES };
    device.add_ring(DESCRIPTORS, head + FRAME_BYTES)?;
    device.add_ring(DESCRIPTORS, head + FRAME_BYTES)?;
    device.start();
    if !device.has(HAS_MAC) {
        return Err(DriverError::Faulty("the card has no address"));
    }
    let [low, high] = [device.config(0).to_le_bytes(), device.config(4).to_le_bytes()];
    let mac = [low[0], low[1], low[2], low[3], high[0], high[1]];
    let (link, free) =
        Link::attach(&network, mac, DESCRIPTORS, DESCRIPTORS).map_err(|_| DriverError::NoNetwork)?;
    drop(network);
    // What has a name is a mailbox: nobody writes, and whoever asks for its owner finds this process.
    let mut named = ProcessMailbox::<Infallible>::new(1)?;
    let _nothing = named.try_receive();
    registry::register(name, named.address())?;
    let mut card =
        Card { device, head, link, free, come: VecDeque::new(), rooms: Vec::new(), out: Vec::new() };
    card.come.try_reserve_exact(DESCRIPTORS).map_err(|_| DriverError::OutOfMemory)?;
    card.rooms.try_reserve_exact(DESCRIPTORS).map_err(|_| DriverError::OutOfMemory)?;
    card.rooms.extend(0..DESCRIPTORS);
    card.out.try_reserve_exact(DESCRIPTORS).map_err(|_| DriverError::OutOfMemory)?;
    for slot in 0..DESCRIPTORS {
        card.listen(slot)?;
    }
    card.carry().await
}

struct Card {
    device: Device<DESCRIPTORS>,
    head: usize,
    link: Link,
    /// For what comes.
    free: Vec<Frame>,
    /// Slots in which something has come, and how long it is, that wait for a frame.
    come: VecDeque<(usize, usize)>,
    /// Slots for sending that are free.
    rooms: Vec<usize>,
    /// Frames that are being sent, and their slots.
    out: Vec<(usize, Frame)>,
}

impl Card {
    async fn carry(&mut self) -> Result<Infallible, DriverError> {
        loop {
            match race(self.link.next(), self.device.interrupted()).await {
                First::One(event) => {
                    self.take(event.ok_or(DriverError::NoNetwork)?)?;
                    // What waits already: one interrupt of the card's for all of it.
                    for _ in 1..AT_A_TIME {
                        let Some(event) = self.link.try_next() else { break };
                        self.take(event)?;
                    }
                }
                First::Other(come) => {
                    come?;
                    self.collect()?;
                }
            }
            magpie::sched::charge(AT_A_TIME);
            if magpie::sched::is_exhausted() {
                magpie::sched::yield_now().await;
            }
        }
    }

    /// Gives the card a slot for what comes.
    fn listen(&mut self, slot: usize) -> Result<(), DriverError> {
        let room = self.head + FRAME_BYTES;
        match self.device.submit(RECEIVE, slot, [0..0, 0..0], [0..room, 0..0]) {
            true => Ok(()),
            false => Err(DriverError::Faulty("its queue is full before its slots are")),
        }
    }

    /// Does what the network asks.
    fn take(&mut self, event: LinkEvent) -> Result<(), DriverError> {
        match event {
            LinkEvent::Send(frame) => {
                let Some(slot) = self.rooms.pop() else {
                    // The network has no more frames than there are slots.
                    return self.link.sent(frame).map_err(|_| DriverError::NoNetwork);
                };
                let end = self.head + frame.bytes().len();
                let ring = self.device.ring(SEND);
                ring.write(slot, 0, &[0; HEAD_BYTES][..self.head]);
                ring.write(slot, self.head, frame.bytes());
                if !self.device.submit(SEND, slot, [0..end, 0..0], [0..0, 0..0]) {
                    return Err(DriverError::Faulty("its queue is full before its slots are"));
                }
                self.out.push((slot, frame));
                Ok(())
            }
            LinkEvent::Again(frame) => {
                if self.free.len() < self.free.capacity() {
                    self.free.push(frame);
                }
                self.hand_in()
            }
        }
    }

    /// Takes what the card has sent, and what has come.
    fn collect(&mut self) -> Result<(), DriverError> {
        while let Some((slot, _)) = self.device.completed(SEND)? {
            let place = self.out.iter().position(|(sent, _)| *sent == slot);
            let place = place.ok_or(DriverError::Faulty("it has done what it was not asked"))?;
            let (_, frame) = self.out.swap_remove(place);
            self.rooms.push(slot);
            self.link.sent(frame).map_err(|_| DriverError::NoNetwork)?;
        }
        while let Some((slot, bytes)) = self.device.completed(RECEIVE)? {
            let length = bytes.checked_sub(self.head);
            self.come.push_back((slot, length.ok_or(DriverError::Faulty("what has come has no head"))?));
        }
        self.hand_in()
    }

    /// Hands what has come to the network, as long as there are frames, and its slots to the card.
    fn hand_in(&mut self) -> Result<(), DriverError> {
        while !self.come.is_empty()
            && let Some(mut frame) = self.free.pop()
            && let Some((slot, length)) = self.come.pop_front()
        {
            self.device.ring(RECEIVE).read(slot, self.head, &mut frame.room()[..length]);
            frame.set_length(length);
            self.listen(slot)?;
            self.link.received(frame).map_err(|_| DriverError::NoNetwork)?;
        }
        Ok(())
    }
}
