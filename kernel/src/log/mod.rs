//! What the kernel says: text for people and tools, and log frames for the decoder.
//!
//! Both go over one line; `docs/architecture.md`, "What a kernel prints", has the format.

pub mod console;
mod frames;

pub use crate::text;
