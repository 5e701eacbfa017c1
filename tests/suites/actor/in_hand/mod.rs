//! Mail that a worker has in hand.

mod backlog;
mod cut;
mod empty_first;
mod ends;
mod gone;
mod lane;
mod lane_aside;
mod lane_crowd;
mod lane_slow;
mod memory;
mod node;
mod order;
mod owed;
mod pieces;
mod pressed;
mod put_back;
mod turns;
mod waits;
