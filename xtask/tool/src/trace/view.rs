//! What `cargo xtask top` knows and shows: the cores' loads, thefts between them, and who is busiest. No terminal is named here: it makes lines
//! of text for a width and a height.

use super::frame::{Kind, Record};
use super::record::{Recording, short};
use super::values::{PARTS, Values};
use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write as _;

/// Samples that are kept for the small curves.
const SAMPLES: usize = 60;
/// From empty to full.
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// How the busiest are sorted.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub enum Sort {
    /// By the time that they had.
    #[default]
    Time,
    /// By how many turns.
    Turns,
    /// By their names.
    Name,
}

impl Sort {
    /// The next way.
    pub fn next(self) -> Self {
        match self {
            Self::Time => Self::Turns,
            Self::Turns => Self::Name,
            Self::Name => Self::Time,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Time => "time",
            Self::Turns => "turns",
            Self::Name => "name",
        }
    }
}

#[derive(Debug, Default, Clone)]
struct Busy {
    name: u32,
    ticks: u64,
    turns: u64,
}

#[derive(Debug, Default)]
struct CoreView {
    shares: [u64; PARTS],
    waiting: [u64; 4],
    messages_a_second: u64,
    turns_a_second: u64,
    load: VecDeque<u64>,
}

/// All that is shown.
#[derive(Debug, Default)]
pub struct View {
    recording: Recording,
    cores: BTreeMap<u8, CoreView>,
    /// Processes and mailboxes stolen, from one core by another.
    steals: BTreeMap<(u8, u8), u64>,
    busy: BTreeMap<u64, Busy>,
    /// What is shown of it, while the next is collected.
    shown: Vec<(u64, Busy)>,
    at: u64,
    since: u64,
    /// How the busiest are sorted.
    pub sort: Sort,
    /// Nothing new is shown.
    pub is_paused: bool,
    /// What it says last.
    pub said: String,
}

impl View {
    /// Takes a frame.
    pub fn take(&mut self, sequence: u64, record: Record) {
        if self.is_paused {
            return;
        }
        match &record {
            Record::Events { core, events, .. } => {
                for event in events {
                    match event.kind {
                        Some(kind) if kind.ends_turn() => {
                            let busy = self.busy.entry(event.subject).or_default();
                            busy.name = event.name;
                            busy.ticks += u64::from(event.value);
                            busy.turns += 1;
                        }
                        Some(Kind::Stolen | Kind::MailboxStolen) => {
                            *self.steals.entry((event.value as u8, *core)).or_default() += 1;
                        }
                        _ => {}
                    }
                }
            }
            Record::Values(core, numbers) => {
                if let Some(values) = Values::of(numbers) {
                    self.values(*core, values);
                }
            }
            Record::Name(..) | Record::Hello { .. } => {}
        }
        let is_values = matches!(record, Record::Values(..));
        let is_event = matches!(record, Record::Events { .. });
        self.recording.take(sequence, record);
        if is_event {
            // They were counted, and are not needed any more.
            self.recording.events.clear();
        }
        if is_values && self.at.saturating_sub(self.since) >= self.recording.frequency {
            self.since = self.at;
            self.shown = std::mem::take(&mut self.busy).into_iter().collect();
        }
    }

    fn values(&mut self, core: u8, values: Values) {
        let before = self.recording.values.get(&core).map(|(_, last)| *last);
        let view = self.cores.entry(core).or_default();
        view.shares = values.shares_since(before.as_ref());
        view.waiting = values.waiting();
        if let Some(before) = before {
            let ticks = values.at().saturating_sub(before.at()).max(1);
            let rate = |name: &str| {
                let more = values.get(name).saturating_sub(before.get(name));
                (u128::from(more) * u128::from(self.recording.frequency) / u128::from(ticks)) as u64
            };
            (view.messages_a_second, view.turns_a_second) = (rate("messages_handled"), rate("turns"));
        }
        view.load.push_back(1_000 - view.shares[2].min(1_000));
        if view.load.len() > SAMPLES {
            view.load.pop_front();
        }
        self.at = values.at();
        if self.since == 0 {
            self.since = self.at;
        }
    }

