//! Outcomes: what a behaviour says becomes of its actor, and so of the actor's storage.

/// What becomes of an actor after a behaviour. C∀ calls the four *Nodelete*, *Delete*, *Destroy* and *Finished*.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(usize)]
pub(crate) enum Outcome {
    /// It waits for its next message.
    Continue = 0,
    /// It ends: its state is dropped and its memory freed.
    End = 1,
    /// It ends: its state is dropped, its memory kept for a successor.
    Vacate = 2,
    /// It ends: its state is not dropped, but belongs to whoever takes it.
    Retire = 3,
}
