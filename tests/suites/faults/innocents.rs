//! Those who do nothing wrong: actors and processes on all cores that are sent numbered messages, by processes and by each other; and
//! those who wait for timers. Each message is to arrive once, in the order of its sender.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use core::time::Duration;

use magpie::actor::{Actor, Addr, Context, ExecutorHandle, Receive};
use magpie::channel::{ProcessAddr, ProcessMailbox};
use magpie::message::SendError;
use magpie::sched::{self, JoinHandle, Spawn};
use magpie::time;
use magpie_tests::{Failure, Outcome, ensure, ensure_eq};

const ACTORS: usize = 12;
const PROCESSES: usize = 4;
const SENDERS: usize = 3;
/// Processes that send, and actors that pass on.
const SOURCES: usize = SENDERS + ACTORS;
/// Messages that may be under way from one sender.
const UNDER_WAY: u64 = 200;
const TICK: Duration = Duration::from_micros(500);

/// What became of the messages, of all together. Relaxed: compared when all is over.
#[derive(Default)]
pub struct Tally {
    sent: AtomicU64,
    handled: AtomicU64,
    out_of_order: AtomicU64,
    timers_set: AtomicU64,
    timers_fired: AtomicU64,
    /// Those that have fired, and those that found no memory for it: dead letters.
    timers_over: AtomicU64,
    pub refused: AtomicU64,
}

fn add(count: &AtomicU64, more: u64) {
    count.fetch_add(more, Ordering::Relaxed);
}

fn read(count: &AtomicU64) -> u64 {
    count.load(Ordering::Relaxed)
}

/// A message with its number among those of its source to its receiver.
#[derive(Clone, Copy)]
struct Numbered {
    source: usize,
    number: u64,
}

/// Which message of each source comes next.
struct Order {
    next: [u64; SOURCES],
    tally: Arc<Tally>,
}

impl Order {
    const fn new(tally: Arc<Tally>) -> Self {
        Self { next: [0; SOURCES], tally }
    }

    fn note(&mut self, Numbered { source, number }: Numbered) {
        if self.next[source] != number {
            add(&self.tally.out_of_order, 1);
        }
        self.next[source] = number + 1;
        add(&self.tally.handled, 1);
    }
}

struct Innocent {
    order: Order,
    index: usize,
    /// Whom it passes something on to, and how often it has.
    next: Option<Addr<Innocent>>,
    passed: u64,
}

impl Actor for Innocent {}

impl Receive<Addr<Innocent>> for Innocent {
    type Reply = ();

    fn receive(&mut self, next: Addr<Innocent>, _: &mut Context<Self>) {
        self.next = Some(next);
    }
}

impl Receive<Numbered> for Innocent {
    type Reply = ();

    fn receive(&mut self, message: Numbered, _: &mut Context<Self>) {
        self.order.note(message);
        if let Some(next) = self.next
            && message.source < SENDERS
        {
            let message = Numbered { source: SENDERS + self.index, number: self.passed };
            // Without memory for it, it was not sent: the number is that of the next.
            match next.send(message) {
                Ok(_) => {
                    self.passed += 1;
                    add(&self.order.tally.sent, 1);
                }
                Err(_) => add(&self.order.tally.refused, 1),
            }
        }
    }
}

/// What comes due.
struct Due(Arc<Tally>);

impl Drop for Due {
    fn drop(&mut self) {
        add(&self.0.timers_over, 1);
    }
}

impl Receive<Due> for Innocent {
    type Reply = ();

    fn receive(&mut self, _: Due, _: &mut Context<Self>) {
        add(&self.order.tally.timers_fired, 1);
    }
}

/// All of them at work.
pub struct Innocents {
    pub tally: Arc<Tally>,
    over: Arc<AtomicBool>,
    actors: Arc<Vec<Addr<Innocent>>>,
    senders: Vec<JoinHandle<Outcome>>,
    receivers: Vec<JoinHandle<()>>,
    keepers: Vec<JoinHandle<u64>>,
}

