//! Lone messages, which go from mailbox to mailbox through a worker's lane, and what interrupts them there.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use core::time::Duration;

use magpie::actor::{Actor, Addr, Bound, Config, Context, Executor, Receive, WhenFull};
use magpie::arch::CoreId;
use magpie::sched::{self, Priority, Setting};
use magpie::stats;
use magpie::time::Instant;
use magpie_tests::{Failure, HANGS_AFTER, HeapExhauster, ensure, ensure_eq, kernel_test};

pub(super) const LINKS: usize = 12;

/// Who sends notes and is no link.
pub(super) const OUTSIDERS: usize = 2;

/// What the links have seen.
#[derive(Default)]
pub(super) struct Seen {
    pub hops: AtomicU64,
    pub notes: AtomicU64,
    pub wrong: AtomicU64,
    refused: AtomicU64,
    /// Counted by victims.
    counted: AtomicU64,
    ticks: AtomicU64,
}

/// What is done at every hundredth hop.
#[derive(Clone, Copy)]
pub(super) struct Rules {
    /// So many notes to each of the others.
    pub notes: u64,
    /// So many slices in the behaviour, after them.
    pub slices: u32,
    /// One victim is told to crash, another to end, and a third is killed.
    pub victims: bool,
}

/// Nothing but the token.
pub(super) const PLAIN: Rules = Rules { notes: 0, slices: 0, victims: false };

pub(super) struct Link {
    seen: Arc<Seen>,
    index: usize,
    rules: Rules,
    others: Arc<Vec<Addr<Link>>>,
    victims: Vec<Addr<Victim>>,
    sent: u64,
    /// Its behaviour runs for long: meanwhile no other may.
    is_busy: AtomicBool,
    /// The next note from each of the others, and from each outsider.
    expected: [u64; LINKS + OUTSIDERS],
}

impl Actor for Link {}

struct Others(Arc<Vec<Addr<Link>>>);

impl Receive<Others> for Link {
    type Reply = ();

    fn receive(&mut self, Others(others): Others, _: &mut Context<Self>) {
        self.others = others;
    }
}

pub(super) struct Token(pub u64);

impl Receive<Token> for Link {
    type Reply = ();

    fn receive(&mut self, Token(hops): Token, _: &mut Context<Self>) {
        self.seen.hops.fetch_add(1, Ordering::Relaxed);
        if hops.is_multiple_of(100) {
            self.interrupt();
        }
        if hops > 0 {
            let next = (self.index + 5) % LINKS;
            let refused = self.others[next].send(Token(hops - 1)).is_err();
            self.seen.refused.fetch_add(u64::from(refused), Ordering::Relaxed);
        }
    }
}

impl Link {
    fn interrupt(&mut self) {
        for _ in 0..self.rules.notes {
            for other in self.others.iter() {
                let note = Note { from: self.index, number: self.sent };
                // Some are too long for the lane, and come between others.
                let _ = if self.sent % 3 == 2 {
                    other.send(Long(note, [self.sent as u8; 1500])).is_ok()
                } else {
                    other.send(note).is_ok()
                };
            }
            self.sent += 1;
        }
        if self.rules.victims
            && let (Some(crashes), Some(ends), Some(dies)) =
                (self.victims.pop(), self.victims.pop(), self.victims.pop())
        {
            let _ = dies.send(Nothing);
            let _ = dies.kill();
            let _ = dies.send(Nothing);
            for victim in [crashes, ends] {
                let _ = victim.send(Count);
            }
            let _ = crashes.send(Crash);
            let _ = ends.send(End);
            for victim in [crashes, ends] {
                let _ = victim.send(Count);
            }
        }
        let until = Duration::from_micros(sched::setting(Setting::SliceMicroseconds)) * self.rules.slices;
        self.is_busy.store(true, Ordering::Relaxed);
        let began = Instant::now();
        while began.elapsed() < until {
            core::hint::spin_loop();
        }
        self.is_busy.store(false, Ordering::Relaxed);
    }
}

#[derive(Clone, Copy)]
pub(super) struct Note {
    pub from: usize,
    pub number: u64,
}

impl Receive<Note> for Link {
    type Reply = ();

