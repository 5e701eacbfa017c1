//! Makes a file of what was recorded that Perfetto opens: a track for each core, with a slice for each turn, named by its process; one below it for
//! interrupts; instants for what has no length; arrows from a wake-up to the turn that it led to and from a message to the gulp of its mailbox, where that is on another core, and
//! from the core that was robbed to the first turn of what was taken; counters of what waits.
//!
//! The numbers of fields are those of Perfetto's `trace_packet.proto`, `track_descriptor.proto`, `track_event.proto` and
//! `debug_annotation.proto`.

use super::frame::{Event, Kind};
use super::proto::Message;
use super::record::{Recording, short};
use std::collections::HashMap;

/// Dense arrows hang the viewer: no more than these are drawn, and what is left out is counted.
const MOST_ARROWS: usize = 20_000;

/// `perfetto.protos.Trace`.
mod trace {
    pub const PACKET: u32 = 1;
}

/// `perfetto.protos.TracePacket`.
mod packet {
    pub const TIMESTAMP: u32 = 8;
    pub const TRUSTED_PACKET_SEQUENCE_ID: u32 = 10;
    pub const TRACK_EVENT: u32 = 11;
    pub const TRACK_DESCRIPTOR: u32 = 60;
}

/// `perfetto.protos.TrackDescriptor`.
mod descriptor {
    pub const UUID: u32 = 1;
    pub const NAME: u32 = 2;
    pub const PARENT_UUID: u32 = 5;
    pub const COUNTER: u32 = 8;
}

/// `perfetto.protos.TrackEvent`.
mod event {
    pub const DEBUG_ANNOTATIONS: u32 = 4;
    pub const TYPE: u32 = 9;
    pub const TRACK_UUID: u32 = 11;
    pub const NAME: u32 = 23;
    pub const COUNTER_VALUE: u32 = 30;
    /// Of the type `fixed64`.
    pub const FLOW_IDS: u32 = 47;
    /// Of the type `fixed64`.
    pub const TERMINATING_FLOW_IDS: u32 = 48;
    pub const SLICE_BEGIN: u64 = 1;
    pub const SLICE_END: u64 = 2;
    pub const INSTANT: u64 = 3;
    pub const COUNTER: u64 = 4;
}

/// `perfetto.protos.DebugAnnotation`.
mod annotation {
    pub const UINT_VALUE: u32 = 3;
    pub const STRING_VALUE: u32 = 6;
    pub const NAME: u32 = 10;
}

/// What is in a file that was made.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Drawn {
    /// Turns, and parts of turns.
    pub turns: usize,
    /// Thefts of processes.
    pub thefts: usize,
    /// Thefts of mailboxes.
    pub mailbox_thefts: usize,
    /// Arrows.
    pub arrows: usize,
    /// Arrows that were too many.
    pub arrows_left_out: usize,
}

/// The number of a core's track; of its interrupts; of its counter.
fn track(core: u8) -> u64 {
    1 + u64::from(core)
}
fn interrupts(core: u8) -> u64 {
    0x100 + track(core)
}
fn waiting(core: u8) -> u64 {
    0x200 + track(core)
}

/// A packet that comes at a time, in nanoseconds.
struct Timed {
    at: u64,
    /// What ends comes before what begins at the same time.
    order: u8,
    event: Message,
}

struct Drawing<'a> {
    recording: &'a Recording,
    timed: Vec<Timed>,
    drawn: Drawn,
    /// The number of the last arrow.
    last_arrow: u64,
    /// For each subject the arrows that end at its next turn: where and when each begins.
    open: HashMap<u64, Vec<Arrow>>,
    /// For each mailbox where and when the first message was sent that waits there.
    sent: HashMap<u64, (u8, u64)>,
}

struct Arrow {
    from: u8,
    at: u64,
    label: String,
    is_theft: bool,
}

