//! Memory: the heap, and the stacks that core loops run on.

mod boxes;
pub mod heap;
pub mod stack;

pub use boxes::{OutOfMemory, try_box};