    fn receive(&mut self, Note { from, number }: Note, _: &mut Context<Self>) {
        if self.expected[from] != number || self.is_busy.load(Ordering::Relaxed) {
            self.seen.wrong.fetch_add(1, Ordering::Relaxed);
        }
        self.expected[from] = number + 1;
        self.seen.notes.fetch_add(1, Ordering::Relaxed);
    }
}

struct Long(Note, [u8; 1500]);

impl Receive<Long> for Link {
    type Reply = ();

    fn receive(&mut self, Long(note, filling): Long, context: &mut Context<Self>) {
        let is_whole = filling.iter().all(|&byte| byte == note.number as u8);
        self.seen.wrong.fetch_add(u64::from(!is_whole), Ordering::Relaxed);
        self.receive(note, context);
    }
}

/// From a timer.
#[derive(Clone, Copy)]
struct Tick;

impl Receive<Tick> for Link {
    type Reply = ();

    fn receive(&mut self, _: Tick, _: &mut Context<Self>) {
        self.seen.ticks.fetch_add(1, Ordering::Relaxed);
    }
}

/// Counts what it handles before it ends.
pub(super) struct Victim(Arc<Seen>);

impl Actor for Victim {}

struct Count;
struct Nothing;
struct Crash;
struct End;

impl Receive<Count> for Victim {
    type Reply = ();

    fn receive(&mut self, _: Count, _: &mut Context<Self>) {
        self.0.counted.fetch_add(1, Ordering::Relaxed);
    }
}

impl Receive<Nothing> for Victim {
    type Reply = ();

    fn receive(&mut self, _: Nothing, _: &mut Context<Self>) {}
}

impl Receive<Crash> for Victim {
    type Reply = ();

    fn receive(&mut self, _: Crash, _: &mut Context<Self>) {
        panic!("a victim in the lane");
    }
}

impl Receive<End> for Victim {
    type Reply = ();

    fn receive(&mut self, _: End, context: &mut Context<Self>) {
        context.end();
    }
}

/// Links, and what they see.
pub(super) type Started = (Arc<Seen>, Arc<Vec<Addr<Link>>>);

/// Starts links on the first worker, or wherever they are put. With `victims` for each.
pub(super) fn start(
    executor: &Executor,
    rules: Rules,
    victims: usize,
    pinned: bool,
) -> Result<Started, Failure> {
    let handle = executor.handle();
    let seen = Arc::new(Seen::default());
    let mut links = Vec::new();
    for index in 0..LINKS {
        let mut doomed = Vec::new();
        for _ in 0..victims {
            doomed.push(handle.spawn_on(CoreId::BOOT, Victim(seen.clone()))?);
        }
        let link = Link {
            seen: seen.clone(),
            index,
            rules,
            others: Arc::default(),
            victims: doomed,
            sent: 0,
            is_busy: AtomicBool::new(false),
            expected: [0; LINKS + OUTSIDERS],
        };
        links.push(if pinned { handle.spawn_on(CoreId::BOOT, link)? } else { handle.spawn(link)? });
    }
    let links = Arc::new(links);
    for link in links.iter() {
        link.send(Others(links.clone()))?;
    }
    Ok((seen, links))
}

/// Sends tokens through all links. Returns what they have seen.
pub(super) async fn chain(
    config: &Config,
    rules: Rules,
    hops: u64,
    victims: usize,
) -> Result<Arc<Seen>, Failure> {
    chains(config, rules, hops, victims, 1, true).await
}

pub(super) async fn chains(
    config: &Config,
    rules: Rules,
    hops: u64,
    victims: usize,
    tokens: u64,
    pinned: bool,
) -> Result<Arc<Seen>, Failure> {
    let executor = Executor::start(config)?;
    let (seen, links) = start(&executor, rules, victims, pinned)?;
    sched::out_of_work().await;
    for token in 0..tokens as usize {
        links[token % LINKS].send(Token(hops))?;
    }
    sched::out_of_work().await;
    ensure_eq!(seen.hops.load(Ordering::Relaxed), (hops + 1) * tokens, "hops");
    ensure_eq!(seen.wrong.load(Ordering::Relaxed), 0, "notes that came out of order");
    let interrupted = (hops / 100 + 1) * tokens;
    ensure_eq!(seen.notes.load(Ordering::Relaxed), interrupted * rules.notes * LINKS as u64, "notes");
    if rules.victims {
        let live = LINKS as u64 * (victims as u64 + 1) - 3 * interrupted;
        ensure_eq!(executor.handle().live_actors(), live, "actors that are left");
        // Of two of three one message is handled; what comes behind their end is not.
        ensure_eq!(seen.counted.load(Ordering::Relaxed), 2 * interrupted, "messages to victims");
    }
    executor.stop().await;
    Ok(seen)
}