/// Makes the file, and says what is in it.
pub fn draw(recording: &Recording, waiting_over_time: &[(u8, u64, u64)]) -> (Vec<u8>, Drawn) {
    let mut drawing = Drawing {
        recording,
        timed: Vec::new(),
        drawn: Drawn::default(),
        last_arrow: 0,
        open: HashMap::new(),
        sent: HashMap::new(),
    };
    let mut all: Vec<(u8, &Event)> = recording
        .events
        .iter()
        .flat_map(|(core, events)| events.iter().map(move |event| (*core, event)))
        .collect();
    // A turn is known at its end. What happens before that on other cores leads to it as well.
    all.sort_by_key(|(_, event)| event.at);
    for (core, event) in all {
        drawing.event(core, event);
    }
    for (core, at, value) in waiting_over_time {
        let event = Message::new()
            .number(event::TYPE, event::COUNTER)
            .number(event::TRACK_UUID, waiting(*core))
            .number(event::COUNTER_VALUE, *value);
        drawing.put(recording.nanoseconds(*at), 1, event);
    }
    let Drawing { mut timed, drawn, .. } = drawing;
    timed.sort_by_key(|timed| (timed.at, timed.order));
    let mut file = Message::new();
    for core in recording.events.keys().chain(recording.values.keys()).copied() {
        let counter = Message::new()
            .number(descriptor::UUID, waiting(core))
            .text(descriptor::NAME, &format!("core {core}: processes that wait"))
            .message(descriptor::COUNTER, &Message::new());
        let own = Message::new()
            .number(descriptor::UUID, track(core))
            .text(descriptor::NAME, &format!("core {core}"));
        let below = Message::new()
            .number(descriptor::UUID, interrupts(core))
            .text(descriptor::NAME, "interrupts")
            .number(descriptor::PARENT_UUID, track(core));
        for described in [own, below, counter] {
            let packet = Message::new()
                .number(packet::TRUSTED_PACKET_SEQUENCE_ID, 1)
                .message(packet::TRACK_DESCRIPTOR, &described);
            file = file.message(trace::PACKET, &packet);
        }
    }
    for Timed { at, event, .. } in &timed {
        let packet = Message::new()
            .number(packet::TIMESTAMP, *at)
            .number(packet::TRUSTED_PACKET_SEQUENCE_ID, 1)
            .message(packet::TRACK_EVENT, event);
        file = file.message(trace::PACKET, &packet);
    }
    (file.as_bytes().to_vec(), drawn)
}

fn on(track: u64, kind: u64, name: &str) -> Message {
    let message = Message::new().number(event::TYPE, kind).number(event::TRACK_UUID, track);
    if name.is_empty() { message } else { message.text(event::NAME, name) }
}

fn number(name: &str, value: u64) -> Message {
    Message::new().text(annotation::NAME, name).number(annotation::UINT_VALUE, value)
}

fn text(name: &str, value: &str) -> Message {
    Message::new().text(annotation::NAME, name).text(annotation::STRING_VALUE, value)
}

