//! The actors as text, for the serial line.

use spin::Once;

use super::inspect::{ActorInfo, actors};
use crate::log::text;

/// How many are shown: a thousand would flood the line.
const MOST_LINES: usize = 100;

/// How they are printed, once there is an executor: an image without one has nothing of it.
static USED: Once<fn()> = Once::new();

/// Hands on the name of who has that number, or an empty one.
pub(crate) type NameOf = fn(usize, &dyn Fn(&str));

/// How names are found, once there are some: they are a higher room's.
static NAMES: Once<NameOf> = Once::new();

/// There is an executor.
pub(super) fn note_used() {
    USED.call_once(|| print as fn());
}

/// There are names.
pub(crate) fn note_names(name_of: NameOf) {
    NAMES.call_once(|| name_of);
}

/// How to print the actors, if there ever was an executor.
#[inline(always)]
pub(crate) fn printer() -> Option<fn()> {
    USED.get().copied()
}

fn print() {
    text!("    number state     core mailbox waiting      taken moved");
    let mut all = actors();
    for ActorInfo { id, type_name, state, mailbox, waiting, taken, core, migrations, .. } in
        all.by_ref().take(MOST_LINES)
    {
        let core = core.index();
        let state = match state {
            super::ActorState::Suspended => "suspended",
            super::ActorState::Ready => "ready    ",
        };
        let say = |name: &str| {
            text!(
                "{id:10x} {state} {core:4} {mailbox:7} {waiting:7} {taken:10} {migrations:5} {type_name} {name}"
            );
        };
        match NAMES.get() {
            Some(name_of) => name_of(id, &say),
            None => say(""),
        }
    }
    match all.count() {
        0 => {}
        more => text!("and {more} more"),
    }
}
