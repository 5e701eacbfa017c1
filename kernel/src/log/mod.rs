//! What the kernel says: text for people and tools, and log frames for the decoder.
//!
//! Both go over one line; `docs/architecture.md`, "What a kernel prints", has the format.

pub(crate) mod console;
pub(crate) mod frames;

#[doc(hidden)]
pub use console::line;

pub use crate::text;
