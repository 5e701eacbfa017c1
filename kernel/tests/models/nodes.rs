//! Watches for the models: each lives as long as its model, so that a broken copy that gives one up twice is noticed, and harms nothing.

use std::ptr::NonNull;
use std::sync::{Mutex, MutexGuard};

use magpie::internals::sync::Identity;
use magpie::internals::sync::watch::{Act, Data, Node};

/// All watches of a model, and whether each was given up. The checkers know nothing of this lock: nothing of theirs happens under it.
#[derive(Default)]
pub struct Nodes(Mutex<Vec<(NonNull<Node>, bool)>>);

// SAFETY: the list is under a lock; what is in the nodes is the structure's that is checked.
unsafe impl Sync for Nodes {}
// SAFETY: as above.
unsafe impl Send for Nodes {}

impl Nodes {
    fn all(&self) -> MutexGuard<'_, Vec<(NonNull<Node>, bool)>> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// A watch with that number, which knows the place of `scene` and one more word.
    pub fn make<S>(&self, who: Identity, number: u64, act: Act, scene: &S, word: u64) -> NonNull<Node> {
        let data = Data::new([std::ptr::from_ref(scene).expose_provenance() as u64, word, 0]);
        let node = NonNull::from(Box::leak(Box::new(Node::new(who, number, act, data))));
        self.all().push((node, false));
        node
    }

    /// One of them is given up.
    pub fn give_up(&self, node: NonNull<Node>) {
        let mut all = self.all();
        let known = all.iter_mut().find(|(known, _)| *known == node);
        let was_given_up = known.is_none_or(|(_, is_given_up)| std::mem::replace(is_given_up, true));
        drop(all);
        assert!(!was_given_up, "a watch was given up twice");
    }

    /// How many there are that nobody has given up.
    pub fn left(&self) -> usize {
        self.all().iter().filter(|(_, is_given_up)| !is_given_up).count()
    }
}

impl Drop for Nodes {
    fn drop(&mut self) {
        for (node, _) in self.all().drain(..) {
            // SAFETY: made in `make`; the model is over.
            drop(unsafe { Box::from_raw(node.as_ptr()) });
        }
    }
}

/// What the function of a watch was given by [`Nodes::make`].
///
/// # Safety
/// The watch was made there, and its scene, which is an `S`, lives.
pub unsafe fn known<'a, S>(node: NonNull<Node>) -> (&'a S, u64) {
    // SAFETY: by contract.
    unsafe {
        let [scene, word, _] = (*node.as_ref().data()).assume_init();
        (&*std::ptr::with_exposed_provenance::<S>(scene as usize), word)
    }
}
