//! The process that drives a virtio disk: it takes orders, cuts them into requests of a few sectors, has several of these with the device at a time, and answers
//! when the last of an order is done.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::convert::Infallible;

use magpie::channel::{ProcessMailbox, Reply};
use magpie::registry;

use super::disk::{Answered, DiskError, Order, Ordered, SECTOR_BYTES};
use crate::DriverError;
use crate::race::{First, race};
use crate::virtio::{Device, Kind};

// Of the standard (virtio 1.3, 5.2).
const READ_ONLY: u64 = 1 << 5;
const CAN_FLUSH: u64 = 1 << 9;
const READ: u32 = 0;
const WRITE: u32 = 1;
const FLUSH: u32 = 4;
/// How a request went: it was done.
const OK: u8 = 0;
/// Before the device has said it.
const UNSAID: u8 = 0xff;

/// Descriptors of the queue; a request takes three.
const DESCRIPTORS: usize = 64;
/// Requests that are with the device at a time.
const SLOTS: usize = 16;
/// The most that one reads or writes.
const REQUEST_BYTES: usize = 8 * SECTOR_BYTES;
/// Where things lie in a slot, behind what is read or written: what is wanted, and how it went.
const HEAD: usize = REQUEST_BYTES;
const HEAD_BYTES: usize = 16;
const STATUS: usize = HEAD + HEAD_BYTES;
/// How many orders may wait, or be carried out.
const MOST_ORDERS: usize = 64;

/// Drives the first virtio disk that nobody drives, under this name: a [`Disk`](super::Disk) of that name reads and writes it. It returns only if it cannot, or
/// cannot any more.
///
/// If it crashes, or is killed, the disk is quiet at once, and who waits for an order is told. A supervisor starts it anew. It never ends when it is asked to, so the
/// supervisor waits for no time before it kills it:
///
/// ```
/// use core::time::Duration;
/// use magpie::supervise::{Child, StartError, Supervisor, SupervisorRef};
/// use magpie_drivers::block;
///
/// fn start() -> Result<SupervisorRef, StartError> {
///     let disk = Child::process("disk", |_| block::drive("disk")).within(Duration::ZERO);
///     Supervisor::one_for_one().child(disk).start()
/// }
/// # let _ = start;
/// ```
///
/// # Errors
/// [`DriverError`].
pub async fn drive(name: &'static str) -> Result<Infallible, DriverError> {
    let mut device = Device::open(Kind::Block, READ_ONLY | CAN_FLUSH).await?;
    device.add_ring(SLOTS, STATUS + 1)?;
    device.start();
    let sectors = u64::from(device.config(0)) | u64::from(device.config(4)) << 32;
    let mut mailbox = ProcessMailbox::new(MOST_ORDERS)?;
    // Kept, so that it has one although its name is taken away.
    let address = mailbox.address();
    registry::register(name, address.clone())?;
    let mut driver = Driver { device, sectors, work: VecDeque::new(), free: Vec::new(), out: Vec::new() };
    driver.work.try_reserve_exact(MOST_ORDERS).map_err(|_| DriverError::OutOfMemory)?;
    driver.free.try_reserve_exact(SLOTS).map_err(|_| DriverError::OutOfMemory)?;
    driver.free.extend(0..SLOTS);
    driver.out.try_reserve_exact(SLOTS).map_err(|_| DriverError::OutOfMemory)?;
    loop {
        driver.hand_out();
        let order = if driver.work.len() == MOST_ORDERS {
            driver.device.interrupted().await?;
            None
        } else {
            match race(mailbox.receive(), driver.device.interrupted()).await {
                First::One(order) => order,
                First::Other(come) => {
                    come?;
                    None
                }
            }
        };
        match order {
            Some(order) => driver.take(order),
            None => driver.collect()?,
        }
    }
}

/// What is read, written or made to last.
struct Work {
    number: u64,
    reply: Reply<Result<Answered, DiskError>>,
    kind: u32,
    sector: u64,
    bytes: Vec<u8>,
    /// How many bytes requests were made for; of a flush, one.
    made: usize,
    /// Requests of it that are with the device.
    out: usize,
    failed: Option<DiskError>,
}

/// A request that is with the device: whose, in which slot, and which bytes.
struct Request {
    number: u64,
    slot: usize,
    from: usize,
    bytes: usize,
}

struct Driver {
    device: Device<DESCRIPTORS>,
    sectors: u64,
    work: VecDeque<Work>,
    free: Vec<usize>,
    out: Vec<Request>,
}

