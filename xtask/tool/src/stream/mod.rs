//! What a kernel prints, understood: bytes in, readable lines out, for QEMU, a recording or a board.
//!
//! `split` cuts the bytes into text and frames, `log` decodes a frame with the ELF, `notice` reads the lines
//! that are meant for the host tool, `build_id` tells whether the ELF is the right one, `decoder` puts them
//! together, `symbols` names the addresses of a register dump or backtrace,
//! `lines` has the lines of the source to them, `show` writes the result,
//! and `outlet` does so on a thread of its own.

mod build_id;
mod decoder;
mod lines;
mod log;
mod notice;
mod outlet;
mod show;
mod split;
mod symbols;

pub use decoder::{Decoder, Output, notices};
pub use notice::Notice;
pub use outlet::Outlet;
pub use show::show;
pub use symbols::Symbols;
