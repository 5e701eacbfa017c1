//! smoltcp's view of the link: one frame that has come, and frames to fill.

use alloc::vec::Vec;
use core::cell::Cell;

use magpie::channel::{ProcessAddr, SendError};
use smoltcp::phy::{Device, DeviceCapabilities, Medium, RxToken, TxToken};
use smoltcp::time::Instant;

use super::acknowledging::Acknowledging;
use crate::frame::{FRAME_BYTES, Frame};
use crate::link::LinkEvent;

/// What there is of the link.
pub struct Port {
    come: Option<Frame>,
    /// It was read, and is to go back.
    read: Cell<Option<Frame>>,
    outward: Outward,
}

/// The way out.
pub struct Outward {
    to: Option<ProcessAddr<LinkEvent>>,
    /// Which link it is: what one says that is no more is not heard.
    number: u64,
    free: Vec<Frame>,
    /// Frames that were read, and that there was no memory for to give them back. There is room for all.
    kept: Vec<Frame>,
    /// Where answers are written that there is no frame for.
    scrap: Frame,
    acknowledging: Acknowledging,
    pub sent: u64,
    pub dropped_answers: u64,
}

impl Port {
    pub const fn new(scrap: Frame, acknowledging: Acknowledging) -> Self {
        let outward = Outward {
            to: None,
            number: 0,
            free: Vec::new(),
            kept: Vec::new(),
            scrap,
            acknowledging,
            sent: 0,
            dropped_answers: 0,
        };
        Self { come: None, read: Cell::new(None), outward }
    }

    pub const fn outward(&self) -> &Outward {
        &self.outward
    }

    /// There is another link now, with frames of its own.
    pub fn attach(&mut self, number: u64, to: ProcessAddr<LinkEvent>, frames: Vec<Frame>, kept: Vec<Frame>) {
        let outward = &mut self.outward;
        (outward.number, outward.to, outward.free, outward.kept) = (number, Some(to), frames, kept);
    }

    pub const fn number(&self) -> u64 {
        self.outward.number
    }

    /// Whether a frame could be sent.
    pub const fn has_room(&self) -> bool {
        self.outward.to.is_some() && !self.outward.free.is_empty()
    }

    /// A frame has gone, and may be used again. There was a place for it when it was made.
    pub fn take_back(&mut self, frame: Frame) {
        if self.outward.free.len() < self.outward.free.capacity() {
            self.outward.free.push(frame);
        }
    }

    /// A frame has come: the next `receive` finds it.
    pub fn put(&mut self, frame: Frame) {
        self.outward.acknowledging.hear(frame.bytes());
        self.come = Some(frame);
    }

    /// It was read.
    pub fn give_back(&mut self, mut frame: Frame) {
        frame.set_length(0);
        self.outward.tell(LinkEvent::Again(frame));
    }

    /// Gives back what smoltcp has read.
    pub fn give_back_read(&mut self) {
        if let Some(frame) = self.read.take().or_else(|| self.come.take()) {
            self.give_back(frame);
        }
    }

    /// Gives back what was kept, as far as there is memory. Whether nothing is kept any more.
    pub fn give_back_kept(&mut self) -> bool {
        for _ in 0..self.outward.kept.len() {
            let Some(frame) = self.outward.kept.pop() else { break };
            self.give_back(frame);
        }
        self.outward.kept.is_empty()
    }
}

impl Outward {
    pub const fn is_up(&self) -> bool {
        self.to.is_some()
    }

    fn tell(&mut self, event: LinkEvent) {
        let Some(to) = &self.to else { return };
        match to.send(event) {
            Ok(_) => {}
            Err(SendError::Ended(_)) => {
                // It has crashed, or ended. Another may come.
                self.to = None;
                self.free = Vec::new();
            }
            // Without memory for the message the frame is lost on its way, but not its room.
            Err(SendError::OutOfMemory(LinkEvent::Send(frame))) => self.free.push(frame),
            // The link would have no frame any more for what comes.
            Err(SendError::OutOfMemory(LinkEvent::Again(frame)))
                if self.kept.len() < self.kept.capacity() =>
            {
                self.kept.push(frame);
            }
            Err(_) => {}
        }
    }
}

/// The frame that has come, and where it is left when it was read.
pub struct Come<'a>(Frame, &'a Cell<Option<Frame>>);

impl RxToken for Come<'_> {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, read: F) -> R {
        let Self(frame, place) = self;
        let result = read(frame.bytes());
        place.set(Some(frame));
        result
    }
}

/// Room for a frame: of the link's, or scrap.
pub struct Room<'a>(&'a mut Outward);

impl TxToken for Room<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, length: usize, write: F) -> R {
        let length = length.min(FRAME_BYTES);
        let Some(mut frame) = self.0.free.pop() else {
            self.0.dropped_answers += 1;
            return write(&mut self.0.scrap.room()[..length]);
        };
        let result = write(&mut frame.room()[..length]);
        frame.set_length(length);
        self.0.acknowledging.amend(frame.bytes_mut());
        self.0.sent += 1;
        self.0.tell(LinkEvent::Send(frame));
        result
    }
}

impl Device for Port {
    type RxToken<'a> = Come<'a>;
    type TxToken<'a> = Room<'a>;

    fn receive(&mut self, _now: Instant) -> Option<(Come<'_>, Room<'_>)> {
        let frame = self.come.take()?;
        Some((Come(frame, &self.read), Room(&mut self.outward)))
    }

    fn transmit(&mut self, _now: Instant) -> Option<Room<'_>> {
        self.has_room().then_some(Room(&mut self.outward))
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ethernet;
        capabilities.max_transmission_unit = FRAME_BYTES;
        capabilities
    }
}
