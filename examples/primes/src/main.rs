//! Primes by a sieve: each prime is an actor that passes on what it does not divide. The first number that reaches the end of the chain is the next
//! prime, and the actor there starts the one behind it. So the program grows while it runs.
#![cfg_attr(target_os = "none", no_std, no_main)]
#![forbid(unsafe_code)]

use magpie::prelude::*;

magpie::entry!(primes);

const UP_TO: u32 = 2000;

struct Prime {
    number: u32,
    next: Option<Addr<Prime>>,
}

impl Actor for Prime {}

/// A number that no prime before this one divides.
struct Candidate(u32);
/// Asks for the number and who comes next.
struct Read;

impl Receive<Candidate> for Prime {
    type Reply = ();

    fn receive(&mut self, Candidate(number): Candidate, context: &mut Context<Self>) {
        if number.is_multiple_of(self.number) {
            return;
        }
        let done = match self.next {
            Some(next) => next.send(Candidate(number)).is_ok(),
            None => {
                self.next = context.spawn(Prime { number, next: None }).ok();
                self.next.is_some()
            }
        };
        if !done {
            // There is no memory.
            context.end();
        }
    }
}

impl Receive<Read> for Prime {
    type Reply = (u32, Option<Addr<Prime>>);

    fn receive(&mut self, _: Read, _: &mut Context<Self>) -> Self::Reply {
        (self.number, self.next)
    }
}

async fn primes() -> magpie::Result {
    let executor = Executor::start(&Config::default())?;
    let two = executor.handle().spawn(Prime { number: 2, next: None })?;
    for number in 3..=UP_TO {
        two.send(Candidate(number))?;
    }
    // When nothing is left to do, every number has ended somewhere.
    sched::out_of_work().await;
    let (mut count, mut largest, mut next) = (0, 0, Some(two));
    while let Some(prime) = next {
        count += 1;
        (largest, next) = prime.ask(Read).await?;
    }
    text!("{count} primes up to {UP_TO}, the largest is {largest}");
    Ok(())
}
