//! The last events of a core as text: what the flight recorder says. No lock is taken but the console's, and nothing is allocated, because a
//! panic of the kernel prints it.

use super::event::{Event, name_of};
use super::{Kind, RECORDS, Reading, ring};
use crate::arch::{CoreId, clock};
use crate::text;

/// How many events are shown of a core that has stopped.
const SHOWN: u64 = 8;
/// Says what has happened on a core last, the oldest first.
pub(crate) fn tell_recent(core: CoreId) {
    tell(core, ring(core).written(), SHOWN, clock::now());
}

/// Says what has happened on a core before its event of this number, as far as that is still there, and how long before a moment.
#[inline(never)]
pub(crate) fn tell(core: CoreId, next: u64, most: u64, moment: u64) {
    if !RECORDS {
        return;
    }
    for number in next.saturating_sub(most)..next {
        if let Reading::Words(words) = ring(core).read(number)
            && let Some(Event { at, kind, name, value, subject, .. }) = Event::decode(number, words)
        {
            let before = microseconds(moment.saturating_sub(at));
            let (word, name) = (word_of(kind), name_of(name).unwrap_or(""));
            text!("  {before} us before: {word} {value} {subject:x} {name}");
        }
    }
}

fn microseconds(ticks: u64) -> u64 {
    // Whole ticks of a microsecond: a division of more is long.
    ticks / (clock::frequency() / 1_000_000).max(1)
}

/// What has happened, in a word, in the order of the numbers of the kinds, each as wide as the widest. The value is as the kind has it: a time is in
/// clock ticks. One text, because a list of texts is three times as long, and an image has little room.
const WORDS: &str = "yielded  waits    done     suspendedcrashed  resumed  started  woken    stolen   mb-stolenrefused  sleeps   awake    interruptgulp     mark     sent     ";
const WIDTH: usize = WORDS.len() / Kind::ALL.len();

fn word_of(kind: Kind) -> &'static str {
    let at = (kind as usize - 1) * WIDTH;
    WORDS.get(at..at + WIDTH).unwrap_or("")
}