    /// How many microseconds the process with this number ran in the last second, and in how many turns.
    pub fn turns_of(&self, subject: u64) -> Option<(u64, u64)> {
        let (_, busy) = self.shown.iter().find(|(shown, _)| *shown == subject)?;
        Some((self.recording.nanoseconds(busy.ticks) / 1_000, busy.turns))
    }

    /// What is shown in so many columns and rows.
    pub fn lines(&self, width: usize, height: usize) -> Vec<String> {
        let mut lines = vec![self.title(), String::new()];
        lines.push(format!(
            "core   run  kern steal  idle   irq  max high normal   low    msg/s   turns/s  {}",
            if width > 80 { "load" } else { "" }
        ));
        // Half of the rows are for what is below.
        let most = height.saturating_sub(12).max(1);
        for (core, view) in self.cores.iter().take(most) {
            lines.push(core_line(*core, view, width));
        }
        if self.cores.len() > most {
            lines.push(format!("  and {} more cores: a higher terminal shows them", self.cores.len() - most));
        }
        lines.push(String::new());
        let (left, right) = (self.busiest(), self.matrix());
        let rows = height.saturating_sub(lines.len() + 1);
        let split = width.saturating_sub(34).max(40);
        for row in 0..rows {
            let (left, right) =
                (left.get(row).map_or("", String::as_str), right.get(row).map_or("", String::as_str));
            lines.push(format!("{left:split$.split$}  {right}"));
        }
        lines.push(format!(
            "q quits  p {}  s: by {}  1 cores 2 ps 3 actors 4 tree 5 settings 6 mail",
            if self.is_paused { "goes on" } else { "pauses" },
            self.sort.next().name()
        ));
        lines.iter_mut().for_each(|line| *line = line.chars().take(width).collect());
        lines
    }

    fn title(&self) -> String {
        let messages = self.cores.values().map(|core| core.messages_a_second).fold(0, u64::saturating_add);
        let lost = self.recording.overwritten;
        let missing = self.recording.missing_frames;
        // Far in front, because a line is cut off at the terminal's edge.
        let said = if self.said.is_empty() { String::new() } else { format!("{}, ", self.said) };
        format!(
            "Magpie: {} cores, {said}{messages} messages/s, {lost} events lost, {missing} frames missing",
            self.cores.len(),
        )
    }

    fn busiest(&self) -> Vec<String> {
        let mut shown = self.shown.clone();
        if shown.is_empty() {
            // No second is over yet.
            shown = self.busy.clone().into_iter().collect();
        }
        let name = |busy: &Busy| short(self.recording.name(busy.name)).to_owned();
        match self.sort {
            Sort::Time => shown.sort_by_key(|(_, busy)| std::cmp::Reverse(busy.ticks)),
            Sort::Turns => shown.sort_by_key(|(_, busy)| std::cmp::Reverse(busy.turns)),
            Sort::Name => shown.sort_by_key(|(_, busy)| name(busy)),
        }
        let mut lines = vec![format!("{:>9} {:>8}  busiest, by {}", "us/s", "turns/s", self.sort.name())];
        lines.extend(shown.iter().map(|(_, busy)| {
            let microseconds = self.recording.nanoseconds(busy.ticks) / 1_000;
            format!("{microseconds:>9} {:>8}  {}", busy.turns, name(busy))
        }));
        lines
    }

    /// Who has stolen from whom.
    fn matrix(&self) -> Vec<String> {
        const MOST: usize = 6;
        let cores: Vec<u8> = self.cores.keys().copied().take(MOST).collect();
        let mut head = String::from("stolen by");
        cores.iter().for_each(|core| {
            let _ = write!(head, " {core:>3}");
        });
        let mut lines = vec![head];
        for from in &cores {
            let mut line = format!("from {from:>4}");
            for by in &cores {
                match self.steals.get(&(*from, *by)) {
                    Some(count) => {
                        let _ = write!(line, " {count:>3}");
                    }
                    None => line.push_str("   ."),
                }
            }
            lines.push(line);
        }
        lines
    }
}

