//! The card in the slot of the Raspberry Pi 4: a [`Disk`](crate::block::Disk) like any other, by its host controller. Words are moved by the cores, not by DMA.

mod card;
mod host;

use core::convert::Infallible;

use magpie::channel::{ProcessMailbox, Request};
use magpie::registry;

use self::card::Card;
use crate::DriverError;
use crate::block::{Answered, DiskError, Order, Ordered, SECTOR_BYTES};

const MOST_ORDERS: usize = 64;

/// Drives the card in the slot, under this name: a [`Disk`](crate::block::Disk) of that name reads and writes it. It returns only if it cannot, or cannot any more: if the card was
/// taken out, for one. Best a supervisor's child, which waits for no time before it kills it.
///
/// A write that has been answered is on the card. What was being written when the driver was killed, or the power failed, may be written by half.
///
/// ```
/// use core::time::Duration;
/// use magpie::supervise::{Child, StartError, Supervisor, SupervisorRef};
/// use magpie_drivers::pi::sd;
///
/// fn start() -> Result<SupervisorRef, StartError> {
///     let card = Child::process("card", |_| sd::drive("card")).within(Duration::ZERO);
///     Supervisor::one_for_one().child(card).start()
/// }
/// # let _ = start;
/// ```
///
/// # Errors
/// [`DriverError`].
pub async fn drive(name: &'static str) -> Result<Infallible, DriverError> {
    let mut card = Card::open().await?;
    let mut mailbox = ProcessMailbox::new(MOST_ORDERS)?;
    // Kept, so that it has one although its name is taken away.
    let address = mailbox.address();
    registry::register(name, address.clone())?;
    loop {
        let Some(Request { message, reply }): Option<Ordered> = mailbox.receive().await else { continue };
        let answer = carry_out(&mut card, message).await;
        let has_failed = matches!(answer, Err(DiskError::Failed));
        // Who does not wait any more loses it.
        drop(reply.send(answer));
        if has_failed {
            // Begun anew; an error if there is none any more.
            card.begin().await?;
        }
    }
}

async fn carry_out(card: &mut Card, order: Order) -> Result<Answered, DiskError> {
    let sectors = card.sectors();
    let is_outside = |sector: u64, bytes: usize| {
        let end = sector.checked_add((bytes / SECTOR_BYTES) as u64);
        !bytes.is_multiple_of(SECTOR_BYTES) || end.is_none_or(|end| end > sectors)
    };
    match order {
        Order::Capacity => Ok(Answered::Sectors(sectors)),
        // What was answered is written.
        Order::Flush => Ok(Answered::Done),
        Order::Read(sector, mut bytes) => {
            if is_outside(sector, bytes.len()) {
                return Err(DiskError::Outside);
            }
            card.read(sector, &mut bytes).await.map_err(|_| DiskError::Failed)?;
            Ok(Answered::Bytes(bytes))
        }
        Order::Write(sector, bytes) => {
            if is_outside(sector, bytes.len()) {
                return Err(DiskError::Outside);
            }
            card.write(sector, &bytes).await.map_err(|_| DiskError::Failed)?;
            Ok(Answered::Done)
        }
    }
}
