//! SD cards for the Raspberry Pi 4: what is on one, and how it gets there.
//!
//! [`contents`] gathers the files, [`image`] lays them out as a card (partition table and file system), [`flash`]
//! writes a card and reads it back, [`device`] says what may be written to, [`folder`] copies the files onto a
//! card that is mounted.

pub mod contents;
mod date;
pub mod device;
mod firmware;
pub mod flash;
pub mod folder;
pub mod image;

pub use contents::{Contents, gather};
pub use date::Moment;
