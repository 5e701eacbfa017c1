//! Outcomes: what a behaviour says becomes of its actor, and so of the actor's storage.

/// What becomes of an actor after a behaviour; the names are those of C∀.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(usize)]
pub enum Outcome {
    /// It waits for its next message.
    Continue = 0,
    /// It ends: its state is dropped and its memory freed.
    Delete = 1,
    /// It ends: its state is dropped, its memory kept for a successor: see
    /// [`respawn`](crate::actor::ExecutorHandle::respawn).
    Destroy = 2,
    /// It ends: its state is not dropped, but belongs to whoever takes it: see [`Addr::take`](crate::actor::Addr::take),
    /// and [`StaticActor::take`](crate::actor::StaticActor::take).
    Finished = 3,
}
