//! Mail that a worker has in hand.

mod ends;
mod memory;
mod node;
mod order;
mod turns;
mod waits;
