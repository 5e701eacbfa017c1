//! The last events of a core as text: what the flight recorder says. No lock is taken but the console's, and nothing is allocated, because a
//! panic of the kernel prints it.

use core::fmt::{self, Display, Formatter};

use super::{Event, Kind, ring};
use crate::arch::{CoreId, clock};

/// How many events are shown.
const SHOWN: u64 = 8;

/// The last events of this core, the oldest first; formats as lines of text.
pub(crate) struct Recent(pub CoreId);

impl Recent {
    /// Whether there are any.
    pub fn is_empty(&self) -> bool {
        ring(self.0).written() == 0
    }
}

impl Display for Recent {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "  last events, in us before now:")?;
        let now = clock::now();
        let events = ring(self.0).last(SHOWN).filter_map(|(number, words)| Event::decode(number, words));
        { events }.try_for_each(|event| {
            write!(f, "\n  {:>10} ", microseconds(now.saturating_sub(event.at)))?;
            show(&event, f)
        })
    }
}

fn microseconds(ticks: u64) -> u64 {
    ticks.saturating_mul(1_000_000) / clock::frequency().max(1)
}

fn show(event: &Event, f: &mut Formatter<'_>) -> fmt::Result {
    let Event { kind, value, subject, .. } = *event;
    let name = event.name().unwrap_or("");
    let took = microseconds(u64::from(value));
    match kind {
        Kind::Yielded | Kind::Waits | Kind::Done | Kind::Suspended | Kind::Crashed => {
            let how = match kind {
                Kind::Yielded => "yielded",
                Kind::Waits => "waits",
                Kind::Done => "done",
                Kind::Suspended => "suspended",
                _ => "crashed",
            };
            write!(f, "{how} after {took} us: {subject:x} {name}")
        }
        Kind::Resumed => write!(f, "resumed: {subject:x} {name}"),
        Kind::Spawned => write!(f, "started, for core {value}: {subject:x} {name}"),
        Kind::Woken => write!(f, "woken, for core {value}: {subject:x} {name}"),
        Kind::Stolen => write!(f, "stolen from core {value}: {subject:x} {name}"),
        Kind::MailboxStolen => write!(f, "mailbox stolen from core {value}: {subject:x}"),
        Kind::Refused => write!(f, "not moved here, by rule {value}: {subject:x} {name}"),
        Kind::Sleeps => write!(f, "sleeps"),
        Kind::Awake => write!(f, "awake after {took} us"),
        Kind::Interrupt => write!(f, "interrupt, {took} us: {name}"),
        Kind::Gulp => write!(f, "gulp of {value} messages: {subject:x}"),
        Kind::Mark => write!(f, "mark {subject}, {value}"),
    }
}
