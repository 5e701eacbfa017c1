//! Memory: the heap, and the stacks that core loops run on.

mod boxes;
mod cache;
pub mod heap;
mod size_class;
pub mod stack;

pub use boxes::{OutOfMemory, try_box};