impl Drawing<'_> {
    fn put(&mut self, at: u64, order: u8, event: Message) {
        self.timed.push(Timed { at, order, event });
    }

    fn event(&mut self, core: u8, found: &Event) {
        let Some(kind) = found.kind else { return };
        let at = self.recording.nanoseconds(found.at);
        let began = self.recording.nanoseconds(found.at.saturating_sub(found.value.into()));
        let name = self.recording.name(found.name).to_owned();
        let label = short(&name).to_owned();
        match kind {
            kind if kind.ends_turn() => {
                self.drawn.turns += 1;
                let mut begin = on(track(core), event::SLICE_BEGIN, &label)
                    .message(event::DEBUG_ANNOTATIONS, &number("process", found.subject))
                    .message(event::DEBUG_ANNOTATIONS, &text("type", &name))
                    .message(event::DEBUG_ANNOTATIONS, &text("ended", &format!("{kind:?}").to_lowercase()));
                for arrow in self.open.remove(&found.subject).unwrap_or_default() {
                    if arrow.at > began || (arrow.from == core && !arrow.is_theft) {
                        continue;
                    }
                    let Some(number) = self.next_arrow() else { continue };
                    let from =
                        on(track(arrow.from), event::INSTANT, &arrow.label).fixed(event::FLOW_IDS, number);
                    self.put(arrow.at, 1, from);
                    begin = begin.fixed(event::TERMINATING_FLOW_IDS, number);
                }
                self.put(began, 2, begin);
                self.put(at, 0, on(track(core), event::SLICE_END, ""));
            }
            Kind::Awake => {
                self.put(began, 2, on(track(core), event::SLICE_BEGIN, "idle"));
                self.put(at, 0, on(track(core), event::SLICE_END, ""));
            }
            Kind::Interrupt => {
                self.put(began, 2, on(interrupts(core), event::SLICE_BEGIN, &label));
                self.put(at, 0, on(interrupts(core), event::SLICE_END, ""));
            }
            Kind::Woken | Kind::Spawned => {
                let verb = if kind == Kind::Woken { "wakes" } else { "starts" };
                self.begin_arrow(
                    found.subject,
                    Arrow { from: core, at, label: format!("{verb} {label}"), is_theft: false },
                );
            }
            Kind::Stolen => {
                self.drawn.thefts += 1;
                let from = found.value as u8;
                let stolen = on(track(core), event::INSTANT, &format!("steals {label}"))
                    .message(event::DEBUG_ANNOTATIONS, &number("from core", from.into()));
                self.put(at, 1, stolen);
                self.begin_arrow(
                    found.subject,
                    Arrow { from, at, label: format!("{label} is stolen"), is_theft: true },
                );
            }
            Kind::MailboxStolen => {
                self.drawn.mailbox_thefts += 1;
                let from = found.value as u8;
                self.last_arrow += 1;
                self.drawn.arrows += 1;
                let robbed = on(track(from), event::INSTANT, "mailbox is stolen")
                    .fixed(event::FLOW_IDS, self.last_arrow);
                self.put(at, 1, robbed);
                let steals = on(track(core), event::INSTANT, "steals mailbox")
                    .message(event::DEBUG_ANNOTATIONS, &number("mailbox", found.subject))
                    .fixed(event::TERMINATING_FLOW_IDS, self.last_arrow);
                self.put(at.saturating_add(1), 1, steals);
            }
            Kind::Gulp => {
                let mut gulp = on(track(core), event::INSTANT, "gulp")
                    .message(event::DEBUG_ANNOTATIONS, &number("messages", found.value.into()));
                if let Some((from, sent)) = self.sent.remove(&found.subject)
                    && from != core
                    && let Some(arrow) = self.next_arrow()
                {
                    self.put(sent, 1, on(track(from), event::INSTANT, "sends").fixed(event::FLOW_IDS, arrow));
                    gulp = gulp.fixed(event::TERMINATING_FLOW_IDS, arrow);
                }
                self.put(at, 1, gulp);
            }
            Kind::Sent => drop(self.sent.insert(found.subject, (core, at))),
            Kind::Mark => {
                let mark = on(track(core), event::INSTANT, &format!("mark {}", found.subject))
                    .message(event::DEBUG_ANNOTATIONS, &number("value", found.value.into()));
                self.put(at, 1, mark);
            }
            Kind::Refused => {
                self.put(at, 1, on(track(core), event::INSTANT, &format!("may not take {label}")))
            }
            Kind::Resumed => self.put(at, 1, on(track(core), event::INSTANT, &format!("resumes {label}"))),
            Kind::Sleeps => self.put(at, 1, on(track(core), event::INSTANT, "sleeps")),
            // Above.
            Kind::Yielded | Kind::Waits | Kind::Done | Kind::Suspended | Kind::Crashed => {}
        }
    }

    /// The number of one more arrow; none if there are too many.
    fn next_arrow(&mut self) -> Option<u64> {
        if self.drawn.arrows >= MOST_ARROWS {
            self.drawn.arrows_left_out += 1;
            return None;
        }
        self.drawn.arrows += 1;
        self.last_arrow += 1;
        Some(self.last_arrow)
    }

    fn begin_arrow(&mut self, subject: u64, arrow: Arrow) {
        self.open.entry(subject).or_default().push(arrow);
    }
}

#[cfg(test)]
mod tests {
    use super::super::proto::tests::{Value, fields};
    use super::{Drawn, draw};
    use crate::trace::{Event, Kind, Record, Recording};

    fn recording() -> Recording {
        let event = |at, kind, value, subject| Event { at, kind: Some(kind), name: 9, value, subject };
        let mut recording = Recording::default();
        let records = [
            Record::Hello { frequency: 1_000_000_000, cores: 2, now: 0 },
            Record::Name(9, "app::work::{{closure}}".into()),
            Record::Events {
                core: 0,
                lost: 0,
                first: 0,
                events: vec![
                    event(100, Kind::Woken, 1, 0x40),
                    event(120, Kind::Sent, 0, 0x60),
                    event(130, Kind::Sent, 0, 0x70),
                    event(150, Kind::Yielded, 90, 0x50),
                    event(160, Kind::Gulp, 1, 0x70),
                ],
            },
            Record::Events {
                core: 1,
                lost: 0,
                first: 0,
                events: vec![
                    event(180, Kind::Stolen, 0, 0x50),
                    event(200, Kind::Gulp, 2, 0x60),
                    event(300, Kind::Waits, 50, 0x40),
                    event(400, Kind::Done, 60, 0x50),
                ],
            },
        ];
        records.into_iter().zip(0..).for_each(|(record, number)| recording.take(number, record));
        recording
    }

