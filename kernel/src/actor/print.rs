//! The actors and their mailboxes as text, for the serial line.

use core::fmt;

use spin::Once;

use super::inspect::{ActorInfo, MailboxInfo, actors, mailboxes};
use crate::log::text;
use crate::sync::set_once;

/// How many are shown: a thousand would flood the line.
const MOST_LINES: usize = 100;

/// How each of these is printed.
struct Printers {
    actors: fn(),
    mailboxes: fn(),
}

/// Known once there is an executor: an image without one has nothing of it.
static USED: Once<Printers> = Once::new();

/// Hands on the name of who has that number, or an empty one.
pub(crate) type NameOf = fn(usize, &dyn Fn(&str));

/// How names are found, once there are some: they are a higher room's.
static NAMES: Once<NameOf> = Once::new();

/// There is an executor.
pub(super) fn note_used() {
    set_once(&USED, || Printers { actors: print_actors, mailboxes: print_mailboxes });
}

/// There are names.
pub(crate) fn note_names(name_of: NameOf) {
    set_once(&NAMES, || name_of);
}

/// How to print the actors, if there ever was an executor.
pub(crate) fn actors_printer() -> Option<fn()> {
    USED.get().map(|used| used.actors)
}

/// How to print the mailboxes of executors, likewise.
pub(crate) fn mailboxes_printer() -> Option<fn()> {
    USED.get().map(|used| used.mailboxes)
}

fn print_actors() {
    text!("    number state     core mailbox waiting      taken moved   messages reductions");
    let mut all = actors();
    for actor in all.by_ref().take(MOST_LINES) {
        let ActorInfo { id, type_name, state, mailbox, waiting, taken, core, migrations, .. } = actor;
        let messages = OrElse(actor.messages, "-");
        let reductions = OrElse(actor.reductions, "-");
        let core = core.index();
        let state = match state {
            super::ActorState::Suspended => "suspended",
            super::ActorState::Ready => "ready    ",
        };
        let say = |name: &str| {
            text!(
                "{id:10x} {state} {core:4} {mailbox:7} {waiting:7} {taken:10} {migrations:5} {messages:>10} {reductions:>10} {type_name} {name}"
            );
        };
        match NAMES.get() {
            Some(name_of) => name_of(id, &say),
            None => say(""),
        }
    }
    say_rest(all.count());
}

fn print_mailboxes() {
    text!("    number core waiting    most      bound      taken moved     bytes, and what is special");
    let mut all = mailboxes();
    for mailbox in all.by_ref().take(MOST_LINES) {
        let MailboxInfo { number, core, waiting, most_waiting, taken, migrations, buffer_bytes, .. } =
            mailbox;
        let core = core.index();
        let bound = OrElse(mailbox.bound, "none");
        let alone = if mailbox.is_of_one { " of one actor" } else { "" };
        let pinned = if mailbox.is_pinned { " pinned" } else { "" };
        let busy = if mailbox.is_being_processed { " in hand" } else { "" };
        text!(
            "{number:10} {core:4} {waiting:7} {most_waiting:7} {bound:>10} {taken:10} {migrations:5} {buffer_bytes:9}{alone}{pinned}{busy}"
        );
    }
    say_rest(all.count());
}

/// A number, or a word where there is none.
struct OrElse<T>(Option<T>, &'static str);

impl<T: fmt::Display> fmt::Display for OrElse<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Some(number) => number.fmt(f),
            None => f.pad(self.1),
        }
    }
}

fn say_rest(more: usize) {
    if more > 0 {
        text!("and {more} more");
    }
}
