//! The actor system on std threads: the same code as on the machine, without preemption.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use magpie::actor::{Actor, Addr, Config, Context, Executor, Outcome, Receive, SendError, VictimRule};
use magpie::machine::{self, Machine, Place};
use magpie::{arch::MAX_CORES, sched};

const CORES: usize = 4;

struct Counter {
    next: [u64; SENDERS],
    wrong: Arc<AtomicU64>,
    handled: Arc<AtomicU64>,
    inside: bool,
}
const SENDERS: usize = 8;
struct Numbered {
    sender: usize,
    number: u64,
}

impl Actor for Counter {}
impl Receive<Numbered> for Counter {
    fn receive(&mut self, message: Numbered, _: &mut Context<Self>) -> Outcome {
        if self.inside || self.next[message.sender] != message.number {
            self.wrong.fetch_add(1, Ordering::Relaxed);
        }
        self.inside = true;
        self.next[message.sender] = message.number + 1;
        std::hint::black_box(&mut *self);
        self.inside = false;
        self.handled.fetch_add(1, Ordering::Relaxed);
        Outcome::Continue
    }
}

struct Once(Arc<AtomicU64>);
impl Drop for Once {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}
impl Actor for Once {}
impl Receive<()> for Once {
    fn receive(&mut self, (): (), _: &mut Context<Self>) -> Outcome {
        Outcome::Delete
    }
}
impl Receive<[u64; 100]> for Once {
    fn receive(&mut self, message: [u64; 100], _: &mut Context<Self>) -> Outcome {
        assert_eq!(message[99], 99);
        Outcome::Continue
    }
}

struct Sender {
    to: Vec<Addr<Counter>>,
    id: usize,
    left: u64,
    number: u64,
}
impl Actor for Sender {}
impl Receive<()> for Sender {
    fn receive(&mut self, (): (), context: &mut Context<Self>) -> Outcome {
        for addr in &self.to {
            addr.send(Numbered { sender: self.id, number: self.number }).expect("alive");
        }
        self.number += 1;
        self.left -= 1;
        if self.left == 0 {
            return Outcome::Delete;
        }
        context.address().send(()).expect("alive");
        Outcome::Continue
    }
}

#[test]
fn the_actor_system_keeps_its_promises_on_threads() {
    machine::describe(Machine {
        board: "host",
        application: "test",
        cores: CORES,
        places: [Place::default(); MAX_CORES],
        arguments: "",
        input: None,
    });
    for rule in VictimRule::ALL {
        eprintln!("{rule:?}");
        sched::run_on_threads(CORES, 1, async move { order_and_exactly_once(rule).await }).expect("ends");
    }
    sched::run_on_threads(CORES, 1, async { ends_once().await }).expect("ends");
}

async fn order_and_exactly_once(rule: VictimRule) {
    let executor = Executor::start(&Config { victim: rule, ..Config::default() }).expect("starts");
    let handle = executor.handle();
    let (wrong, handled) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let counters: Vec<_> = (0..50)
        .map(|_| {
            handle
                .spawn_on(
                    0,
                    Counter {
                        next: [0; SENDERS],
                        wrong: wrong.clone(),
                        handled: handled.clone(),
                        inside: false,
                    },
                )
                .expect("memory")
        })
        .collect();
    for id in 0..SENDERS {
        let sender =
            handle.spawn_on(0, Sender { to: counters.clone(), id, left: 500, number: 0 }).expect("memory");
        sender.send(()).expect("alive");
    }
    sched::out_of_work().await;
    assert_eq!(handled.load(Ordering::Relaxed), 50 * 500 * SENDERS as u64);
    assert_eq!(wrong.load(Ordering::Relaxed), 0);
    assert!(handle.table_is_whole());
    assert_eq!(executor.stop().await, 0);
}

async fn ends_once() {
    let drops = Arc::new(AtomicU64::new(0));
    for round in 0..100 {
        let executor = Executor::start(&Config::default()).expect("starts");
        let ended = executor.handle().spawn(Once(drops.clone())).expect("memory");
        let left = executor.handle().spawn(Once(drops.clone())).expect("memory");
        left.send([99u64; 100]).expect("alive");
        ended.send(()).expect("alive");
        sched::out_of_work().await;
        assert!(matches!(ended.send(()), Err(SendError::Ended(()))));
        executor.stop().await;
        assert!(left.send(()).is_err());
        assert_eq!(drops.load(Ordering::Relaxed), 2 * (round + 1));
    }
}