    /// The messages in field `number` of a message.
    fn within(message: &[u8], number: u64) -> Vec<Vec<u8>> {
        let bytes = |(field, value)| match value {
            Value::Bytes(bytes) if field == number => Some(bytes),
            _ => None,
        };
        fields(message).into_iter().filter_map(bytes).collect()
    }

    fn has(message: &[u8], field: u64, value: &Value) -> bool {
        fields(message).iter().any(|found| *found == (field, value.clone()))
    }

    /// By the numbers of Perfetto's own definitions, written here a second time.
    #[test]
    fn slices_and_arrows_are_where_the_schema_has_them() {
        let (file, drawn) = draw(&recording(), &[(1, 200, 3)]);
        assert_eq!(drawn, Drawn { turns: 3, thefts: 1, mailbox_thefts: 0, arrows: 3, arrows_left_out: 0 });
        let packets = within(&file, 1);
        // Three tracks for each of two cores; two packets for each turn; the wake-up, the theft and its victim; two gulps, and the message that came
        // from the other core; a counter.
        assert_eq!(packets.len(), 6 + 2 * 3 + 3 + 3 + 1);
        assert!(packets.iter().all(|packet| has(packet, 10, &Value::Number(1))));
        let tracks: Vec<_> = packets.iter().flat_map(|packet| within(packet, 60)).collect();
        assert_eq!(tracks.len(), 6);
        assert!(
            tracks
                .iter()
                .any(|track| has(track, 1, &Value::Number(2))
                    && has(track, 2, &Value::Bytes(b"core 1".into())))
        );
        let events: Vec<_> = packets.iter().flat_map(|packet| within(packet, 11)).collect();
        let of_type = |number| events.iter().filter(move |event| has(event, 9, &Value::Number(number)));
        assert_eq!(
            (of_type(1).count(), of_type(2).count(), of_type(3).count(), of_type(4).count()),
            (3, 3, 6, 1)
        );
        // The arrow of the wake-up leads from core 0 to the turn on core 1.
        let from = of_type(3)
            .find(|event| has(event, 23, &Value::Bytes(b"wakes app::work".into())))
            .expect("its begin");
        assert!(has(from, 11, &Value::Number(1)));
        let id = |event: &[u8], field| {
            fields(event).into_iter().find_map(|(number, value)| match value {
                Value::Fixed(id) if number == field => Some(id),
                _ => None,
            })
        };
        let id_from = id(from, 47).expect("a flow, of the type fixed64");
        let to: Vec<_> = of_type(1).filter(|event| id(event, 48) == Some(id_from)).collect();
        assert_eq!(to.len(), 1);
        assert!(has(to[0], 11, &Value::Number(2)) && has(to[0], 23, &Value::Bytes(b"app::work".into())));
        // That of the message leads to the gulp there, and the other gulp, on the sender's core, has none.
        let sent =
            of_type(3).find(|event| has(event, 23, &Value::Bytes(b"sends".into()))).expect("a message");
        let gulps: Vec<_> =
            of_type(3).filter(|event| has(event, 23, &Value::Bytes(b"gulp".into()))).collect();
        let met: Vec<_> = gulps.iter().filter(|gulp| id(gulp, 48) == id(sent, 47)).collect();
        assert_eq!((gulps.len(), met.len()), (2, 1));
        assert!(has(met[0], 11, &Value::Number(2)));
        // The turn of 90 ticks that ended at 150 began at 60.
        let begins = packets
            .iter()
            .find(|packet| within(packet, 11).iter().any(|event| has(event, 9, &Value::Number(1))));
        assert!(has(begins.expect("a slice"), 8, &Value::Number(60)));
        assert!(has(of_type(4).next().expect("a counter"), 30, &Value::Number(3)));
    }

    #[test]
    fn times_do_not_go_back() {
        let (file, _) = draw(&recording(), &[]);
        let times: Vec<u64> = within(&file, 1)
            .iter()
            .flat_map(|packet| fields(packet))
            .filter_map(|(field, value)| match value {
                Value::Number(at) if field == 8 => Some(at),
                _ => None,
            })
            .collect();
        assert!(times.is_sorted() && times.len() == 12, "{times:?}");
    }
}
