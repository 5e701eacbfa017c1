//! Requests to a device by one of its queues: each lies in a slot of memory that the device shares, and is one or two stretches that it reads, and one or
//! two that it writes.
//!
//! The device is believed nothing: what it says is done must have been asked, and what it says to have written must fit.

use core::ops::Range;

use alloc::vec::Vec;
use magpie::device::{DmaMemory, Registers};
use virtio_drivers::queue::VirtQueue;
use virtio_drivers::transport::Transport;

use super::dma::{self, Dma};
use crate::DriverError;

/// How many stretches there are at most of a kind.
const STRETCHES: usize = 2;

/// A request that is with the device.
#[derive(Clone)]
struct Flight {
    slot: usize,
    reads: [Range<usize>; STRETCHES],
    writes: [Range<usize>; STRETCHES],
}

/// One queue of `SIZE` descriptors, and the slots of its requests.
pub(crate) struct Ring<const SIZE: usize> {
    index: u16,
    queue: VirtQueue<Dma, SIZE>,
    slots: DmaMemory,
    slot_bytes: usize,
    /// By the number that the queue gave to each.
    flights: Vec<Option<Flight>>,
    /// What the queue lies in.
    _memory: Vec<DmaMemory>,
}

impl<const SIZE: usize> Ring<SIZE> {
    /// The device's queue `index`, for so many requests of so many bytes at a time.
    ///
    /// # Safety
    /// When this is dropped, the device of these registers, whose transport this is, is quiet: it uses neither queue nor slots any more.
    pub(super) unsafe fn new(
        registers: &Registers,
        transport: &mut impl Transport,
        index: u16,
        (slots, slot_bytes): (usize, usize),
    ) -> Result<Self, DriverError> {
        let slot_bytes = slot_bytes.next_multiple_of(64);
        let memory = DmaMemory::new(registers, slots.saturating_mul(slot_bytes), true)?;
        let (queue, pieces) = dma::building(registers, || {
            // Neither indirect descriptors, which would lie on the heap, nor notifications by index.
            VirtQueue::new(transport, index, false, false).map_err(|error| match error {
                virtio_drivers::Error::DmaError => DriverError::OutOfMemory,
                virtio_drivers::Error::AlreadyUsed => DriverError::Faulty("a queue is in use after a reset"),
                _ => DriverError::Faulty("a queue is shorter than what is needed"),
            })
        })?;
        let mut flights = Vec::new();
        flights.try_reserve_exact(SIZE).map_err(|_| DriverError::OutOfMemory)?;
        flights.resize(SIZE, None);
        Ok(Self { index, queue, slots: memory, slot_bytes, flights, _memory: pieces })
    }

    /// Whether requests are with the device.
    pub(super) fn is_busy(&self) -> bool {
        self.flights.iter().any(Option::is_some)
    }

    /// How many slots there are.
    fn slots(&self) -> usize {
        self.slots.bytes() / self.slot_bytes
    }

    /// Copies into a slot, from an offset on.
    ///
    /// # Panics
    /// They do not fit.
    pub(crate) fn write(&self, slot: usize, offset: usize, bytes: &[u8]) {
        self.slots.write(self.place(slot, &(offset..offset + bytes.len())).start, bytes);
    }

    /// Copies out of a slot, from an offset on.
    ///
    /// # Panics
    /// They are not all inside.
    pub(crate) fn read(&self, slot: usize, offset: usize, into: &mut [u8]) {
        self.slots.read(self.place(slot, &(offset..offset + into.len())).start, into);
    }

    /// Where a stretch of a slot lies.
    fn place(&self, slot: usize, stretch: &Range<usize>) -> Range<usize> {
        let is_inside = slot < self.slots() && stretch.start <= stretch.end && stretch.end <= self.slot_bytes;
        assert!(
            is_inside,
            "the bytes {stretch:?} of slot {slot} are not in a ring of {} slots of {} bytes",
            self.slots(),
            self.slot_bytes
        );
        slot * self.slot_bytes + stretch.start..slot * self.slot_bytes + stretch.end
    }

    /// Hands a slot's request to the device: what it reads, and what it writes. Empty stretches are left out. `false`: the queue is full.
    pub(super) fn submit(
        &mut self,
        transport: &mut impl Transport,
        slot: usize,
        reads: [Range<usize>; STRETCHES],
        writes: [Range<usize>; STRETCHES],
    ) -> bool {
        let is_there = self.flights.iter().flatten().any(|flight| flight.slot == slot);
        assert!(!is_there, "slot {slot} is with the device already");
        let (reads, writes) = (reads.map(|it| self.place(slot, &it)), writes.map(|it| self.place(slot, &it)));
        let flight = Flight { slot, reads, writes };
        // SAFETY: the stretches are in this ring's memory, which lives until the device is quiet, and nobody touches the slot until it has come back: `read` and
        // `write` of one that is with the device copy byte by byte, and may find or leave half of either.
        let added = flight.with(&self.slots, |reads, writes| unsafe { self.queue.add(reads, writes) });
        let Ok(token) = added else { return false };
        self.flights[usize::from(token)] = Some(flight);
        if self.queue.should_notify() {
            transport.notify(self.index);
        }
        true
    }

    /// A slot whose request the device has done, and how many bytes it has written; `None` if there is none.
    ///
    /// # Errors
    /// It says that something is done that it was not asked, or that more was written than there was room for.
    pub(super) fn completed(&mut self) -> Result<Option<(usize, usize)>, DriverError> {
        let Some(token) = self.queue.peek_used() else { return Ok(None) };
        let flight = self.flights.get_mut(usize::from(token)).and_then(Option::take);
        let flight = flight.ok_or(DriverError::Faulty("it has done what it was not asked"))?;
        // SAFETY: the same stretches as were added under this number.
        let popped =
            flight.with(&self.slots, |reads, writes| unsafe { self.queue.pop_used(token, reads, writes) });
        let written = popped.map_err(|_| DriverError::Faulty("what it has done changes"))? as usize;
        if written > flight.writes.iter().map(Range::len).sum() {
            return Err(DriverError::Faulty("it has written more than there was room for"));
        }
        Ok(Some((flight.slot, written)))
    }
}

impl Flight {
    /// Calls `use_them` with the stretches that are not empty, as slices.
    fn with<T>(
        &self,
        memory: &DmaMemory,
        use_them: impl for<'a> FnOnce(&'a [&'a [u8]], &'a mut [&'a mut [u8]]) -> T,
    ) -> T {
        let first = memory.as_ptr().as_ptr();
        // SAFETY: inside the memory, as `place` has checked, and nobody has another reference: what is copied is copied by pointers.
        let read = |it: &Range<usize>| unsafe { core::slice::from_raw_parts(first.add(it.start), it.len()) };
        // SAFETY: as above; the stretches of one request are apart, as those who make requests lay them out.
        let write =
            |it: &Range<usize>| unsafe { core::slice::from_raw_parts_mut(first.add(it.start), it.len()) };
        let mut reads: [&[u8]; STRETCHES] = [&[]; STRETCHES];
        let mut count = 0;
        for it in self.reads.iter().filter(|it| !it.is_empty()) {
            reads[count] = read(it);
            count += 1;
        }
        let mut writes: [&mut [u8]; STRETCHES] = Default::default();
        let mut written = 0;
        for it in self.writes.iter().filter(|it| !it.is_empty()) {
            writes[written] = write(it);
            written += 1;
        }
        use_them(&reads[..count], &mut writes[..written])
    }
}
