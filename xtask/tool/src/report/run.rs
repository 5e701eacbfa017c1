//! What a run has come to, counted from what the kernel has sent.

use super::spread::Spread;
use crate::trace::values::{PARTS, Values};
use crate::trace::{Event, Kind, Record, Recording, short};
use std::collections::BTreeMap;

/// One core's load over a while.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Load {
    /// The end of it, in ticks.
    pub at: u64,
    /// In turns, stealing, idle, in interrupts, and by the kernel between turns, in thousandths.
    pub shares: [u64; PARTS],
    /// How many processes wait at the end of it.
    pub waiting: u64,
}

/// A crash that a core has written down.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Crash {
    /// In ticks.
    pub at: u64,
    /// On which core.
    pub core: u8,
    /// What ended, by the number of its name.
    pub name: u32,
    /// Its own number.
    pub subject: u64,
}

/// What one process had.
#[derive(Debug, Default, Clone, Copy)]
pub struct Busy {
    /// The number of its name.
    pub name: u32,
    /// How long it ran, in ticks.
    pub ticks: u64,
    /// How often.
    pub turns: u64,
}

/// A run.
#[derive(Debug, Default)]
pub struct Run {
    /// Names, the clock, and what was lost.
    pub recording: Recording,
    /// Each core's load over time.
    pub load: BTreeMap<u8, Vec<Load>>,
    /// Processes stolen, from one core by another.
    pub processes_stolen: BTreeMap<(u8, u8), u64>,
    /// Mailboxes stolen, likewise.
    pub mailboxes_stolen: BTreeMap<(u8, u8), u64>,
    /// How many messages each gulp had.
    pub gulps: Spread,
    /// From a wake-up to the turn that it led to, in ticks.
    pub wake_ups: Spread,
    /// How long turns were, in ticks.
    pub turns: Spread,
    /// How long handlers of interrupts took, in ticks.
    pub interrupts: Spread,
    /// What crashed.
    pub crashes: Vec<Crash>,
    /// Who had turns.
    pub busy: BTreeMap<u64, Busy>,
    /// What the kernel said about crashes.
    pub said: Vec<String>,
    /// When the first and the last happened, in ticks.
    pub span: Option<(u64, u64)>,
    /// Who was woken and had no turn since, and when.
    woken: BTreeMap<u64, u64>,
    /// Events of different cores do not arrive in order.
    events: Vec<(u8, Event)>,
}

impl Run {
    /// Takes a frame's number and what it says.
    pub fn take(&mut self, sequence: u64, record: Record) {
        match &record {
            Record::Values(core, numbers) => {
                if let Some(values) = Values::of(numbers) {
                    let before = self.recording.values.get(core).map(|(_, last)| *last);
                    self.happened(values.at());
                    // Of the first nothing is known but the sum since the start.
                    if let Some(before) = before.filter(|before| before.at() < values.at()) {
                        self.load.entry(*core).or_default().push(Load {
                            at: values.at(),
                            shares: values.shares_since(Some(&before)),
                            waiting: values.waiting().into_iter().fold(0, u64::saturating_add),
                        });
                    }
                }
            }
            Record::Events { core, events, .. } => {
                self.events.extend(events.iter().map(|event| (*core, *event)))
            }
            Record::Name(..) | Record::Hello { .. } => {}
        }
        self.recording.take(sequence, record);
        // They are kept above, with their cores.
        self.recording.events.clear();
    }

    /// Takes a line of text: what is said about a crash is kept.
    pub fn hear(&mut self, line: &str) {
        const MOST: usize = 100;
        let is_crash = [" on core ", "the kernel panicked"].iter().any(|part| line.contains(part))
            && ["panic", "abort", "overflow", "undefined", "watchdog"]
                .iter()
                .any(|word| line.to_lowercase().contains(word));
        if is_crash && self.said.len() < MOST {
            self.said.push(line.into());
        }
    }

    fn happened(&mut self, at: u64) {
        let (first, last) = self.span.unwrap_or((at, at));
        self.span = Some((first.min(at), last.max(at)));
    }

    /// All has arrived.
    pub fn finish(&mut self) {
        let mut events = std::mem::take(&mut self.events);
        // A turn is known at its end. What leads to it happened before.
        events.sort_by_key(|(_, event)| event.at);
        events.iter().for_each(|(core, event)| self.event(*core, event));
        for spread in [&mut self.gulps, &mut self.wake_ups, &mut self.turns, &mut self.interrupts] {
            spread.sort();
        }
    }