impl Innocents {
    pub fn start(handle: &ExecutorHandle) -> Result<Self, Failure> {
        let (tally, over) = (Arc::new(Tally::default()), Arc::new(AtomicBool::new(false)));
        let mut actors = Vec::new();
        for index in 0..ACTORS {
            let order = Order::new(tally.clone());
            actors.push(handle.spawn(Innocent { order, index, next: None, passed: 0 })?);
        }
        for (index, actor) in actors.iter().enumerate() {
            actor.send(actors[(index + 5) % ACTORS])?;
        }
        let actors = Arc::new(actors);
        let (mut processes, mut receivers, mut keepers) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..PROCESSES {
            let mut mailbox = ProcessMailbox::<Numbered>::new(100_000)?;
            processes.push(mailbox.address());
            let mut order = Order::new(tally.clone());
            receivers.push(sched::spawn(async move {
                while let Some(message) = mailbox.receive().await {
                    order.note(message);
                }
            })?);
        }
        for core in handle.cores().iter() {
            keepers.push(Spawn::new().pinned(core).start(keep_time(over.clone()))?);
        }
        // Two that may be anywhere.
        for _ in 0..2 {
            keepers.push(sched::spawn(keep_time(over.clone()))?);
        }
        let mut senders = Vec::new();
        for source in 0..SENDERS {
            let load = load(source, actors.clone(), processes.clone(), tally.clone(), over.clone());
            senders.push(sched::spawn(load)?);
        }
        Ok(Self { tally, over, actors, senders, receivers, keepers })
    }

    /// Stops the load, and looks at what has become of it.
    pub async fn end(self) -> Result<u64, Failure> {
        self.over.store(true, Ordering::Relaxed);
        for sender in self.senders {
            sender.await??;
        }
        for receiver in self.receivers {
            receiver.await?;
        }
        let mut ticks = 0;
        for keeper in self.keepers {
            ticks += keeper.await?;
        }
        let tally = &*self.tally;
        let is_over = || {
            read(&tally.handled) == read(&tally.sent) && read(&tally.timers_over) == read(&tally.timers_set)
        };
        // What is too much comes after, if at all: it is looked at again.
        let over = crate::until("all messages to innocents have come", is_over).await;
        sched::out_of_work().await;
        ensure_eq!(read(&tally.handled), read(&tally.sent), "messages to innocents that were handled");
        ensure_eq!(read(&tally.out_of_order), 0, "messages to innocents out of order");
        ensure_eq!(read(&tally.timers_over), read(&tally.timers_set), "timers of innocents that are over");
        // One that fires while memory is refused may be a dead letter.
        if read(&tally.refused) == 0 {
            ensure_eq!(
                read(&tally.timers_fired),
                read(&tally.timers_set),
                "timers of innocents that have fired"
            );
        }
        over?;
        ensure!(ticks > 0, "no innocent has slept");
        ensure!(self.actors.iter().all(Addr::is_alive), "an innocent has ended");
        Ok(read(&tally.sent))
    }
}

/// Whether it was sent. Fails if that is not for want of memory.
fn was_sent<T, M>(result: Result<T, SendError<M>>, tally: &Tally) -> Result<bool, Failure> {
    match result {
        Ok(_) => Ok(true),
        Err(SendError::OutOfMemory(_)) => {
            add(&tally.refused, 1);
            Ok(false)
        }
        Err(error) => Err(error.without_message().into()),
    }
}

/// Sends to all of them until it is over. What is refused for want of memory is sent again.
async fn load(
    source: usize,
    actors: Arc<Vec<Addr<Innocent>>>,
    processes: Vec<ProcessAddr<Numbered>>,
    tally: Arc<Tally>,
    over: Arc<AtomicBool>,
) -> Outcome {
    let mut number = 0;
    while !over.load(Ordering::Relaxed) {
        // Cores run out of work now and then, and steal.
        if read(&tally.sent).saturating_sub(read(&tally.handled)) > UNDER_WAY * SENDERS as u64 {
            time::sleep(Duration::from_micros(200)).await;
            continue;
        }
        let message = Numbered { source, number };
        for actor in actors.iter() {
            while !was_sent(actor.send(message), &tally)? {
                sched::yield_now().await;
            }
            add(&tally.sent, 1);
        }
        for process in &processes {
            while !was_sent(process.send(message), &tally)? {
                sched::yield_now().await;
            }
            add(&tally.sent, 1);
        }
        number += 1;
        let late = actors[number as usize % ACTORS].send_after(TICK, Due(tally.clone()));
        // One that is refused is over, too.
        add(&tally.timers_set, 1);
        match late {
            Ok(_) => {}
            Err(SendError::OutOfMemory(_)) => add(&tally.refused, 1),
            Err(error) => return Err(error.without_message().into()),
        }
        sched::yield_now().await;
    }
    Ok(())
}

/// Sleeps again and again. Returns how often.
async fn keep_time(over: Arc<AtomicBool>) -> u64 {
    let mut slept = 0;
    // Once at least: its core may come to it late.
    while slept == 0 || !over.load(Ordering::Relaxed) {
        time::sleep(TICK).await;
        slept += 1;
    }
    slept
}
