//! Philosophers: they sit round a table with a fork between every two, and ask one arbiter for both of theirs. Who is
//! denied them asks again at once.
//!
//! One operation is one meal. How many denials it takes depends on whose message is first; a flood of them shows what a
//! message costs that achieves nothing. Each fork must come back from the one who had it.
//!
//! Parameters: seats, meals of each.

use alloc::boxed::Box;
use alloc::format;
use alloc::vec;
use alloc::vec::Vec;
use magpie::actor::{Actor, Addr, Context, ExecutorHandle, Receive};

use crate::driver::drive;
use crate::failed::Failed;
use crate::figures::Go;
use crate::{stopwatch, verdict};

struct Hungry {
    seat: usize,
    philosopher: Addr<Philosopher>,
}
struct Done {
    seat: usize,
}
struct Leave;
struct Eat;
struct Denied;
struct Start;

struct Arbiter {
    /// By seat: who has the fork to the left of it.
    forks: Vec<Option<usize>>,
    meals: u64,
    expected_meals: u64,
    guests: u64,
}

impl Actor for Arbiter {}

impl Arbiter {
    fn forks_of(&self, seat: usize) -> [usize; 2] {
        [seat, (seat + 1) % self.forks.len()]
    }
}

impl Receive<Hungry> for Arbiter {
    type Reply = ();

    fn receive(&mut self, Hungry { seat, philosopher }: Hungry, _: &mut Context<Self>) {
        let forks = self.forks_of(seat);
        if forks.iter().any(|&fork| self.forks[fork].is_some()) {
            let _ = philosopher.send(Denied);
        } else {
            forks.into_iter().for_each(|fork| self.forks[fork] = Some(seat));
            let _ = philosopher.send(Eat);
        }
    }
}

impl Receive<Done> for Arbiter {
    type Reply = ();

    fn receive(&mut self, Done { seat }: Done, _: &mut Context<Self>) {
        self.meals += 1;
        for fork in self.forks_of(seat) {
            if self.forks[fork].take() != Some(seat) {
                verdict::wrong(format!("the one at seat {seat} gave back fork {fork}, but did not have it"));
            }
        }
    }
}

impl Receive<Leave> for Arbiter {
    type Reply = ();

    fn receive(&mut self, _: Leave, context: &mut Context<Self>) {
        self.guests -= 1;
        if self.guests > 0 {
            return;
        }
        stopwatch::done();
        verdict::expect_equal("meals", self.meals, self.expected_meals);
        context.end();
    }
}

struct Philosopher {
    arbiter: Addr<Arbiter>,
    seat: usize,
    meals_left: u64,
}

impl Actor for Philosopher {}

impl Philosopher {
    fn ask_for_forks(&self, own: Addr<Self>) {
        let _ = self.arbiter.send(Hungry { seat: self.seat, philosopher: own });
    }
}

impl Receive<Start> for Philosopher {
    type Reply = ();

    fn receive(&mut self, _: Start, context: &mut Context<Self>) {
        self.ask_for_forks(context.address());
    }
}

impl Receive<Denied> for Philosopher {
    type Reply = ();

    fn receive(&mut self, _: Denied, context: &mut Context<Self>) {
        self.ask_for_forks(context.address());
    }
}

impl Receive<Eat> for Philosopher {
    type Reply = ();

    fn receive(&mut self, _: Eat, context: &mut Context<Self>) {
        self.meals_left -= 1;
        let _ = self.arbiter.send(Done { seat: self.seat });
        if self.meals_left == 0 {
            let _ = self.arbiter.send(Leave);
            return context.end();
        }
        // Thinking is a message to itself, as in Savina.
        let _ = context.address().send(Start);
    }
}

pub fn prepare(handle: &ExecutorHandle, parameters: &[u64]) -> Result<Go, Failed> {
    let (seats, meals) = (parameters[0], parameters[1]);
    if seats < 2 || meals == 0 {
        return Err(Failed::Parameters("at least 2 seats, and a meal for each"));
    }
    let arbiter = handle.spawn(Arbiter {
        forks: vec![None; seats as usize],
        meals: 0,
        expected_meals: seats * meals,
        guests: seats,
    })?;
    let mut philosophers = Vec::new();
    for seat in 0..seats as usize {
        philosophers.push(handle.spawn(Philosopher { arbiter, seat, meals_left: meals })?);
    }
    let handle = handle.clone();
    Ok(Box::new(move || {
        drive(&handle, move || {
            stopwatch::begin(1);
            for philosopher in philosophers {
                let _ = philosopher.send(Start);
            }
        })?;
        Ok(seats * meals)
    }))
}