    fn event(&mut self, core: u8, event: &Event) {
        self.happened(event.at);
        let Some(kind) = event.kind else { return };
        if kind.ends_turn() {
            self.turns.take(event.value.into());
            let busy = self.busy.entry(event.subject).or_default();
            (busy.name, busy.ticks, busy.turns) =
                (event.name, busy.ticks + u64::from(event.value), busy.turns + 1);
            let began = event.at.saturating_sub(event.value.into());
            // One that was woken in its own turn waits for the next.
            if let Some(woken) = self.woken.get(&event.subject).copied().filter(|woken| *woken <= began) {
                self.woken.remove(&event.subject);
                self.wake_ups.take(began - woken);
            }
        }
        match kind {
            Kind::Crashed => {
                let Event { at, name, subject, .. } = *event;
                self.crashes.push(Crash { at, core, name, subject });
            }
            Kind::Woken => {
                self.woken.entry(event.subject).or_insert(event.at);
            }
            Kind::Stolen => *self.processes_stolen.entry((event.value as u8, core)).or_default() += 1,
            Kind::MailboxStolen => *self.mailboxes_stolen.entry((event.value as u8, core)).or_default() += 1,
            Kind::Gulp => self.gulps.take(event.value.into()),
            Kind::Interrupt => self.interrupts.take(event.value.into()),
            _ => {}
        }
    }

    /// The cores of which anything is known.
    pub fn cores(&self) -> Vec<u8> {
        let named = self.processes_stolen.keys().chain(self.mailboxes_stolen.keys());
        let mut cores: Vec<u8> =
            self.load.keys().copied().chain(named.flat_map(|(from, by)| [*from, *by])).collect();
        cores.sort_unstable();
        cores.dedup();
        cores
    }

    /// So many ticks in microseconds.
    pub fn microseconds(&self, ticks: u64) -> f64 {
        ticks as f64 * 1e6 / self.recording.frequency.max(1) as f64
    }

    /// A name, short enough for a table.
    pub fn name(&self, number: u32) -> &str {
        short(self.recording.name(number))
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::{Load, Run};
    use crate::trace::values::NAMES;
    use crate::trace::{Event, Kind, Record};

    fn values(core: u8, at: u64, spent: [u64; 4]) -> Record {
        let mut numbers = vec![0; NAMES.len()];
        numbers[0] = at;
        numbers[1..5].copy_from_slice(&spent);
        numbers[19] = 2;
        // A fifth of what it ran.
        numbers[21] = spent[0] / 5;
        Record::Values(core, numbers)
    }

    /// Two cores, a theft of each kind, a crash.
    pub fn run() -> Run {
        let event = |at, kind, value, subject| Event { at, kind: Some(kind), name: 4, value, subject };
        let of_core_0 = [
            event(1_100, Kind::Woken, 1, 8),
            event(1_500, Kind::Gulp, 40, 0),
            event(2_500, Kind::Interrupt, 3, 0),
        ];
        let of_core_1 = [
            event(1_050, Kind::Stolen, 0, 8),
            event(1_060, Kind::MailboxStolen, 0, 70),
            event(1_400, Kind::Waits, 100, 8),
            event(1_800, Kind::Crashed, 10, 9),
        ];
        let mut run = Run::default();
        let records = [
            Record::Hello { frequency: 1_000_000, cores: 2, now: 0 },
            Record::Name(4, "app::work::{{closure}}".into()),
            values(0, 1_000, [0; 4]),
            values(1, 1_000, [0; 4]),
            // Not in the order of their times.
            Record::Events { core: 1, lost: 3, first: 3, events: of_core_1.into() },
            Record::Events { core: 0, lost: 0, first: 0, events: of_core_0.into() },
            values(0, 3_000, [1_000, 0, 900, 100]),
            values(1, 3_000, [0, 0, 2_000, 0]),
        ];
        records.into_iter().zip(0..).for_each(|(record, number)| run.take(number, record));
        run.hear("panic on core 1, in app::work at src/main.rs:3: <oh>");
        run.hear("all is well on core 1");
        run.finish();
        run
    }

    #[test]
    fn what_was_sent_is_counted() {
        let run = run();
        assert_eq!(run.load[&0], [Load { at: 3_000, shares: [400, 0, 450, 50, 100], waiting: 2 }]);
        assert_eq!(run.processes_stolen[&(0, 1)], 1);
        assert_eq!(run.mailboxes_stolen[&(0, 1)], 1);
        // Woken at 1100, by core 0; its turn of 100 ended at 1400 on core 1.
        assert_eq!((run.wake_ups.count(), run.wake_ups.most()), (1, 200));
        assert_eq!((run.gulps.most(), run.interrupts.most(), run.turns.count()), (40, 3, 2));
        assert_eq!((run.crashes.len(), run.crashes[0].core, run.crashes[0].subject), (1, 1, 9));
        assert_eq!(run.said.len(), 1);
        assert_eq!((run.span, run.cores()), (Some((1_000, 3_000)), vec![0, 1]));
        assert_eq!(run.recording.overwritten, 3);
    }
}
