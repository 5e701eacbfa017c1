//! Watching and ending: each watch is told once, or given up once, whoever comes first.

use std::mem::MaybeUninit;
use std::ptr::NonNull;

use magpie::internals::arch::atomic::{AtomicU64, AtomicUsize, Ordering};
use magpie::internals::sync::watch::{Asked, Data, Lists, Node, Watched};
use magpie::internals::sync::{Identity, OwnerHint, WordCell};

use crate::harness::{Model, ordering, step};
use crate::tool::{Arc, run, task};

pub const MODELS: &[Model] = &[
    Model {
        name: "watch::told_once",
        preemptions: Some(3),
        body: told_once,
        mutants: &[
            ordering("watch-note-no-fence"),
            ordering("watch-end-no-fence"),
            step("watch-unasked"),
            step("watch-asked-early"),
            step("watch-noted-early"),
            step("watch-late-told-anyway"),
        ],
    },
    Model { name: "watch::cancelled_or_told", preemptions: Some(3), body: cancelled_or_told, mutants: &[] },
    Model { name: "watch::garbage", preemptions: Some(3), body: garbage, mutants: &[] },
    Model {
        name: "watch::told_while_stolen",
        preemptions: Some(3),
        body: told_while_stolen,
        mutants: &[
            ordering("owner-publish-no-fence"),
            ordering("owner-send-no-fence"),
            ordering("watch-note-no-fence"),
            step("watch-unasked"),
            step("watch-late-told-anyway"),
        ],
    },
];

const WHO: Identity = Identity::Actor { place: 64, life: 1 };
const LIVES: u64 = 1;

/// One that is watched, and the watches.
struct Scene {
    lists: Lists<1>,
    watched: Watched,
    word: WordCell,
    /// How many were given up because they would tell nobody.
    freed: AtomicU64,
}

impl Scene {
    fn new() -> Arc<Self> {
        let word = WordCell::new(LIVES);
        Arc::new(Self { lists: Lists::new(), watched: Watched::new(), word, freed: AtomicU64::new(0) })
    }

    /// Says that the watched one has ended. Returns how many watches are to be told.
    fn end(&self) -> u64 {
        self.word.set(0);
        if self.watched.after_end() { give_up(self.lists.take_all(WHO)) } else { 0 }
    }

    /// Watches. Returns whether the watch is to be told by the caller.
    fn watch(&self, number: u64) -> u64 {
        let lives = || self.word.get() == LIVES;
        // SAFETY: made here.
        give_up(unsafe { self.lists.watch(WHO, node(self, number, false), &self.watched, lives) })
    }
}

/// A watch with that number, which is pointless or not.
fn node(scene: &Scene, number: u64, is_pointless: bool) -> NonNull<Node> {
    let data = Data::new([std::ptr::from_ref(scene).expose_provenance() as u64, u64::from(is_pointless), 0]);
    NonNull::from(Box::leak(Box::new(Node::new(WHO, number, act, data))))
}

unsafe fn act(node: NonNull<Node>, asked: Asked) -> bool {
    // SAFETY: made in `node`.
    let [scene, is_pointless, _] = unsafe { (*node.as_ref().data()).assume_init() };
    match asked {
        Asked::IsPointless => is_pointless != 0,
        Asked::Free | Asked::Tell(_) => {
            assert!(is_pointless != 0, "a watch was given up that somebody waits for");
            // SAFETY: the scene lives as long as its threads; the node is the caller's, who gives it up.
            unsafe {
                let scene = &*std::ptr::with_exposed_provenance::<Scene>(scene as usize);
                scene.freed.fetch_add(1, Ordering::Relaxed);
                drop(Box::from_raw(node.as_ptr()));
            }
            true
        }
    }
}

/// How many were taken out; they are freed.
fn give_up(nodes: impl IntoIterator<Item = NonNull<Node>>) -> u64 {
    let nodes = nodes.into_iter();
    // SAFETY: taken out of their list.
    nodes.map(|node| drop(unsafe { Box::from_raw(node.as_ptr()) })).count() as u64
}

