//! The loop: what has come on the line goes to the network, and what the network sends goes on the line. Nobody waits in it for room, and nothing is allocated.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::convert::Infallible;
use core::future::pending;

use magpie_net::{Frame, Link, LinkEvent};

use super::ethernet::{self, Answer, HEAD_BYTES};
use super::port::{Come, Port};
use super::slip::{Decoder, Encoder};
use crate::DriverError;
use crate::race::{First, race};

/// Frames that may be on their way, each way. Few, so that what is sent waits where it was written, and not on a slow line.
pub const SENDING: usize = 4;
pub const RECEIVING: usize = 8;
/// So many bytes each way, at most, before others have a turn.
const AT_A_TIME: u64 = 256;

/// The line, and what is on its way.
pub struct Carrier {
    port: Port,
    link: Link,
    /// For what comes.
    free: Vec<Frame>,
    /// In which a packet is put together, behind the room for a head.
    filling: Option<Frame>,
    decoder: Decoder,
    /// The first of them is being sent.
    out: VecDeque<Frame>,
    encoder: Encoder,
    /// An answer that waits for a frame. If there is another question meanwhile it comes again.
    answer: Option<Answer>,
}

impl Carrier {
    pub fn new(port: Port, link: Link, free: Vec<Frame>) -> Result<Self, DriverError> {
        let mut out = VecDeque::new();
        out.try_reserve_exact(SENDING).map_err(|_| DriverError::OutOfMemory)?;
        let (decoder, encoder) = (Decoder::default(), Encoder::default());
        Ok(Self { port, link, free, filling: None, decoder, out, encoder, answer: None })
    }

    /// Until the network has ended, or has another link.
    pub async fn run(&mut self) -> Result<Infallible, DriverError> {
        loop {
            // First, so that room is waited for only where it was just found that there is none.
            while let Some(event) = self.link.try_next() {
                self.take(event)?;
            }
            let moved = self.receive()? + self.send()?;
            magpie::sched::charge(moved);
            if magpie::sched::is_exhausted() {
                magpie::sched::yield_now().await;
            }
            if moved > 0 {
                continue;
            }
            // Without a frame for it nothing more is taken from the line.
            let (hears, speaks) = (self.has_room(), !self.out.is_empty());
            let Self { port, link, .. } = self;
            let port = async {
                match hears || speaks {
                    true => port.wait(hears, speaks).await,
                    false => pending().await,
                }
            };
            match race(link.next(), port).await {
                First::One(event) => self.take(event.ok_or(DriverError::NoNetwork)?)?,
                First::Other(done) => done?,
            }
        }
    }

    fn has_room(&self) -> bool {
        self.filling.is_some() || !self.free.is_empty()
    }

    /// Takes what has come on the line. Returns how many bytes.
    fn receive(&mut self) -> Result<u64, DriverError> {
        for count in 0..AT_A_TIME {
            if self.filling.is_none() {
                self.filling = self.free.pop();
            }
            let Some(frame) = &mut self.filling else { return Ok(count) };
            let length = match self.port.receive() {
                None => return Ok(count),
                Some(Come::Garbled) => {
                    self.decoder.spoil();
                    continue;
                }
                Some(Come::Byte(byte)) => self.decoder.push(byte, &mut frame.room()[HEAD_BYTES..]),
            };
            let Some(length) = length else { continue };
            let room = frame.room();
            let Some(head) = ethernet::head_of(&room[HEAD_BYTES..][..length]) else { continue };
            room[..HEAD_BYTES].copy_from_slice(&head);
            frame.set_length(HEAD_BYTES + length);
            if let Some(frame) = self.filling.take() {
                self.link.received(frame).map_err(|_| DriverError::NoNetwork)?;
            }
        }
        Ok(AT_A_TIME)
    }

    /// Sends what there is room for. Returns how many bytes.
    fn send(&mut self) -> Result<u64, DriverError> {
        let mut count = 0;
        while let Some(frame) = self.out.front() {
            let packet = ethernet::packet_in(frame.bytes()).unwrap_or_default();
            let mut next = self.encoder;
            let Some(byte) = next.next(packet) else {
                self.encoder = Encoder::default();
                if let Some(frame) = self.out.pop_front() {
                    self.link.sent(frame).map_err(|_| DriverError::NoNetwork)?;
                }
                continue;
            };
            if count == AT_A_TIME || !self.port.send(byte) {
                break;
            }
            self.encoder = next;
            count += 1;
        }
        Ok(count)
    }

    /// Does what the network asks.
    fn take(&mut self, event: LinkEvent) -> Result<(), DriverError> {
        match event {
            LinkEvent::Send(frame) => {
                if let Some(answer) = ethernet::answer_to(frame.bytes()) {
                    self.answer = Some(answer);
                } else if ethernet::packet_in(frame.bytes()).is_some() && self.out.len() < self.out.capacity()
                {
                    self.out.push_back(frame);
                    return Ok(());
                }
                self.link.sent(frame).map_err(|_| DriverError::NoNetwork)?;
            }
            LinkEvent::Again(frame) => {
                if self.free.len() < self.free.capacity() {
                    self.free.push(frame);
                }
            }
        }
        self.tell_answer()
    }

    /// Tells the network whose address it has asked for, if there is a frame for it.
    fn tell_answer(&mut self) -> Result<(), DriverError> {
        if self.answer.is_some()
            && let Some(mut frame) = self.free.pop()
            && let Some(answer) = self.answer.take()
        {
            frame.room()[..answer.len()].copy_from_slice(&answer);
            frame.set_length(answer.len());
            self.link.received(frame).map_err(|_| DriverError::NoNetwork)?;
        }
        Ok(())
    }
}
