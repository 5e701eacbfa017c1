//! How one turn of a process ended.

/// What a turn of a process tells the core loop.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum Step {
    /// Nothing to do until it is woken.
    Pending,
    /// More to do, but its turn is over: back of the queue.
    Yield,
    /// It has ended.
    Done,
}
