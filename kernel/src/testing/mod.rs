//! Tests of one's own actors and processes on the developer's machine: ordinary `#[test]`s, under `cargo test`.
//!
//! ```no_run
//! use magpie::actor::{Actor, Config, Context, Executor, Receive};
//! use magpie::testing::{Options, run};
//!
//! struct Counter(u64);
//! impl Actor for Counter {}
//! impl Receive<u64> for Counter {
//!     type Reply = u64;
//!
//!     fn receive(&mut self, number: u64, _: &mut Context<Self>) -> u64 {
//!         self.0 += number;
//!         self.0
//!     }
//! }
//!
//! // In a test's module: #[test]
//! fn it_adds_up() {
//!     run(&Options::default(), || async {
//!         let executor = Executor::start(&Config::default()).expect("there is memory");
//!         let counter = executor.handle().spawn(Counter(40)).expect("there is memory");
//!         assert_eq!(counter.ask(2).await, Ok(42));
//!         executor.stop().await;
//!     });
//! }
//! ```
//!
//! **Each run has a process of the host's own.** The kernel's state (cores, executors, names, timers) is the program's, as
//! on the machine; and what panics on a thread leaves that in the middle of anything, because a thread's stack cannot be abandoned
//! as one of the kernel's can. To begin anew in the same program would need every static to be set back, and every thread of
//! the failed test to be stopped, which no host offers. So [`run`] starts the test's program once more, for this test alone
//! (`--exact NAME`), and what is to run runs there. Any number of tests may do so side by side or one after another,
//! whatever becomes of them. A start takes some milliseconds.
//!
//! What follows from that:
//! - what is to run is a function without captured variables, and returns nothing but its verdict. Shared state
//!   begins and ends with the run;
//! - what the test does before [`run`] is done in both processes, what it does after it in the first only;
//! - a panic anywhere, in an actor, in a process, in what is run itself, ends the run. The test fails with that very message,
//!   so `#[should_panic(expected = "...")]` works. That others go on after a crash can be tested in the booted kernel alone;
//! - what is printed comes with the test's own output.
//!
//! **Time** may be [virtual](Options::virtual_time). **A behaviour can be called directly**, as the method that it is, with a
//! [`context`] made for that.

mod child;
mod context;
mod options;
mod parent;
mod protocol;
mod run;
mod verdict;

pub use context::{Said, TestContext, context};
pub use options::Options;
pub use run::run;
pub use verdict::Verdict;
