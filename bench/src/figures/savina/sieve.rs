//! Sieve: Eratosthenes' sieve as a chain of actors. Each keeps some primes, drops every number that one of them
//! divides, and hands on the rest; a number that comes through the last one is a prime, which it keeps, or begins a
//! new one with.
//!
//! One operation is one candidate: an odd number below the limit. The chain is a pipeline with much work in each
//! message. The primes must be as many as a plain sieve finds.
//!
//! Parameters: limit, primes for each actor.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use magpie::actor::{Actor, Addr, Context, ExecutorHandle, Receive};

use crate::driver::drive;
use crate::failed::Failed;
use crate::figures::Go;
use crate::{stopwatch, verdict};

struct Candidate(u64);
/// There are no more candidates. How many primes the filters before have kept, and how many there should be.
struct End {
    primes: usize,
    expected: usize,
}

struct Filter {
    primes: Vec<u64>,
    most: usize,
    next: Option<Addr<Filter>>,
}

impl Filter {
    fn new(prime: u64, most: usize) -> Self {
        Self { primes: vec![prime], most, next: None }
    }
}

impl Actor for Filter {}

impl Receive<Candidate> for Filter {
    type Reply = ();

    fn receive(&mut self, Candidate(number): Candidate, context: &mut Context<Self>) {
        if self.primes.iter().any(|&prime| number.is_multiple_of(prime)) {
            return;
        }
        match self.next {
            Some(next) => {
                let _ = next.send(Candidate(number));
            }
            None if self.primes.len() < self.most => self.primes.push(number),
            // Without memory for it a prime is missing in the end.
            None => self.next = context.spawn(Self::new(number, self.most)).ok(),
        }
    }
}

impl Receive<End> for Filter {
    type Reply = ();

    fn receive(&mut self, End { primes, expected }: End, context: &mut Context<Self>) {
        let primes = primes + self.primes.len();
        match self.next {
            Some(next) => {
                let _ = next.send(End { primes, expected });
            }
            None => {
                stopwatch::done();
                verdict::expect_equal("primes", primes, expected);
            }
        }
        context.end();
    }
}

/// How many primes there are below `limit`.
fn primes_below(limit: u64) -> usize {
    let mut is_prime = vec![true; limit as usize];
    let mut primes = 0;
    for number in 2..limit as usize {
        if is_prime[number] {
            primes += 1;
            (number * number..limit as usize).step_by(number).for_each(|multiple| is_prime[multiple] = false);
        }
    }
    primes
}

pub fn prepare(handle: &ExecutorHandle, parameters: &[u64]) -> Result<Go, Failed> {
    let (limit, most) = (parameters[0], parameters[1]);
    if limit < 4 || most == 0 {
        return Err(Failed::Parameters("a limit of at least 4, and a prime for each actor"));
    }
    let first = handle.spawn(Filter::new(2, most as usize))?;
    let expected = primes_below(limit);
    let candidates = (3..limit).step_by(2);
    let count = candidates.clone().count() as u64;
    let handle = handle.clone();
    Ok(Box::new(move || {
        drive(&handle, move || {
            stopwatch::begin(1);
            for number in candidates {
                let _ = first.send(Candidate(number));
            }
            let _ = first.send(End { primes: 0, expected });
        })?;
        Ok(count)
    }))
}
