//! How long an actor waits for one in its mailbox that spins.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use core::time::Duration;

use magpie::actor::{Actor, Addr, Config, Context, Executor, Receive};
use magpie::arch::CoreId;
use magpie::sched::{self, Spawn};
use magpie::time::{self, Instant};
use magpie::{machine, stats};
use magpie_tests::{ensure, ensure_eq, kernel_test};

use crate::{SLACK, needs_counted_time, slice, within};

struct Hog(Arc<AtomicBool>);

impl Actor for Hog {}

struct Spin;

impl Receive<Spin> for Hog {
    type Reply = ();

    fn receive(&mut self, _: Spin, _: &mut Context<Self>) {
        while !self.0.load(Ordering::Relaxed) {
            core::hint::spin_loop();
        }
    }
}

#[derive(Default)]
struct Waited {
    longest_nanoseconds: AtomicU64,
    messages: AtomicU64,
}

struct Neighbour(Arc<Waited>);

impl Actor for Neighbour {}

impl Receive<Instant> for Neighbour {
    type Reply = ();

    fn receive(&mut self, sent: Instant, _: &mut Context<Self>) {
        self.0.longest_nanoseconds.fetch_max(sent.elapsed().as_nanos() as u64, Ordering::Relaxed);
        self.0.messages.fetch_add(1, Ordering::Relaxed);
    }
}

kernel_test! {
    /// Two slices, while the hog holds the batch and ever after.
    async fn a_spinning_actor_delays_its_mailbox_by_two_slices() -> Outcome {
        const MESSAGES: u64 = 50;
        needs_counted_time()?;
        let executor = Executor::start(&Config::default().workers(1))?;
        let (stop, waited) = (Arc::new(AtomicBool::new(false)), Arc::new(Waited::default()));
        let hog = executor.handle().spawn(Hog(stop.clone()))?;
        let neighbour = executor.handle().spawn_beside(hog, Neighbour(waited.clone()))?;
        // More urgent than the worker, so that it always gets to send.
        let sender = Spawn::new().pinned(CoreId::BOOT).start(async move {
            // In one batch with the first.
            hog.send(Spin).map_err(|_| "the hog has ended")?;
            for round in 0..MESSAGES {
                neighbour.send(Instant::now()).map_err(|_| "the neighbour has ended")?;
                time::sleep(Duration::from_micros(3_000 + 130 * round)).await;
            }
            Ok::<(), &'static str>(())
        })?;
        let sent = sender.await;
        stop.store(true, Ordering::Relaxed);
        ensure!(sent == Ok(Ok(())), "the sender ended with {sent:?}");
        executor.stop().await;
        ensure_eq!(waited.messages.load(Ordering::Relaxed), MESSAGES, "messages handled");
        let longest = Duration::from_nanos(waited.longest_nanoseconds.load(Ordering::Relaxed));
        magpie::log::text!("beside a spinning actor a message waits {} us", longest.as_micros());
        within(longest, 2 * slice() + SLACK, "a message beside a spinning actor")
    }
}

kernel_test! {
    /// No mailbox waits behind a busy worker while another is idle: mail for it is handled within two slices.
    #[cores(2)]
    async fn an_idle_worker_fetches_a_waiting_mailbox_within_two_slices() -> Outcome {
        const ROUNDS: u64 = 20;
        needs_counted_time()?;
        let Some(far) = CoreId::new(machine::cores() - 1) else { return Err("no such core".into()) };
        let waited = Arc::new(Waited::default());
        let before = stats::worker_total(|worker| worker.mailboxes_stolen.get());
        for _ in 0..ROUNDS {
            let executor = Executor::start(&Config::default())?;
            let stop = Arc::new(AtomicBool::new(false));
            let hog = executor.handle().spawn_on(CoreId::BOOT, Hog(stop.clone()))?;
            // In another mailbox of the first worker.
            let neighbour = executor.handle().spawn_on(CoreId::BOOT, Neighbour(waited.clone()))?;
            hog.send(Spin)?;
            let sender = Spawn::new().pinned(far).start(async move {
                time::sleep(4 * slice()).await;
                neighbour.send(Instant::now()).is_ok()
            })?;
            ensure_eq!(sender.await, Ok(true), "whether the message was sent");
            time::sleep(4 * slice()).await;
            stop.store(true, Ordering::Relaxed);
            executor.stop().await;
        }
        ensure_eq!(waited.messages.load(Ordering::Relaxed), ROUNDS, "messages handled");
        let stolen = stats::worker_total(|worker| worker.mailboxes_stolen.get()) - before;
        let longest = Duration::from_nanos(waited.longest_nanoseconds.load(Ordering::Relaxed));
        magpie::log::text!("behind a busy worker mail waits {} us, {stolen} stolen", longest.as_micros());
        within(longest, 2 * slice() + SLACK, "mail behind a busy worker")
    }
}

/// Sends one message after the other in one behaviour, which is suspended before it begins, and waits for each.
struct Sender {
    neighbour: Addr<Neighbour>,
    waited: Arc<Waited>,
}

impl Actor for Sender {}

/// So many messages.
struct SendEach(u64);

impl Receive<SendEach> for Sender {
    type Reply = ();

    fn receive(&mut self, SendEach(messages): SendEach, _: &mut Context<Self>) {
        let began = Instant::now();
        while began.elapsed() < 3 * slice() {
            core::hint::spin_loop();
        }
        for sent in 1..=messages {
            let began = Instant::now();
            // Without memory it is not handled, and the test says so.
            let _ = self.neighbour.send(began);
            while self.waited.messages.load(Ordering::Relaxed) < sent && began.elapsed() < 100 * slice() {
                core::hint::spin_loop();
            }
        }
    }
}

kernel_test! {
    /// Two slices, though nothing else is to be done, and the message is in the hand of a worker that was idle when it was sent.
    async fn what_a_suspended_behaviour_sends_waits_for_two_slices() -> Outcome {
        const MESSAGES: u64 = 20;
        needs_counted_time()?;
        let executor = Executor::start(&Config::default().workers(1))?;
        let waited = Arc::new(Waited::default());
        // Round robin, so in another mailbox than the sender.
        let neighbour = executor.handle().spawn(Neighbour(waited.clone()))?;
        let sender = executor.handle().spawn(Sender { neighbour, waited: waited.clone() })?;
        sender.send(SendEach(MESSAGES))?;
        sched::out_of_work().await;
        executor.stop().await;
        ensure_eq!(waited.messages.load(Ordering::Relaxed), MESSAGES, "messages handled");
        let longest = Duration::from_nanos(waited.longest_nanoseconds.load(Ordering::Relaxed));
        magpie::log::text!("behind a suspended behaviour a message waits {} us", longest.as_micros());
        within(longest, 2 * slice() + SLACK, "a message behind a suspended behaviour")
    }
}