/// One worker, as many mailboxes as there are links.
pub(super) fn alone() -> Config {
    Config::default().workers(1).mailboxes(LINKS)
}

/// With memory used up, so many tokens hop so often, before there is a lane and when there has been one.
pub(super) async fn without_memory(tokens: u64, hops: u64) -> Result<(), Failure> {
    for is_warm in [false, true] {
        let executor = Executor::start(&alone())?;
        let (seen, links) = start(&executor, PLAIN, 0, true)?;
        sched::out_of_work().await;
        let send =
            || (0..tokens).filter(|&token| links[token as usize % LINKS].send(Token(hops - 1)).is_ok());
        if is_warm {
            ensure_eq!(send().count() as u64, tokens, "tokens sent");
            sched::out_of_work().await;
        }
        let before = seen.hops.load(Ordering::Relaxed);
        let exhauster = HeapExhauster::everything(16);
        let sent = send().count() as u64;
        let began = Instant::now();
        let hopped = || seen.hops.load(Ordering::Relaxed) - before;
        let refused = || seen.refused.load(Ordering::Relaxed);
        while hopped() < sent * hops && refused() == 0 && began.elapsed() < HANGS_AFTER {
            sched::yield_now().await;
        }
        let (hopped, refused) = (hopped(), refused());
        drop(exhauster);
        ensure!(sent > 0, "nothing was sent");
        ensure_eq!(refused, 0, "tokens that were refused");
        ensure_eq!(hopped, sent * hops, "hops without memory");
        executor.stop().await;
    }
    Ok(())
}

kernel_test! {
    /// Lone messages from mailbox to mailbox are not batches of their own.
    async fn lone_messages_follow_one_another_without_a_batch_for_each() -> Outcome {
        const HOPS: u64 = 20_000;
        let counts = || {
            (
                stats::worker_total(|worker| worker.messages_handled.get()),
                stats::worker_total(|worker| worker.gulps.get()),
            )
        };
        let before = counts();
        chain(&alone(), PLAIN, HOPS, 0).await?;
        let after = counts();
        let (messages, batches) = (after.0 - before.0, after.1 - before.1);
        ensure!(messages > HOPS, "only {messages} messages were counted");
        ensure!(batches * 10 < messages, "{batches} batches for {messages} messages");
        Ok(())
    }
}

kernel_test! {
    /// What is sent to many at once, some of it too long for the lane, keeps its order, and none of it is lost, when the lane is full.
    async fn a_full_lane_loses_nothing() -> Outcome {
        for notes in [1, 2, 3, 7, 50] {
            chain(&alone(), Rules { notes, ..PLAIN }, 5_000, 0).await?;
        }
        Ok(())
    }
}

kernel_test! {
    /// A behaviour that runs for long, while mail of others waits behind it in the lane, is suspended, or its mail leaves; none is lost,
    /// and all keeps its order.
    #[machine("preemption")]
    async fn mail_behind_a_long_behaviour_in_the_lane_keeps_its_order() -> Outcome {
        for config in [alone(), Config::default()] {
            for (notes, slices) in [(0, 3), (1, 1), (1, 3), (2, 5), (5, 2)] {
                chain(&config, Rules { notes, slices, ..PLAIN }, 2_000, 0).await?;
            }
        }
        Ok(())
    }
}

kernel_test! {
    /// While an actor is suspended lone messages go through its mailbox, and to itself: these are put aside, in order.
    #[machine("preemption")]
    async fn mail_for_a_suspended_actor_is_put_aside_from_the_lane() -> Outcome {
        let few = Config::default().workers(1).mailboxes(3);
        for (notes, slices) in [(0, 3), (1, 3), (3, 4)] {
            chains(&few, Rules { notes, slices, ..PLAIN }, 2_000, 0, 2, true).await?;
        }
        Ok(())
    }
}

