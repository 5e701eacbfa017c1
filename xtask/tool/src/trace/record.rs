//! Collects what frames say: the events of each core, names, the last statistics, and what was lost on the way.

use super::frame::{Event, Record};
use super::values::Values;
use std::collections::BTreeMap;

/// What was recorded.
#[derive(Debug, Default)]
pub struct Recording {
    /// Clock ticks a second; 0 before anything was said about it.
    pub frequency: u64,
    /// The events of each core, in the order in which they were written down there.
    pub events: BTreeMap<u8, Vec<Event>>,
    /// Names by their numbers.
    pub names: BTreeMap<u32, String>,
    /// The last statistics of each core, and those before.
    pub values: BTreeMap<u8, (Option<Values>, Values)>,
    /// Events that were overwritten before they were sent.
    pub overwritten: u64,
    /// Frames that did not arrive, or arrived damaged.
    pub missing_frames: u64,
    /// The number of the frame that is next.
    next_frame: Option<u64>,
}

impl Recording {
    /// Takes a frame's number and what it says.
    pub fn take(&mut self, sequence: u64, record: Record) {
        if let Some(next) = self.next_frame {
            self.missing_frames = self.missing_frames.saturating_add(sequence.saturating_sub(next));
        }
        self.next_frame = Some(sequence.saturating_add(1));
        match record {
            Record::Hello { frequency, .. } => self.frequency = frequency,
            Record::Name(number, text) => {
                self.names.insert(number, text);
            }
            Record::Values(core, values) => {
                let Some(values) = Values::of(&values) else { return };
                let before = self.values.remove(&core).map(|(_, last)| last);
                self.values.insert(core, (before, values));
            }
            Record::Events { core, lost, events, .. } => {
                self.overwritten = self.overwritten.saturating_add(lost);
                self.events.entry(core).or_default().extend(events);
            }
        }
    }

    /// The name with this number.
    pub fn name(&self, number: u32) -> &str {
        self.names.get(&number).map_or("?", String::as_str)
    }

    /// So many ticks in nanoseconds.
    pub fn nanoseconds(&self, ticks: u64) -> u64 {
        (u128::from(ticks) * 1_000_000_000 / u128::from(self.frequency.max(1))) as u64
    }
}

/// The end of a type's path, without its parameters: what fits into a picture.
pub fn short(name: &str) -> &str {
    let path = name.split('<').next().unwrap_or(name);
    let path = path.strip_suffix("::{{closure}}").unwrap_or(path);
    let parts: Vec<_> = path.rsplitn(3, "::").collect();
    match parts.len() {
        3 => &path[parts[2].len() + 2..],
        _ => path,
    }
}

#[cfg(test)]
mod tests {
    use super::{Recording, short};
    use crate::trace::frame::Record;

    #[test]
    fn what_is_missing_is_counted() {
        let mut recording = Recording::default();
        let hello = || Record::Hello { frequency: 1_000, cores: 1, now: 0 };
        recording.take(5, hello());
        recording.take(6, hello());
        recording.take(9, hello());
        recording.take(10, Record::Events { core: 0, lost: 7, first: 7, events: Vec::new() });
        assert_eq!((recording.missing_frames, recording.overwritten), (2, 7));
        assert_eq!(recording.nanoseconds(3), 3_000_000);
    }

    #[test]
    fn names_are_short() {
        assert_eq!(short("hello::main::{{closure}}"), "hello::main");
        assert_eq!(short("magpie::actor::run::resident::Worker<u8>"), "resident::Worker");
        assert_eq!(short("u8"), "u8");
    }
}
