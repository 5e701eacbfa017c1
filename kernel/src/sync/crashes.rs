//! Who is told of a crash: rooms that keep something on behalf of a process or an actor, which must end with it.
//!
//! The scheduler and the actors know what has crashed, and must not know those rooms, which are above them. So such a
//! room registers here before it keeps anything on anyone's behalf, and is told of every crash from then on. It is told
//! before anybody else, while no one else can have the same identity yet. It acts in the middle of a crash, with
//! preemption disabled, so it runs nothing of the application's.

use core::fmt;

use spin::Once;

/// Who may crash: a process, or an actor. No two have one identity at the same time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Identity {
    /// A process, by the address of its header.
    Process(usize),
    /// An actor, by where it lives and by which one it is of those that have lived there, as the scheduler identifies
    /// what is at work.
    Actor {
        /// Where it lives.
        place: usize,
        /// Which one.
        life: u64,
    },
}

impl Identity {
    /// A number that no two existing ones share at the same time.
    pub fn place(self) -> usize {
        match self {
            Self::Process(header) => header,
            Self::Actor { place, .. } => place,
        }
    }
}

/// Which crash of all since the start: 1, 2, 3 and so on. It leads to the crash's record: [`record`](crate::crash::record()).
///
/// ```
/// use magpie::crash;
///
/// assert!(crash::records().all(|record| record.number.get() >= 1));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct CrashNumber(u64);

impl CrashNumber {
    pub(crate) const fn new(number: u64) -> Self {
        Self(number)
    }

    /// As a number.
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl fmt::Display for CrashNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// Called for each crash.
type Watcher = fn(Identity);

/// A place for each room that keeps something: mailboxes of processes, interrupts, devices.
static WATCHERS: [Once<Watcher>; 3] = [const { Once::new() }; 3];

/// From now on `watcher` is told of crashes, each of which is on record by then. Once for each room.
pub fn watch_crashes(watcher: Watcher) {
    let mut is_listed = false;
    for place in &WATCHERS {
        if !is_listed {
            place.call_once(|| {
                is_listed = true;
                watcher
            });
        }
    }
    assert!(is_listed, "more rooms watch crashes than there are places: make room for another");
}

/// Tells of a crash, before anybody else is told. Whoever kept something for that identity did so before, and
/// what ran under it has been handed from core to core since, so this finds the watcher that was registered before that.
pub fn tell_of_crash(crashed: Identity) {
    for watcher in WATCHERS.iter().filter_map(Once::get) {
        watcher(crashed);
    }
}
