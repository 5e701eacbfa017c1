//! Barber: a factory makes customers and sends them to a waiting room; one barber cuts the hair of one after the other.
//! Who finds the room full goes back to the factory, which sends it again at once.
//!
//! One operation is one haircut. Making a customer and cutting hair are busy work of a random length. The room, the
//! barber and one customer are a chain of lone messages, beside which a flood of retries goes round; the chain decides
//! how long it takes. Every customer must have had one haircut, and the room must be empty in the end.
//!
//! Parameters: haircuts, seats in the waiting room, average steps of work for making a customer and for a haircut.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use core::hint::black_box;
use magpie::actor::{Actor, Addr, Context, ExecutorHandle, Receive};

use crate::busy::work;
use crate::failed::Failed;
use crate::figures::Go;
use crate::random::Random;
use crate::{stopwatch, verdict};

struct Open;
struct Enter(Addr<Customer>);
/// The barber takes the next one.
struct Next;
/// The room is full.
struct Full;
/// There is a seat.
struct Wait;
/// The barber begins.
struct Begin;
/// The barber has finished.
struct Finished;
/// A customer found the room full.
struct Returned(Addr<Customer>);
/// A customer goes home with so many haircuts.
struct Served(u64);
struct Close;

/// A random amount of work, `average` steps in the mean.
struct Labour {
    random: Random,
    average: u64,
}

impl Labour {
    fn new(seed: u32, average: u64) -> Self {
        Self { random: Random::new(seed), average }
    }

    fn toil(&mut self) {
        let steps = self.random.below((2 * self.average).clamp(1, 1 << 24) as usize);
        black_box(work(steps as u64, 1));
    }
}

struct Factory {
    room: Addr<Room>,
    customers: u64,
    left: u64,
    labour: Labour,
}

impl Actor for Factory {}

impl Receive<Open> for Factory {
    type Reply = ();

    fn receive(&mut self, _: Open, context: &mut Context<Self>) {
        for _ in 0..self.customers {
            let customer = Customer { factory: context.address(), haircuts: 0 };
            if let Ok(customer) = context.spawn(customer) {
                let _ = self.room.send(Enter(customer));
            }
            self.labour.toil();
        }
    }
}

impl Receive<Returned> for Factory {
    type Reply = ();

    fn receive(&mut self, Returned(customer): Returned, _: &mut Context<Self>) {
        let _ = self.room.send(Enter(customer));
    }
}

impl Receive<Served> for Factory {
    type Reply = ();

    fn receive(&mut self, Served(haircuts): Served, context: &mut Context<Self>) {
        verdict::expect_equal("haircuts of one customer", haircuts, 1);
        self.left -= 1;
        if self.left > 0 {
            return;
        }
        stopwatch::done();
        let _ = self.room.send(Close);
        context.end();
    }
}

struct Customer {
    factory: Addr<Factory>,
    haircuts: u64,
}

impl Actor for Customer {}

impl Receive<Full> for Customer {
    type Reply = ();

    fn receive(&mut self, _: Full, context: &mut Context<Self>) {
        let _ = self.factory.send(Returned(context.address()));
    }
}

impl Receive<Wait> for Customer {
    type Reply = ();

    fn receive(&mut self, _: Wait, _: &mut Context<Self>) {}
}

impl Receive<Begin> for Customer {
    type Reply = ();

    fn receive(&mut self, _: Begin, _: &mut Context<Self>) {
        self.haircuts += 1;
    }
}

impl Receive<Finished> for Customer {
    type Reply = ();

    fn receive(&mut self, _: Finished, context: &mut Context<Self>) {
        let _ = self.factory.send(Served(self.haircuts));
        context.end();
    }
}

struct Room {
    barber: Addr<Barber>,
    seats: usize,
    waiting: VecDeque<Addr<Customer>>,
    barber_sleeps: bool,
}

impl Actor for Room {}

impl Receive<Enter> for Room {
    type Reply = ();

    fn receive(&mut self, Enter(customer): Enter, context: &mut Context<Self>) {
        if self.waiting.len() == self.seats {
            let _ = customer.send(Full);
            return;
        }
        self.waiting.push_back(customer);
        if self.barber_sleeps {
            self.barber_sleeps = false;
            let _ = context.address().send(Next);
        } else {
            let _ = customer.send(Wait);
        }
    }
}

impl Receive<Next> for Room {
    type Reply = ();

    fn receive(&mut self, _: Next, context: &mut Context<Self>) {
        match self.waiting.pop_front() {
            Some(customer) => {
                let _ = self.barber.send(Cut { customer, room: context.address() });
            }
            None => self.barber_sleeps = true,
        }
    }
}

impl Receive<Close> for Room {
    type Reply = ();

    fn receive(&mut self, _: Close, context: &mut Context<Self>) {
        verdict::expect_equal("customers left in the room", self.waiting.len(), 0);
        let _ = self.barber.send(Close);
        context.end();
    }
}

struct Cut {
    customer: Addr<Customer>,
    room: Addr<Room>,
}

struct Barber {
    haircuts: u64,
    expected: u64,
    labour: Labour,
}

impl Actor for Barber {}

impl Receive<Cut> for Barber {
    type Reply = ();

    fn receive(&mut self, Cut { customer, room }: Cut, _: &mut Context<Self>) {
        let _ = customer.send(Begin);
        self.labour.toil();
        self.haircuts += 1;
        let _ = customer.send(Finished);
        let _ = room.send(Next);
    }
}

impl Receive<Close> for Barber {
    type Reply = ();

    fn receive(&mut self, _: Close, context: &mut Context<Self>) {
        verdict::expect_equal("haircuts", self.haircuts, self.expected);
        context.end();
    }
}

pub fn prepare(handle: &ExecutorHandle, parameters: &[u64]) -> Result<Go, Failed> {
    let (haircuts, seats) = (parameters[0], parameters[1]);
    let (making, cutting) = (parameters[2], parameters[3]);
    if haircuts == 0 || seats == 0 {
        return Err(Failed::Parameters("at least 1 haircut, and 1 seat"));
    }
    let barber = handle.spawn(Barber { haircuts: 0, expected: haircuts, labour: Labour::new(1, cutting) })?;
    let waiting = VecDeque::new();
    let room = handle.spawn(Room { barber, seats: seats as usize, waiting, barber_sleeps: true })?;
    let labour = Labour::new(2, making);
    let factory = handle.spawn(Factory { room, customers: haircuts, left: haircuts, labour })?;
    Ok(Box::new(move || {
        stopwatch::begin(1);
        factory.send(Open).map_err(|_| Failed::Memory)?;
        Ok(haircuts)
    }))
}