kernel_test! {
    /// Links that may be anywhere, of workers that steal, behind others that run for long: mailboxes leave with what they had in the
    /// lane.
    #[machine("preemption")]
    async fn mailboxes_are_stolen_with_what_they_had_in_the_lane() -> Outcome {
        for tokens in [1, 3] {
            for (notes, slices) in [(1, 0), (3, 3)] {
                chains(&Config::default(), Rules { notes, slices, ..PLAIN }, 2_000, 0, tokens, false).await?;
            }
        }
        Ok(())
    }
}

kernel_test! {
    /// Workers that preempt others, and lanes of one batch's growth in turns of few messages.
    #[machine("preemption")]
    async fn urgent_workers_have_lanes_too() -> Outcome {
        let rules = Rules { notes: 1, slices: 3, ..PLAIN };
        for priority in [Priority::Max, Priority::High, Priority::Low] {
            chain(&alone().priority(priority), rules, 2_000, 0).await?;
            chain(&alone().priority(priority).reductions(50), rules, 2_000, 0).await?;
        }
        Ok(())
    }
}

kernel_test! {
    /// An actor that crashes, ends or is killed in the lane takes nothing of the others' along, and gets nothing that comes behind its
    /// end.
    #[machine("isolation")]
    async fn who_crashes_or_ends_in_the_lane_does_so_alone() -> Outcome {
        const VICTIMS: usize = 24;
        for slices in [0, 3] {
            chain(&alone(), Rules { notes: 1, slices, victims: true }, 2_000, VICTIMS).await?;
        }
        Ok(())
    }
}

kernel_test! {
    /// With memory used up, lone messages go round whether there is a lane yet or not.
    #[machine("the kernel's heap")]
    async fn lone_messages_need_no_memory() -> Outcome {
        without_memory(1, 5_000).await?;
        Ok(())
    }
}

kernel_test! {
    /// A chain of lone messages that never ends keeps neither timers nor processes of its core from their turns, nor mail from them, and
    /// its executor can be stopped.
    #[machine("preemption")]
    async fn an_endless_lane_keeps_nobody_waiting() -> Outcome {
        let executor = Executor::start(&alone())?;
        let (seen, links) = start(&executor, PLAIN, 0, true)?;
        sched::out_of_work().await;
        links[0].send(Token(u64::MAX))?;
        let ticks = links[1].send_interval(Duration::from_millis(1), Tick)?;
        let began = Instant::now();
        while (seen.ticks.load(Ordering::Relaxed) < 10 || seen.hops.load(Ordering::Relaxed) < 50_000)
            && began.elapsed() < HANGS_AFTER
        {
            // From outside, and so through the queue of a mailbox that rests.
            links[2].send(Tick)?;
            sched::yield_now().await;
        }
        ensure!(seen.ticks.load(Ordering::Relaxed) >= 10, "only {} ticks", seen.ticks.load(Ordering::Relaxed));
        drop(ticks);
        executor.stop().await;
        Ok(())
    }
}

kernel_test! {
    /// A chain that goes through mailboxes with a bound, and others with none.
    async fn lone_messages_go_through_bounded_mailboxes() -> Outcome {
        const HOPS: u64 = 5_000;
        let free = Executor::start(&alone())?;
        let bounded = Executor::start(&alone().bound(Bound::new(100, WhenFull::Refuse)))?;
        let seen = Arc::new(Seen::default());
        let mut links = Vec::new();
        for index in 0..LINKS {
            let handle = if index % 3 == 0 { bounded.handle() } else { free.handle() };
            let link = Link {
                seen: seen.clone(),
                index,
                rules: Rules { notes: 1, ..PLAIN },
                others: Arc::default(),
                victims: Vec::new(),
                sent: 0,
                is_busy: AtomicBool::new(false),
                expected: [0; LINKS + OUTSIDERS],
            };
            links.push(handle.spawn_on(CoreId::BOOT, link)?);
        }
        let links = Arc::new(links);
        for link in links.iter() {
            link.send(Others(links.clone()))?;
        }
        sched::out_of_work().await;
        links[0].send(Token(HOPS))?;
        sched::out_of_work().await;
        ensure_eq!(seen.hops.load(Ordering::Relaxed), HOPS + 1, "hops");
        ensure_eq!(seen.wrong.load(Ordering::Relaxed), 0, "notes that came out of order");
        ensure_eq!(seen.notes.load(Ordering::Relaxed), (HOPS / 100 + 1) * LINKS as u64, "notes");
        free.stop().await;
        bounded.stop().await;
        Ok(())
    }
}