fn core_line(core: u8, view: &CoreView, width: usize) -> String {
    let percent = |share: u64| format!("{:>3}.{}", share / 10, share % 10);
    let [run, steal, idle, interrupt, kernel] = view.shares.map(percent);
    let [max, high, normal, low] = view.waiting;
    let mut line = format!(
        "{core:>4} {run} {kernel} {steal} {idle} {interrupt} {max:>4} {high:>4} {normal:>6} {low:>5} {:>8} {:>9}  ",
        view.messages_a_second, view.turns_a_second
    );
    let room = width.saturating_sub(line.chars().count()).min(SAMPLES);
    let from = view.load.len().saturating_sub(room);
    line.extend(
        view.load
            .iter()
            .skip(from)
            .map(|load| BARS[(*load as usize * (BARS.len() - 1) / 1_000).min(BARS.len() - 1)]),
    );
    line
}

#[cfg(test)]
mod tests {
    use super::{Sort, View};
    use crate::trace::values::NAMES;
    use crate::trace::{Event, Kind, Record};

    fn values(core: u8, at: u64, spent: [u64; 4], messages: u64) -> Record {
        let mut numbers = vec![0; NAMES.len()];
        numbers[0] = at;
        numbers[1..5].copy_from_slice(&spent);
        numbers[8] = messages;
        // A quarter of what it ran.
        numbers[21] = spent[0] / 4;
        numbers[19] = 12;
        Record::Values(core, numbers)
    }

    fn view() -> View {
        let event = |kind, name, value, subject| Event { at: 5, kind: Some(kind), name, value, subject };
        let mut view = View::default();
        let records = [
            Record::Hello { frequency: 1_000, cores: 2, now: 0 },
            Record::Name(3, "app::idler".into()),
            Record::Name(4, "app::worker".into()),
            values(0, 1_000, [0; 4], 0),
            values(1, 1_000, [0; 4], 0),
            Record::Events {
                core: 1,
                lost: 2,
                first: 2,
                events: vec![
                    event(Kind::Stolen, 4, 0, 8),
                    event(Kind::Waits, 4, 700, 8),
                    event(Kind::Waits, 3, 1, 9),
                    event(Kind::Waits, 3, 1, 9),
                ],
            },
            values(0, 3_000, [1_000, 250, 500, 250], 500),
            values(1, 3_000, [0, 0, 2_000, 0], 0),
        ];
        records.into_iter().zip(0..).for_each(|(record, number)| view.take(number, record));
        view
    }

    #[test]
    fn it_shows_what_was_told_in_eighty_columns() {
        let mut view = view();
        let lines = view.lines(80, 24);
        assert_eq!(lines.len(), 24);
        assert!(lines.iter().all(|line| line.chars().count() <= 80));
        let text = lines.join("\n");
        assert!(text.contains("2 cores, 250 messages/s, 2 events lost, 0 frames missing"), "{text}");
        assert!(
            lines[3].starts_with("   0  37.5  12.5  12.5  25.0  12.5    0    0     12     0      250"),
            "{text}"
        );
        assert!(lines[4].starts_with("   1   0.0   0.0   0.0 100.0   0.0"), "{text}");
        assert!(lines[5 + 1].contains("busiest, by time") && lines[5 + 2].contains("app::worker"), "{text}");
        assert!(lines[5 + 2].contains("from    0   .   1"), "{text}");
        assert!(lines[23].starts_with("q quits"), "{text}");
        view.sort = Sort::Turns;
        assert!(view.lines(80, 24)[7].contains("app::idler"));
    }

    #[test]
    fn any_size_will_do() {
        for (width, height) in [(1, 1), (20, 5), (80, 24), (200, 60)] {
            assert!(view().lines(width, height).iter().all(|line| line.chars().count() <= width));
        }
    }

    #[test]
    fn what_is_paused_stays() {
        let mut view = view();
        let before = view.lines(80, 24)[3].clone();
        view.is_paused = true;
        view.take(9, values(0, 9_000, [9_000, 0, 0, 0], 9_000));
        assert_eq!(view.lines(80, 24)[3], before);
    }
}
