//! Memory: the heap, and the stacks that core loops run on.

mod bit_tree;
mod block;
mod boxes;
mod cache;
pub(crate) mod central;
mod counted;
mod depot;
pub(crate) mod heap;
mod keeper;
mod large_table;
pub(crate) mod limit;
pub(crate) mod orphans;
#[cfg(feature = "checks")]
pub(crate) mod refusal;
mod reserved;
mod size_class;
mod span;
mod span_table;
pub(crate) mod stack;
pub(crate) mod walk;

pub use boxes::{OutOfMemory, try_box};
pub(crate) use boxes::{
    kernel_box, kernel_box_in_place, kernel_box_with, kernel_memory, try_box_in_place, try_box_paid_by,
};
pub use counted::Counted;
pub(crate) use limit::Payer;
pub use limit::{LimitError, MemoryLimit};
