//! Interrupts of devices, for whoever drives one: a line is claimed, and its interrupt is waited for, or sent to an actor.
//!
//! The kernel's handler is the same for all: it masks the line, and wakes the process that waits, or raises the actor's
//! [`Signal`](crate::actor::Signal). It takes no lock, runs nothing of a driver's, and does not touch the device, which may go on asking until its driver has a turn.
//!
//! ```
//! use core::error::Error;
//! use magpie::interrupt::{ClaimError, Interrupt, Line, Revoked, Trigger};
//! use magpie::sched;
//!
//! /// What a driver does, in a process of its own.
//! async fn drive(mut interrupt: Interrupt) -> Result<(), Revoked> {
//!     loop {
//!         interrupt.wait().await?;
//!         // Here it would look at its device, and quieten it.
//!     }
//! }
//!
//! fn start() -> Result<(), Box<dyn Error>> {
//!     // As the device tree says.
//!     let line = Line { number: 79, trigger: Trigger::Edge };
//!     sched::spawn(drive(Interrupt::claim(line)?))?;
//!     Ok(())
//! }
//! # // The host has no devices.
//! # let line = Line { number: 79, trigger: Trigger::Edge };
//! # assert!(matches!(Interrupt::claim(line), Err(ClaimError::NoSuchLine)));
//! ```
//!
//! - *One at a time has a line.* It is given back when the [`Interrupt`] is dropped, and when its owner crashes or is killed: the process or
//!   actor that claimed it, or that has waited for it last. Then the line is masked, and may be claimed anew.
//! - *It may come without a reason*, once, because one that was on its way arrives after the line was masked. Whoever is told looks at the
//!   device.
//! - *A claim may bring work*: while there is one, the system has not [run out of work](crate::sched::out_of_work).
//!
//! The controller is in `arch/`. Which line a device has is said by the device tree, which boot reads. Interrupts that each core has of its own are not for drivers.

pub(crate) mod arrival;
#[cfg(not(loom))]
mod claim;
#[cfg(not(loom))]
mod slot;
#[cfg(not(loom))]
mod table;

pub use crate::arch::Trigger;
#[cfg(not(loom))]
pub use claim::{ClaimError, Claimed, Interrupt, Revoked, Wait, all};
#[cfg(target_os = "none")]
pub(crate) use claim::{keep, on_interrupt};

/// A line from a device to the interrupt controller.
///
/// ```
/// use magpie::interrupt::{Line, Trigger};
///
/// // The last of the 32 virtio slots on QEMU's `virt`: shared interrupt 47, which the controller counts from 32 on.
/// let line = Line { number: 32 + 47, trigger: Trigger::Edge };
/// assert_eq!(line.number, 79);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Line {
    /// Its number at the interrupt controller, from 32 on. The device tree counts the shared ones from 0 on.
    pub number: u32,
    /// How the device asks.
    pub trigger: Trigger,
}
