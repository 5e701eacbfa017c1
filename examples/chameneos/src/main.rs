//! Creatures of three colours want to meet. Who comes to the mall first waits there, the next one meets them, and each takes the colour that
//! the other's and its own say. Nobody has a lock: who waits is a field of the mall's.
#![cfg_attr(target_os = "none", no_std, no_main)]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::vec::Vec;
use magpie::prelude::*;

magpie::entry!(chameneos);

const MEETINGS: u64 = 10_000;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Colour {
    Blue,
    Red,
    Yellow,
}

use Colour::{Blue, Red, Yellow};

impl Colour {
    /// What becomes of it when it meets another: that one if they are equal, else the third.
    fn after(self, other: Self) -> Self {
        match (self, other) {
            (Blue, Red) | (Red, Blue) => Yellow,
            (Blue, Yellow) | (Yellow, Blue) => Red,
            (Red, Yellow) | (Yellow, Red) => Blue,
            _ => self,
        }
    }
}

struct Mall {
    left: u64,
    waiting: Option<Visit>,
}

impl Actor for Mall {}

/// Somebody has come.
#[derive(Clone, Copy)]
struct Visit {
    colour: Colour,
    creature: Addr<Creature>,
}

/// Whom a creature has met.
struct Met(Colour);

impl Receive<Visit> for Mall {
    type Reply = ();

    fn receive(&mut self, second: Visit, context: &mut Context<Self>) {
        if self.left == 0 {
            // It is closed: who comes now waits for ever.
            return;
        }
        let Some(first) = self.waiting.take() else {
            self.waiting = Some(second);
            return;
        };
        self.left -= 1;
        let told = first.creature.send(Met(second.colour)).is_ok()
            && second.creature.send(Met(first.colour)).is_ok();
        if !told {
            context.end();
        }
    }
}

struct Creature {
    colour: Colour,
    mall: Addr<Mall>,
    meetings: u64,
}

impl Actor for Creature {}

/// Go to the mall.
struct Go;
struct Meetings;

impl Creature {
    fn visit(&self, context: &mut Context<Self>) {
        if self.mall.send(Visit { colour: self.colour, creature: context.address() }).is_err() {
            context.end();
        }
    }
}

impl Receive<Go> for Creature {
    type Reply = ();

    fn receive(&mut self, _: Go, context: &mut Context<Self>) {
        self.visit(context);
    }
}

impl Receive<Met> for Creature {
    type Reply = ();

    fn receive(&mut self, met: Met, context: &mut Context<Self>) {
        self.meetings += 1;
        self.colour = self.colour.after(met.0);
        self.visit(context);
    }
}

impl Receive<Meetings> for Creature {
    type Reply = u64;

    fn receive(&mut self, _: Meetings, _: &mut Context<Self>) -> u64 {
        self.meetings
    }
}

async fn chameneos() -> magpie::Result {
    let executor = Executor::start(&Config::default())?;
    let mall = executor.handle().spawn(Mall { left: MEETINGS, waiting: None })?;
    let mut creatures = Vec::new();
    for colour in [Blue, Red, Yellow, Red, Yellow, Blue] {
        creatures.push(executor.handle().spawn(Creature { colour, mall, meetings: 0 })?);
    }
    for creature in &creatures {
        creature.send(Go)?;
    }
    sched::out_of_work().await;
    let mut sum = 0;
    for creature in &creatures {
        sum += creature.ask(Meetings).await?;
    }
    text!("{} creatures, {MEETINGS} meetings; they remember {sum}, two for each", creatures.len());
    Ok(())
}
