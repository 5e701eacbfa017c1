//! The last events of a core as text: what the flight recorder says. No lock is taken but the console's, and nothing is allocated, because a
//! panic of the kernel prints it.

use super::event::{Event, name_of};
use super::{ENABLED, Kind, Reading, ring};
use crate::arch::{CoreId, clock};
use crate::text;

/// How many events are shown.
const SHOWN: u64 = 8;

/// Says what has happened on a core last, the oldest first.
pub(crate) fn tell_recent(core: CoreId) {
    if !ENABLED {
        return;
    }
    let (now, ring) = (clock::now(), ring(core));
    let written = ring.written();
    for number in written.saturating_sub(SHOWN)..written {
        if let Reading::Words(words) = ring.read(number)
            && let Some(Event { at, kind, name, value, subject, .. }) = Event::decode(number, words)
        {
            let ago = microseconds(now.saturating_sub(at));
            let (word, name) = (WORDS[kind as usize % WORDS.len()], name_of(name).unwrap_or(""));
            text!("  {ago} us ago: {word} {value} {subject:x} {name}");
        }
    }
}

fn microseconds(ticks: u64) -> u64 {
    // Whole ticks of a microsecond: a division of more is long.
    ticks / (clock::frequency() / 1_000_000).max(1)
}

/// What has happened, in a word, by the numbers of the kinds. The value is as the kind has it: a time is in clock ticks.
const WORDS: [&str; Kind::ALL.len() + 1] = [
    "",
    "yielded",
    "waits",
    "done",
    "suspended",
    "crashed",
    "resumed",
    "started",
    "woken",
    "stolen",
    "mailbox-stolen",
    "refused",
    "sleeps",
    "awake",
    "interrupt",
    "gulp",
    "mark",
];
