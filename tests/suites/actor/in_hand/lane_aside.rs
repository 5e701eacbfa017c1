//! Lone messages that go round in a worker's lane, past an actor whose behaviour is suspended, and mail for that one from there.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use magpie::actor::{Actor, Addr, Config, Context, Executor, Receive};
use magpie::arch::CoreId;
use magpie::sched;
use magpie::time::Instant;
use magpie_tests::{HANGS_AFTER, ensure, ensure_eq, kernel_test};

#[derive(Default)]
struct Seen {
    hops: AtomicU64,
    notes: AtomicU64,
    wrong: AtomicU64,
    /// Hops while the hog was in the middle of a behaviour.
    meanwhile: AtomicU64,
    is_busy: AtomicBool,
}

/// Runs for long, and knows which note comes next.
struct Hog {
    seen: Arc<Seen>,
    next: u64,
}

impl Actor for Hog {}

/// Until there were so many hops.
struct Spin(u64);

impl Receive<Spin> for Hog {
    type Reply = ();

    fn receive(&mut self, Spin(hops): Spin, _: &mut Context<Self>) {
        self.seen.is_busy.store(true, Ordering::Relaxed);
        let began = Instant::now();
        while self.seen.hops.load(Ordering::Relaxed) < hops && began.elapsed() < HANGS_AFTER {
            core::hint::spin_loop();
        }
        self.seen.is_busy.store(false, Ordering::Relaxed);
    }
}

struct Note(u64);

impl Receive<Note> for Hog {
    type Reply = ();

    fn receive(&mut self, Note(number): Note, _: &mut Context<Self>) {
        let is_wrong = number != self.next || self.seen.is_busy.load(Ordering::Relaxed);
        self.seen.wrong.fetch_add(u64::from(is_wrong), Ordering::Relaxed);
        self.next = number + 1;
        self.seen.notes.fetch_add(1, Ordering::Relaxed);
    }
}

/// Passes a token on to the next, and every now and then a note to the hog.
struct Link {
    seen: Arc<Seen>,
    hog: Addr<Hog>,
    next: Option<Addr<Link>>,
}

impl Actor for Link {}

struct Next(Addr<Link>);

impl Receive<Next> for Link {
    type Reply = ();

    fn receive(&mut self, Next(next): Next, _: &mut Context<Self>) {
        self.next = Some(next);
    }
}

/// So many hops are left, and so many notes were sent.
struct Token(u64, u64);

impl Receive<Token> for Link {
    type Reply = ();

    fn receive(&mut self, Token(left, mut notes): Token, _: &mut Context<Self>) {
        self.seen.hops.fetch_add(1, Ordering::Relaxed);
        self.seen
            .meanwhile
            .fetch_add(u64::from(self.seen.is_busy.load(Ordering::Relaxed)), Ordering::Relaxed);
        if left.is_multiple_of(50) {
            let _ = self.hog.send(Note(notes));
            notes += 1;
        }
        if let Some(next) = self.next.filter(|_| left > 0) {
            let _ = next.send(Token(left - 1, notes));
        }
    }
}

kernel_test! {
    /// What goes through the lane to an actor that is suspended is put aside, and handled in order when its behaviour has ended.
    #[machine("preemption")]
    async fn mail_from_the_lane_for_a_suspended_actor_is_put_aside() -> Outcome {
        const HOPS: u64 = 100_000;
        const LINKS: usize = 4;
        let executor = Executor::start(&Config::default().workers(1).mailboxes(2))?;
        let seen = Arc::new(Seen::default());
        let hog = executor.handle().spawn_on(CoreId::BOOT, Hog { seen: seen.clone(), next: 0 })?;
        let mut links = alloc::vec::Vec::new();
        for _ in 0..LINKS {
            let link = Link { seen: seen.clone(), hog, next: None };
            links.push(executor.handle().spawn_on(CoreId::BOOT, link)?);
        }
        for (index, link) in links.iter().enumerate() {
            link.send(Next(links[(index + 1) % LINKS]))?;
        }
        sched::out_of_work().await;
        hog.send(Spin(HOPS))?;
        links[0].send(Token(HOPS, 0))?;
        sched::out_of_work().await;
        ensure_eq!(seen.hops.load(Ordering::Relaxed), HOPS + 1, "hops");
        ensure_eq!(seen.notes.load(Ordering::Relaxed), HOPS / 50 + 1, "notes");
        ensure_eq!(seen.wrong.load(Ordering::Relaxed), 0, "notes out of order, or in the middle of another behaviour");
        let meanwhile = seen.meanwhile.load(Ordering::Relaxed);
        ensure!(meanwhile >= HOPS, "only {meanwhile} hops while the hog was suspended");
        executor.stop().await;
        Ok(())
    }
}
