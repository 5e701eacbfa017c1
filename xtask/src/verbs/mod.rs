//! The verbs of `cargo xtask`, one file each.

pub mod bench;
pub mod check;
pub mod decode;
pub mod doctor;
pub mod flash;
pub mod image;
pub mod monitor;
pub mod new;
pub mod push;
pub mod qemu;
pub mod runner;
pub mod test;
pub mod verify;
#[cfg(test)]
mod words;