impl Work {
    /// For how much requests are to be made in all.
    fn whole(&self) -> usize {
        if self.kind == FLUSH { 1 } else { self.bytes.len() }
    }

    fn is_done(&self) -> bool {
        self.out == 0 && (self.made == self.whole() || self.failed.is_some())
    }
}

impl Driver {
    /// Takes an order, and answers it at once if nothing is to be done.
    fn take(&mut self, Ordered { message, reply }: Ordered) {
        // Who does not wait any more loses the answer.
        let answer = |reply: Reply<_>, answer| drop(reply.send(answer));
        let (kind, sector, bytes) = match message {
            Order::Capacity => return answer(reply, Ok(Answered::Sectors(self.sectors))),
            Order::Flush if !self.device.has(CAN_FLUSH) => return answer(reply, Ok(Answered::Done)),
            Order::Write(..) if self.device.has(READ_ONLY) => return answer(reply, Err(DiskError::ReadOnly)),
            Order::Flush => (FLUSH, 0, Vec::new()),
            Order::Write(sector, bytes) => (WRITE, sector, bytes),
            Order::Read(sector, bytes) => (READ, sector, bytes),
        };
        if self.is_outside(sector, bytes.len()) {
            return answer(reply, Err(DiskError::Outside));
        }
        let number = self.work.back().map_or(0, |last| last.number + 1);
        self.work.push_back(Work { number, reply, kind, sector, bytes, made: 0, out: 0, failed: None });
    }

    fn is_outside(&self, sector: u64, bytes: usize) -> bool {
        let end = sector.checked_add((bytes / SECTOR_BYTES) as u64);
        !bytes.is_multiple_of(SECTOR_BYTES) || end.is_none_or(|end| end > self.sectors)
    }

    /// Gives the device as many requests as there is room for, and answers what is done.
    fn hand_out(&mut self) {
        self.answer();
        for work in &mut self.work {
            while work.made < work.whole() && work.failed.is_none() {
                let Some(slot) = self.free.pop() else { return };
                let bytes = work.bytes.len().saturating_sub(work.made).min(REQUEST_BYTES);
                let ring = self.device.ring(0);
                let mut head = [0; HEAD_BYTES];
                head[..4].copy_from_slice(&work.kind.to_le_bytes());
                let sector = work.sector + (work.made / SECTOR_BYTES) as u64;
                head[8..].copy_from_slice(&sector.to_le_bytes());
                ring.write(slot, HEAD, &head);
                ring.write(slot, STATUS, &[UNSAID]);
                if work.kind == WRITE {
                    ring.write(slot, 0, &work.bytes[work.made..work.made + bytes]);
                }
                let (reads, writes) = match work.kind {
                    WRITE => (0..bytes, 0..0),
                    _ => (0..0, 0..bytes),
                };
                let (head, status) = (HEAD..HEAD + HEAD_BYTES, STATUS..STATUS + 1);
                if !self.device.submit(0, slot, [head, reads], [writes, status]) {
                    self.free.push(slot);
                    return;
                }
                self.out.push(Request { number: work.number, slot, from: work.made, bytes });
                work.made += bytes.max(usize::from(work.kind == FLUSH));
                work.out += 1;
            }
        }
    }

    /// Takes what the device has done.
    fn collect(&mut self) -> Result<(), DriverError> {
        while let Some((slot, _)) = self.device.completed(0)? {
            let place = self.out.iter().position(|request| request.slot == slot);
            let place = place.ok_or(DriverError::Faulty("it has done what it was not asked"))?;
            let request = self.out.swap_remove(place);
            self.free.push(slot);
            let Some(work) = self.work.iter_mut().find(|work| work.number == request.number) else {
                continue;
            };
            let mut status = [UNSAID];
            self.device.ring(0).read(slot, STATUS, &mut status);
            work.out -= 1;
            if status != [OK] {
                work.failed = Some(DiskError::Failed);
            } else if work.kind == READ {
                let into = &mut work.bytes[request.from..request.from + request.bytes];
                self.device.ring(0).read(slot, 0, into);
            }
        }
        Ok(())
    }

    /// Answers the orders that are done, whichever came first.
    fn answer(&mut self) {
        let mut index = 0;
        while index < self.work.len() {
            if !self.work[index].is_done() {
                index += 1;
                continue;
            }
            let Some(work) = self.work.remove(index) else { return };
            let answer = match (work.failed, work.kind) {
                (Some(error), _) => Err(error),
                (None, READ) => Ok(Answered::Bytes(work.bytes)),
                (None, _) => Ok(Answered::Done),
            };
            // Who does not wait any more loses it.
            drop(work.reply.send(answer));
        }
    }
}