/// One begins to watch while the other ends.
fn told_once() {
    let scene = Scene::new();
    let watches = task(|scene: &Scene| scene.watch(1));
    let ends = task(Scene::end);
    let [late, told] = run(&scene, [watches, ends]);
    let left = give_up(scene.lists.take_all(WHO));
    assert_eq!((late + told, left), (1, 0), "told by who was late, by the end; left");
}

/// A watch is cancelled while the watched one ends.
fn cancelled_or_told() {
    let scene = Scene::new();
    assert_eq!(scene.watch(1) + scene.watch(2), 0, "it lives");
    let cancels = task(|scene: &Scene| give_up(scene.lists.take(WHO, 1)));
    let ends = task(Scene::end);
    let [cancelled, told] = run(&scene, [cancels, ends]);
    assert_eq!(cancelled + told, 2, "cancelled {cancelled}, told {told}");
}

/// A new watch finds one that would tell nobody, while the watched one ends.
fn garbage() {
    let scene = Scene::new();
    // SAFETY: made here.
    unsafe { scene.lists.insert(WHO, node(&scene, 1, true)) };
    scene.watched.note();
    assert_eq!(scene.watch(2), 0, "it lives");
    let watches = task(|scene: &Scene| scene.watch(3));
    let ends = task(Scene::end);
    let [late, told] = run(&scene, [watches, ends]);
    let freed = scene.freed.load(Ordering::Relaxed);
    assert_eq!(late + told + freed, 3, "late {late}, told {told}, freed {freed}");
}

/// A watch, and the mailbox of its watcher, in the slot of the first of two workers.
struct Stolen {
    scene: Scene,
    slot: AtomicUsize,
    owner: OwnerHint,
    /// What lies in the mailbox.
    waiting: AtomicU64,
}

/// Somebody has told the worker with this number of mail, or is that worker, and has seen it.
type Hinted = [bool; 2];

impl Stolen {
    /// As `put_in_front`, so often, and `notify`.
    fn tell(&self, times: u64) -> Hinted {
        let mut hinted = [false; 2];
        for _ in 0..times {
            // Relaxed: what counts is the barrier behind it.
            if self.waiting.fetch_add(1, Ordering::Relaxed) == 0 {
                hinted[self.owner.after_work()] = true;
            }
        }
        hinted
    }

    fn steal(&self) -> Hinted {
        self.slot.store(1, Ordering::Release);
        let at = || self.slot.load(Ordering::Acquire);
        self.owner.publish(1, |slot| slot, |slot| at() == slot, || Some(at()));
        [false, self.waiting.load(Ordering::Relaxed) > 0]
    }
}

/// One begins to watch while the other ends, and a thief takes the watcher's mailbox: the message comes once, and the worker that has the
/// mailbox then knows of it.
fn told_while_stolen() {
    let word = WordCell::new(LIVES);
    let scene = Scene { lists: Lists::new(), watched: Watched::new(), word, freed: AtomicU64::new(0) };
    let (slot, owner, waiting) = (AtomicUsize::new(0), OwnerHint::new(0), AtomicU64::new(0));
    let stolen = Arc::new(Stolen { scene, slot, owner, waiting });
    let watches = task(|stolen: &Stolen| stolen.tell(stolen.scene.watch(1)));
    let ends = task(|stolen: &Stolen| stolen.tell(stolen.scene.end()));
    let hinted = run(&stolen, [watches, ends, task(Stolen::steal)]);
    assert_eq!(stolen.waiting.load(Ordering::Relaxed), 1, "told so often");
    assert!(hinted.iter().any(|hinted| hinted[1]), "the worker that has the mailbox knows nothing of it");
}

const _: () = assert!(size_of::<Data>() == size_of::<MaybeUninit<[u64; 3]>>());
