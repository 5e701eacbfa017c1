//! What the chain loader and the host tool share: the protocol (`docs/serial-loader.md`), and the loader's half of it,
//! which knows neither the board nor its clock. So the host's tests run it against the host's own half.
#![no_std]

mod crc;
mod frame;
mod receive;
mod report;

pub use frame::{HEADER_BYTES, Header, Kernel, PART_BYTES};
pub use receive::{Board, Receiver};
pub use report::Report;
