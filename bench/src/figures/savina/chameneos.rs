//! Chameneos: creatures go to a mall, which brings every two of them together; they take on a colour that depends on
//! both of theirs, and come back.
//!
//! One operation is one meeting: four messages, through one actor that all need. When there have been enough, the
//! creatures say how often each has met; that must be twice for every meeting.
//!
//! Parameters: creatures, meetings.

use alloc::boxed::Box;
use alloc::vec::Vec;
use magpie::actor::{Actor, Addr, Context, ExecutorHandle, Receive};

use crate::driver::drive;
use crate::failed::Failed;
use crate::figures::Go;
use crate::{stopwatch, verdict};

#[derive(Clone, Copy, PartialEq)]
enum Colour {
    Blue,
    Red,
    Yellow,
}

impl Colour {
    const ALL: [Self; 3] = [Self::Blue, Self::Red, Self::Yellow];

    /// What both become: the same if they are alike, the third colour if not.
    fn after_meeting(self, other: Self) -> Self {
        if self == other {
            return self;
        }
        Self::ALL.into_iter().find(|&third| third != self && third != other).unwrap_or(self)
    }
}

/// A creature wants to meet, or is to meet the one that is named.
struct Meet {
    colour: Colour,
    creature: Addr<Creature>,
}
/// The colour after the meeting.
struct Change(Colour);
/// The mall closes.
struct Closed;
/// How often a creature has met.
struct Met(u64);
struct Start;

struct Mall {
    waiting: Option<Meet>,
    meetings_left: u64,
    meetings: u64,
    creatures_left: u64,
    met: u64,
}

impl Actor for Mall {}

impl Receive<Meet> for Mall {
    type Reply = ();

    fn receive(&mut self, second: Meet, _: &mut Context<Self>) {
        if self.meetings_left == 0 {
            let _ = second.creature.send(Closed);
            return;
        }
        match self.waiting.take() {
            None => self.waiting = Some(second),
            Some(first) => {
                self.meetings_left -= 1;
                let _ = first.creature.send(second);
            }
        }
    }
}

impl Receive<Met> for Mall {
    type Reply = ();

    fn receive(&mut self, Met(times): Met, context: &mut Context<Self>) {
        self.met += times;
        self.creatures_left -= 1;
        if self.creatures_left > 0 {
            return;
        }
        stopwatch::done();
        verdict::expect_equal("how often all have met", self.met, 2 * self.meetings);
        context.end();
    }
}

struct Creature {
    mall: Addr<Mall>,
    colour: Colour,
    met: u64,
}

impl Actor for Creature {}

impl Creature {
    fn go_to_the_mall(&self, own: Addr<Self>) {
        let _ = self.mall.send(Meet { colour: self.colour, creature: own });
    }
}

impl Receive<Start> for Creature {
    type Reply = ();

    fn receive(&mut self, _: Start, context: &mut Context<Self>) {
        self.go_to_the_mall(context.address());
    }
}

impl Receive<Meet> for Creature {
    type Reply = ();

    fn receive(&mut self, other: Meet, context: &mut Context<Self>) {
        self.colour = self.colour.after_meeting(other.colour);
        self.met += 1;
        let _ = other.creature.send(Change(self.colour));
        self.go_to_the_mall(context.address());
    }
}

impl Receive<Change> for Creature {
    type Reply = ();

    fn receive(&mut self, Change(colour): Change, context: &mut Context<Self>) {
        self.colour = colour;
        self.met += 1;
        self.go_to_the_mall(context.address());
    }
}

impl Receive<Closed> for Creature {
    type Reply = ();

    fn receive(&mut self, _: Closed, context: &mut Context<Self>) {
        let _ = self.mall.send(Met(self.met));
        context.end();
    }
}

pub fn prepare(handle: &ExecutorHandle, parameters: &[u64]) -> Result<Go, Failed> {
    let (count, meetings) = (parameters[0], parameters[1]);
    if count < 2 {
        return Err(Failed::Parameters("at least 2 creatures can meet"));
    }
    let mall = handle.spawn(Mall {
        waiting: None,
        meetings_left: meetings,
        meetings,
        creatures_left: count,
        met: 0,
    })?;
    let mut creatures = Vec::new();
    for number in 0..count as usize {
        let colour = Colour::ALL[number % Colour::ALL.len()];
        creatures.push(handle.spawn(Creature { mall, colour, met: 0 })?);
    }
    let handle = handle.clone();
    Ok(Box::new(move || {
        drive(&handle, move || {
            stopwatch::begin(1);
            for creature in creatures {
                let _ = creature.send(Start);
            }
        })?;
        Ok(meetings)
    }))
}
