//! Quicksort: an actor that is given a long list splits it at a pivot and has the halves sorted by two actors that it
//! spawns; a short list it sorts itself. The parts go back up the tree and are put together.
//!
//! One operation is one number of the list. The result must be in order, with as many numbers and the same sum as
//! before.
//!
//! Parameters: numbers, the length below which a list is sorted at once.

use alloc::boxed::Box;
use alloc::vec::Vec;
use magpie::actor::{Actor, Addr, Context, ExecutorHandle, Receive};

use crate::failed::Failed;
use crate::figures::Go;
use crate::random::Random;
use crate::{stopwatch, verdict};

struct Sort(Vec<u64>);

/// Which part of its parent's list an actor sorts.
#[derive(Clone, Copy)]
enum Part {
    Below,
    Above,
}

struct Sorted {
    part: Part,
    numbers: Vec<u64>,
}

/// Who waits for the sorted list.
enum Client {
    Parent(Addr<Sorter>, Part),
    /// The list as a whole: how many numbers it has, and their sum.
    Customer(usize, u64),
}

struct Sorter {
    client: Client,
    threshold: usize,
    /// The numbers that are equal to the pivot; what is below and above them is put round them.
    numbers: Vec<u64>,
    missing: u32,
}

impl Actor for Sorter {}

impl Sorter {
    fn new(client: Client, threshold: usize) -> Self {
        Self { client, threshold, numbers: Vec::new(), missing: 2 }
    }

    fn deliver(&mut self, numbers: Vec<u64>, context: &mut Context<Self>) {
        match self.client {
            Client::Parent(parent, part) => {
                let _ = parent.send(Sorted { part, numbers });
            }
            Client::Customer(length, sum) => {
                stopwatch::done();
                verdict::expect_equal("in order", numbers.is_sorted(), true);
                verdict::expect_equal("numbers", numbers.len(), length);
                verdict::expect_equal("sum", numbers.iter().sum(), sum);
            }
        }
        context.end();
    }

    fn delegate(&self, part: Part, numbers: Vec<u64>, context: &Context<Self>) {
        let child = Self::new(Client::Parent(context.address(), part), self.threshold);
        // Without memory for a child its part never comes, and the benchmark has no end.
        if let Ok(child) = context.spawn(child) {
            let _ = child.send(Sort(numbers));
        }
    }
}

impl Receive<Sort> for Sorter {
    type Reply = ();

    fn receive(&mut self, Sort(mut numbers): Sort, context: &mut Context<Self>) {
        if numbers.len() < self.threshold {
            numbers.sort_unstable();
            return self.deliver(numbers, context);
        }
        let pivot = numbers[numbers.len() / 2];
        let chosen = |wanted: fn(&u64, &u64) -> bool| -> Vec<u64> {
            numbers.iter().copied().filter(|number| wanted(number, &pivot)).collect()
        };
        self.delegate(Part::Below, chosen(u64::lt), context);
        self.delegate(Part::Above, chosen(u64::gt), context);
        self.numbers = chosen(u64::eq);
    }
}

impl Receive<Sorted> for Sorter {
    type Reply = ();

    fn receive(&mut self, Sorted { part, mut numbers }: Sorted, context: &mut Context<Self>) {
        match part {
            Part::Below => {
                numbers.append(&mut self.numbers);
                self.numbers = numbers;
            }
            Part::Above => self.numbers.append(&mut numbers),
        }
        self.missing -= 1;
        if self.missing > 0 {
            return;
        }
        let numbers = core::mem::take(&mut self.numbers);
        self.deliver(numbers, context);
    }
}

pub fn prepare(handle: &ExecutorHandle, parameters: &[u64]) -> Result<Go, Failed> {
    let (length, threshold) = (parameters[0], parameters[1]);
    if length == 0 || threshold < 2 {
        return Err(Failed::Parameters("at least 1 number, and lists of at least 2 are split"));
    }
    let mut random = Random::new(7);
    let numbers: Vec<u64> = (0..length).map(|_| u64::from(random.next())).collect();
    let client = Client::Customer(numbers.len(), numbers.iter().sum());
    let first = handle.spawn(Sorter::new(client, threshold as usize))?;
    Ok(Box::new(move || {
        stopwatch::begin(1);
        first.send(Sort(numbers)).map_err(|_| Failed::Memory)?;
        Ok(length)
    }))
}
