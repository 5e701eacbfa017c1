//! Actors with limits of their own, in mailboxes and on executors that others share: each is counted and charged by itself, whatever
//! becomes of it, and nobody else notices.

mod counting;
mod lives;
mod scene;
mod ways;
