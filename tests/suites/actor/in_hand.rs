//! Mail that a worker has in hand: its order, and that each message arrives once, whatever ends the turn that it was sent in.

use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;

use magpie::actor::{Actor, Addr, Bound, Config, Context, Executor, Receive, WhenFull};
use magpie::arch::CoreId;
use magpie::sched::{self, Setting, Spawn};
use magpie::stats;
use magpie::time::Instant;
use magpie_tests::{Changed, Failure, HANGS_AFTER, HeapExhauster, amount, ensure, ensure_eq, kernel_test};

/// What the actors of a test share.
#[derive(Default)]
struct Seen {
    handled: AtomicU64,
    out_of_order: AtomicU64,
    refused: AtomicU64,
    made: AtomicU64,
    dropped: AtomicU64,
    /// How often somebody has begun to spin, and how often it gave up.
    spinning: AtomicU64,
    gave_up: AtomicU64,
    /// In how many rounds a second mail was sent.
    second_mail: AtomicU64,
}

impl Seen {
    fn handled(&self) -> u64 {
        self.handled.load(Ordering::Relaxed)
    }

    fn out_of_order(&self) -> u64 {
        self.out_of_order.load(Ordering::Relaxed)
    }

    fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }
}

/// Gets numbered messages, and sends some.
struct Node {
    seen: Arc<Seen>,
    others: Vec<Addr<Node>>,
    /// Which number comes next from each sender.
    expected: Vec<u64>,
    /// Which number goes to all others next.
    next: u64,
    /// Balls count only between the first and the last message that those others handle.
    during: Option<(Arc<Seen>, u64)>,
}

impl Actor for Node {}

struct Others(Vec<Addr<Node>>);

impl Receive<Others> for Node {
    type Reply = ();

    fn receive(&mut self, Others(others): Others, _: &mut Context<Self>) {
        self.others = others;
    }
}

/// A message of a sender's.
#[derive(Clone, Copy)]
struct Numbered {
    sender: usize,
    number: u64,
}

impl Node {
    fn note(&mut self, Numbered { sender, number }: Numbered) {
        if self.expected.len() <= sender {
            self.expected.resize(sender + 1, 0);
        }
        if self.expected[sender] != number {
            self.seen.out_of_order.fetch_add(1, Ordering::Relaxed);
        }
        self.expected[sender] = number + 1;
        self.seen.handled.fetch_add(1, Ordering::Relaxed);
    }
}

impl Receive<Numbered> for Node {
    type Reply = ();

    fn receive(&mut self, message: Numbered, _: &mut Context<Self>) {
        self.note(message);
    }
}

/// As [`Numbered`], and longer than the buffers of some tests.
struct Long(Numbered, [u64; 20]);

impl Receive<Long> for Node {
    type Reply = ();

    fn receive(&mut self, Long(message, filling): Long, _: &mut Context<Self>) {
        self.note(message);
        let is_whole = filling.iter().all(|&word| word == message.number);
        self.seen.out_of_order.fetch_add(u64::from(!is_whole), Ordering::Relaxed);
    }
}

/// Send so many to each other, as this sender, and spin for as long in the middle.
struct Talk {
    sender: usize,
    rounds: u64,
    spins: Duration,
}

/// Spins for so long, wherever it is by then.
fn spin(how_long: Duration) {
    let began = Instant::now();
    while began.elapsed() < how_long {
        core::hint::spin_loop();
    }
}

impl Receive<Talk> for Node {
    type Reply = ();

    fn receive(&mut self, Talk { sender, rounds, spins }: Talk, _: &mut Context<Self>) {
        for round in 0..rounds {
            if round == rounds / 2 {
                spin(spins);
            }
            for other in &self.others {
                let refused = other.send(Numbered { sender, number: self.next }).is_err();
                self.seen.refused.fetch_add(u64::from(refused), Ordering::Relaxed);
            }
            self.next += 1;
        }
    }
}

/// Send long and short ones in turns to each other, oneself included.
struct TalkLong {
    sender: usize,
    rounds: u64,
}

impl Receive<TalkLong> for Node {
    type Reply = ();

    fn receive(&mut self, TalkLong { sender, rounds }: TalkLong, _: &mut Context<Self>) {
        for _ in 0..rounds {
            let message = Numbered { sender, number: self.next };
            for other in &self.others {
                let refused = if self.next % 3 == 1 {
                    other.send(Long(message, [self.next; 20])).is_err()
                } else {
                    other.send(message).is_err()
                };
                self.seen.refused.fetch_add(u64::from(refused), Ordering::Relaxed);
            }
            self.next += 1;
        }
    }
}

/// Send one to each other as the first sender, and then do this.
struct Spread(Then);

enum Then {
    /// Spin until so many were handled.
    SpinUntil(u64),
    /// Have the first tell the second to.
    Tell(Addr<Node>, Addr<Node>, u64),
    Panic,
    Nothing,
}

/// Spin until so many were handled, or for longer than that can take.
struct SpinUntil(u64);

impl Receive<SpinUntil> for Node {
    type Reply = ();

    fn receive(&mut self, SpinUntil(handled): SpinUntil, _: &mut Context<Self>) {
        self.seen.spinning.fetch_add(1, Ordering::Relaxed);
        let began = Instant::now();
        while self.seen.handled() < handled {
            if began.elapsed() > HANGS_AFTER {
                self.seen.gave_up.fetch_add(1, Ordering::Relaxed);
                return;
            }
            core::hint::spin_loop();
        }
    }
}

/// Tell that one to spin until so many were handled.
struct Tell(Addr<Node>, u64);

impl Receive<Tell> for Node {
    type Reply = ();

    fn receive(&mut self, Tell(other, handled): Tell, _: &mut Context<Self>) {
        let refused = other.send(SpinUntil(handled)).is_err();
        self.seen.refused.fetch_add(u64::from(refused), Ordering::Relaxed);
    }
}

impl Receive<Spread> for Node {
    type Reply = ();

    fn receive(&mut self, Spread(then): Spread, _: &mut Context<Self>) {
        for other in &self.others {
            let refused = other.send(Numbered { sender: 0, number: self.next }).is_err();
            self.seen.refused.fetch_add(u64::from(refused), Ordering::Relaxed);
        }
        self.next += 1;
        match then {
            Then::SpinUntil(handled) => {
                while self.seen.handled() < handled {
                    core::hint::spin_loop();
                }
            }
            Then::Tell(by, other, handled) => _ = by.send(Tell(other, handled)),
            Then::Nothing => {}
            Then::Panic => panic!("on purpose, with mail in hand"),
        }
    }
}

/// Goes to all others in turns, until that is over.
struct Ball;

impl Receive<Ball> for Node {
    type Reply = ();

    fn receive(&mut self, _: Ball, _: &mut Context<Self>) {
        self.next += 1;
        let counts = self.during.as_ref().is_none_or(|(others, last)| (1..*last).contains(&others.handled()));
        self.seen.handled.fetch_add(u64::from(counts), Ordering::Relaxed);
        let is_over = self.seen.gave_up.load(Ordering::Relaxed) > 0;
        if !is_over && let Some(other) = self.others.get(self.next as usize % self.others.len().max(1)) {
            let refused = other.send(Ball).is_err();
            self.seen.refused.fetch_add(u64::from(refused), Ordering::Relaxed);
        }
    }
}

/// Throw a ball to each other.
struct Throw;

impl Receive<Throw> for Node {
    type Reply = ();

    fn receive(&mut self, _: Throw, _: &mut Context<Self>) {
        for other in &self.others {
            let refused = other.send(Ball).is_err();
            self.seen.refused.fetch_add(u64::from(refused), Ordering::Relaxed);
        }
    }
}

/// How many have come.
struct Balls;

impl Receive<Balls> for Node {
    type Reply = u64;

    fn receive(&mut self, _: Balls, _: &mut Context<Self>) -> u64 {
        self.next
    }
}

/// Goes on to one other so many times.
struct Token(u64);

impl Receive<Token> for Node {
    type Reply = ();

    fn receive(&mut self, Token(left): Token, _: &mut Context<Self>) {
        self.seen.handled.fetch_add(1, Ordering::Relaxed);
        if left > 0
            && let Some(next) = self.others.get(left as usize % self.others.len().max(1))
        {
            let refused = next.send(Token(left - 1)).is_err();
            self.seen.refused.fetch_add(u64::from(refused), Ordering::Relaxed);
        }
    }
}

/// Says when it was made and when it was dropped.
struct Counted(Arc<Seen>);

impl Counted {
    fn new(seen: &Arc<Seen>) -> Self {
        seen.made.fetch_add(1, Ordering::Relaxed);
        Self(seen.clone())
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.dropped.fetch_add(1, Ordering::Relaxed);
    }
}

impl Receive<Counted> for Node {
    type Reply = ();

    fn receive(&mut self, _: Counted, _: &mut Context<Self>) {
        self.seen.handled.fetch_add(1, Ordering::Relaxed);
    }
}

/// Send counted messages to all others for ever, so many rounds at once, and spin for as long after each.
#[derive(Clone, Copy)]
struct Flood(u64, Duration);

impl Receive<Flood> for Node {
    type Reply = ();

    fn receive(&mut self, Flood(rounds, spins): Flood, context: &mut Context<Self>) {
        for _ in 0..rounds {
            for other in &self.others {
                let refused = other.send(Counted::new(&self.seen)).is_err();
                self.seen.refused.fetch_add(u64::from(refused), Ordering::Relaxed);
            }
            spin(spins);
        }
        let _ = context.address().send(Flood(rounds, spins));
    }
}

/// Send long and short ones in turns to oneself, so many in all, and spin for as long in the middle.
struct Grow(u64, Duration);

impl Receive<Grow> for Node {
    type Reply = ();

    fn receive(&mut self, Grow(messages, spins): Grow, context: &mut Context<Self>) {
        for number in 0..messages {
            if number == messages / 2 {
                spin(spins);
            }
            let message = Numbered { sender: 0, number };
            let refused = if number % 3 == 0 {
                context.address().send(Long(message, [number; 20])).is_err()
            } else {
                context.address().send(message).is_err()
            };
            self.seen.refused.fetch_add(u64::from(refused), Ordering::Relaxed);
        }
    }
}

/// Send to oneself until that is refused, at most so often.
struct Fill(u64);

impl Receive<Fill> for Node {
    type Reply = ();

    fn receive(&mut self, Fill(most): Fill, context: &mut Context<Self>) {
        for number in 0..most {
            if context.address().send(Numbered { sender: 0, number }).is_err() {
                self.seen.refused.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}

fn node(seen: &Arc<Seen>) -> Node {
    Node { seen: seen.clone(), others: Vec::new(), expected: Vec::new(), next: 0, during: None }
}

/// A node in every mailbox that may be stolen.
fn nodes(executor: &Executor, seen: &Arc<Seen>) -> Result<Vec<Addr<Node>>, Failure> {
    let mut nodes = Vec::new();
    for _ in 0..executor.handle().mailboxes() {
        nodes.push(executor.handle().spawn(node(seen))?);
    }
    Ok(nodes)
}

/// Longer than a behaviour runs before it is suspended.
fn past_two_slices() -> Duration {
    Duration::from_micros(3 * sched::setting(Setting::SliceMicroseconds))
}

/// Talkers beside the nodes, and processes, send numbered messages to all nodes. Whether some are suspended in the middle
/// of it is for `spins` to say.
async fn many_talk(config: &Config, spins: Duration) -> Result<(), Failure> {
    const TALKERS: usize = 4;
    const PROCESSES: usize = 3;
    const ROUNDS: u64 = 20;
    let seen = Arc::new(Seen::default());
    let executor = Executor::start(config)?;
    let handle = executor.handle();
    let nodes = nodes(&executor, &seen)?;
    let mut talkers = Vec::new();
    for index in 0..TALKERS {
        let talker = handle.spawn_beside(nodes[index * nodes.len() / TALKERS], node(&seen))?;
        // A node, and one that talks itself, whose mail is put aside while it is suspended.
        talker.send(Others(nodes.iter().copied().chain([talker]).collect()))?;
        talkers.push(talker);
    }
    sched::out_of_work().await;
    let bursts = amount("bursts", 6);
    let mut processes = Vec::new();
    for index in 0..PROCESSES {
        let (nodes, seen) = (nodes.clone(), seen.clone());
        processes.push(Spawn::new().start(async move {
            for number in 0..bursts * ROUNDS {
                for node in &nodes {
                    let refused = node.send(Numbered { sender: TALKERS + index, number }).is_err();
                    seen.refused.fetch_add(u64::from(refused), Ordering::Relaxed);
                }
                if number % 3 == 0 {
                    sched::yield_now().await;
                }
            }
        })?);
    }
    for _ in 0..bursts {
        for (sender, talker) in talkers.iter().enumerate() {
            talker.send(Talk { sender, rounds: ROUNDS, spins })?;
        }
        sched::yield_now().await;
    }
    for process in processes {
        ensure!(process.await.is_ok(), "a process crashed");
    }
    sched::out_of_work().await;
    let per_sender = bursts * ROUNDS;
    let expected = per_sender * (nodes.len() * (TALKERS + PROCESSES) + TALKERS) as u64;
    ensure_eq!(seen.refused(), 0, "messages that were refused");
    ensure_eq!(seen.out_of_order(), 0, "messages out of order");
    ensure_eq!(seen.handled(), expected, "messages handled");
    executor.stop().await;
    Ok(())
}

kernel_test! {
    /// Several send to the same mailboxes, from behaviours and from processes: the order of each sender's messages is kept.
    async fn many_senders_keep_their_order() -> Outcome {
        many_talk(&Config::default(), Duration::ZERO).await?;
        // Turns that end in the middle of a batch, with mail left over.
        many_talk(&Config::default().reductions(7), Duration::ZERO).await
    }
}

kernel_test! {
    /// The same from behaviours that are suspended halfway, and go on elsewhere.
    #[machine("preemption")]
    async fn suspended_senders_keep_their_order() -> Outcome {
        many_talk(&Config::default(), past_two_slices()).await?;
        many_talk(&Config::default().reductions(7), past_two_slices()).await
    }
}

kernel_test! {
    /// What a behaviour sends to its own actor keeps its order, too, wherever it is suspended in between.
    #[machine("preemption")]
    async fn what_is_sent_to_oneself_keeps_its_order() -> Outcome {
        // As short as a slice may be, so that it is suspended again and again.
        let _short = Changed::new(&[(Setting::SliceMicroseconds, 50)])?;
        for round in 0..amount("rounds", 100) {
            let seen = Arc::new(Seen::default());
            let executor = Executor::start(&Config::default())?;
            let actor = executor.handle().spawn(node(&seen))?;
            let messages = 500 + 37 * round;
            actor.send(Grow(messages, past_two_slices()))?;
            sched::out_of_work().await;
            ensure_eq!(seen.refused(), 0, "messages that were refused");
            ensure_eq!(seen.handled(), messages, "messages handled");
            ensure_eq!(seen.out_of_order(), 0, "messages out of order");
            executor.stop().await;
        }
        Ok(())
    }
}

kernel_test! {
    /// With one mailbox for each worker senders and receivers are in each other's batches.
    #[machine("preemption")]
    async fn senders_in_few_mailboxes_keep_their_order() -> Outcome {
        many_talk(&Config::default().mailboxes(magpie::machine::cores()), past_two_slices()).await
    }
}

kernel_test! {
    /// What is longer than a buffer comes between what is short, in order.
    async fn long_messages_keep_their_order() -> Outcome {
        const SENDERS: usize = 3;
        let rounds = amount("rounds", 30);
        for segment_bytes in [64, 128, 1024] {
            let seen = Arc::new(Seen::default());
            let executor = Executor::start(&Config::default().segment_bytes(segment_bytes))?;
            let nodes = nodes(&executor, &seen)?;
            for node in &nodes {
                node.send(Others(nodes.clone()))?;
            }
            for _ in 0..5 {
                for sender in 0..SENDERS {
                    nodes[sender * nodes.len() / SENDERS].send(TalkLong { sender, rounds })?;
                }
                sched::out_of_work().await;
            }
            ensure_eq!(seen.refused(), 0, "messages that were refused, with buffers of {segment_bytes}");
            ensure_eq!(seen.out_of_order(), 0, "messages out of order, with buffers of {segment_bytes}");
            let expected = 5 * rounds * (SENDERS * nodes.len()) as u64;
            ensure_eq!(seen.handled(), expected, "messages handled, with buffers of {segment_bytes}");
            executor.stop().await;
        }
        Ok(())
    }
}

kernel_test! {
    /// A behaviour sends to all others and then waits, without giving way, until they have handled it.
    #[machine("preemption")]
    async fn nobody_waits_behind_the_sender() -> Outcome {
        let seen = Arc::new(Seen::default());
        let executor = Executor::start(&Config::default())?;
        let nodes = nodes(&executor, &seen)?;
        let sender = executor.handle().spawn_beside(nodes[0], node(&seen))?;
        sender.send(Others(nodes.clone()))?;
        for round in 1..=amount("rounds", 20) {
            sender.send(Spread(Then::SpinUntil(round * nodes.len() as u64)))?;
            sched::out_of_work().await;
            ensure_eq!(seen.handled(), round * nodes.len() as u64, "messages handled in round {round}");
        }
        ensure_eq!(seen.out_of_order(), 0, "messages out of order");
        executor.stop().await;
        Ok(())
    }
}

kernel_test! {
    /// What comes from elsewhere for a mailbox that was emptied in the same turn does not wait for a behaviour that spins,
    /// though that is not suspended: with memory used up it cannot be.
    #[cores(2)]
    #[machine("the kernel's heap")]
    async fn mail_from_elsewhere_does_not_wait_for_the_turn() -> Outcome {
        let seen = Arc::new(Seen::default());
        let executor = Executor::start(&Config::default())?;
        let handle = executor.handle();
        let elsewhere: Vec<_> = handle.cores().iter().filter(|&core| core != CoreId::BOOT).collect();
        let nodes = elsewhere.iter().map(|&core| handle.spawn_on(core, node(&seen)));
        let nodes = nodes.collect::<Result<Arc<[_]>, _>>()?;
        let all = nodes.len() as u64;
        // It spreads, and is told by another, when the worker comes to that after all nodes, to spin.
        let sender = handle.spawn_pinned(CoreId::BOOT, node(&seen))?;
        let by = handle.spawn_on(CoreId::BOOT, node(&seen))?;
        sender.send(Others(nodes.to_vec()))?;
        // Each has been used once, so none needs memory later.
        sender.send(Spread(Then::Tell(by, sender, 0)))?;
        sched::out_of_work().await;
        for round in 0..amount("rounds", 4) {
            // While these wait no other core is idle, so nothing is given away before its time. The first that sees it
            // spin sends.
            let mut others = Vec::new();
            for &core in &elsewhere {
                let (nodes, seen) = (nodes.clone(), seen.clone());
                others.push(Spawn::new().pinned(core).start(async move {
                    while seen.spinning.load(Ordering::Relaxed) < round + 2 {
                        sched::yield_now().await;
                    }
                    let is_first = seen.second_mail.fetch_max(round + 1, Ordering::Relaxed) == round;
                    !is_first || nodes.iter().all(|node| node.send(Numbered { sender: 1, number: round }).is_ok())
                })?);
            }
            let exhauster = HeapExhauster::everything(16)?;
            let handled = all * (3 + 2 * round);
            let sent = sender.send(Spread(Then::Tell(by, sender, handled))).map(drop);
            sched::out_of_work().await;
            drop(exhauster);
            sent?;
            for other in others {
                ensure_eq!(other.await, Ok(true), "whether all could be sent to");
            }
            ensure_eq!(seen.gave_up.load(Ordering::Relaxed), 0, "behaviours that others' mail has waited for");
            ensure_eq!(seen.handled(), handled, "messages handled in round {round}");
        }
        ensure_eq!(seen.refused(), 0, "messages that were refused");
        ensure_eq!(seen.out_of_order(), 0, "messages out of order");
        executor.stop().await;
        Ok(())
    }
}

kernel_test! {
    /// A behaviour that panics has sent what it has sent.
    #[machine("isolation")]
    async fn what_a_crash_leaves_in_hand_arrives() -> Outcome {
        let seen = Arc::new(Seen::default());
        let executor = Executor::start(&Config::default())?;
        let handle = executor.handle();
        let nodes = nodes(&executor, &seen)?;
        let neighbour = handle.spawn_beside(nodes[0], node(&seen))?;
        let others: Vec<_> = nodes.iter().copied().chain([neighbour]).collect();
        for round in 1..=amount("rounds", 5) {
            // Each with nodes of its own, because the numbers of a sender begin anew.
            let sender = handle.spawn_beside(neighbour, Node { next: round - 1, ..node(&seen) })?;
            sender.send(Others(others.clone()))?.send(Spread(Then::Panic))?;
            sched::out_of_work().await;
            ensure_eq!(seen.handled(), round * others.len() as u64, "messages handled in round {round}");
            ensure!(!sender.is_alive(), "the sender is alive");
        }
        ensure_eq!(seen.out_of_order(), 0, "messages out of order");
        ensure_eq!(seen.refused(), 0, "messages that were refused");
        executor.stop().await;
        Ok(())
    }
}

/// Executors stop while behaviours send, which spin for so long now and then.
async fn stop_while_sending(spins: Duration) -> Result<(), Failure> {
    for round in 0..amount("restarts", 30) {
        let seen = Arc::new(Seen::default());
        let executor = Executor::start(&Config::default().reductions(50))?;
        let nodes = nodes(&executor, &seen)?;
        for node in &nodes {
            node.send(Others(nodes.clone()))?;
        }
        for node in nodes.iter().step_by(5) {
            node.send(Flood(1 + round % 3, spins))?;
        }
        for _ in 0..round % 5 {
            sched::yield_now().await;
        }
        let dropped = executor.stop().await;
        let (made, gone) = (seen.made.load(Ordering::Relaxed), seen.dropped.load(Ordering::Relaxed));
        ensure_eq!(gone, made, "messages dropped in round {round}");
        let counted = made - seen.refused() - seen.handled();
        // Others that were not delivered: what began the nodes and what makes them send.
        let uncounted = (nodes.len() + nodes.len().div_ceil(5)) as u64;
        ensure!(
            (counted..=counted + uncounted).contains(&dropped),
            "{dropped} not delivered in round {round}, of which {counted} were counted"
        );
        ensure_eq!(Arc::strong_count(&seen), 1, "owners at the end of round {round}");
    }
    Ok(())
}

kernel_test! {
    /// Each message of an executor that stops is handled or dropped, once.
    async fn an_executor_stops_with_mail_in_hand() -> Outcome {
        stop_while_sending(Duration::ZERO).await
    }
}

kernel_test! {
    /// The same while behaviours are suspended in the middle of sending.
    #[machine("preemption")]
    async fn an_executor_stops_while_suspended_behaviours_send() -> Outcome {
        stop_while_sending(past_two_slices()).await
    }
}

/// With the heap used up tokens go round over all mailboxes. Some were never used before, if not `warm`.
async fn rounds_without_memory(warm: bool) -> Result<(), Failure> {
    const HOPS: u64 = 5_000;
    const TOKENS: usize = 3;
    let seen = Arc::new(Seen::default());
    let executor = Executor::start(&Config::default())?;
    let nodes = if warm {
        nodes(&executor, &seen)?
    } else {
        // They know from the beginning whom to send to: each to one of its own, or its mailbox would have to grow.
        let ends = nodes(&executor, &seen)?;
        let mut nodes = Vec::new();
        for (index, _) in ends.iter().enumerate() {
            let others = vec![ends[(index + 3) % ends.len()]];
            nodes.push(executor.handle().spawn(Node { others, ..node(&seen) })?);
        }
        nodes
    };
    if warm {
        for node in &nodes {
            node.send(Others(nodes.clone()))?;
        }
    }
    sched::out_of_work().await;
    let exhauster = HeapExhauster::everything(16)?;
    let (hops, senders) = if warm { (HOPS, TOKENS) } else { (1, nodes.len()) };
    let sent = nodes.iter().take(senders).filter(|node| node.send(Token(hops)).is_ok()).count() as u64;
    let began = Instant::now();
    // Nothing here may need memory.
    while seen.handled() < sent * (hops + 1) && began.elapsed() < HANGS_AFTER {
        sched::yield_now().await;
    }
    let handled = seen.handled();
    drop(exhauster);
    ensure_eq!(seen.refused(), 0, "tokens that were refused");
    ensure_eq!(sent, senders as u64, "tokens that were sent");
    ensure_eq!(handled, sent * (hops + 1), "hops without memory");
    executor.stop().await;
    Ok(())
}

kernel_test! {
    /// Mailboxes that have been used have all that they need.
    #[machine("the kernel's heap")]
    async fn rings_go_round_with_memory_used_up() -> Outcome {
        rounds_without_memory(true).await
    }
}

kernel_test! {
    /// So have those that have not.
    #[machine("the kernel's heap")]
    async fn new_mailboxes_are_handled_with_memory_used_up() -> Outcome {
        rounds_without_memory(false).await
    }
}

kernel_test! {
    /// What a behaviour sends to itself counts for its mailbox's bound.
    async fn a_bound_holds_for_what_is_sent_to_oneself() -> Outcome {
        const BOUND: u32 = 8;
        let _whole_turns = Changed::no_preemption()?;
        let seen = Arc::new(Seen::default());
        let config = Config::default().bound(Bound::new(BOUND, WhenFull::Refuse));
        let executor = Executor::start(&config)?;
        let actor = executor.handle().spawn(node(&seen))?;
        let rounds = amount("rounds", 10);
        for round in 1..=rounds {
            actor.send(Fill(100))?;
            sched::out_of_work().await;
            ensure_eq!(seen.handled(), round * u64::from(BOUND), "messages handled in round {round}");
        }
        ensure_eq!(seen.refused(), rounds * (100 - u64::from(BOUND)), "messages that were refused");
        let most = executor.handle().high_water().messages;
        ensure!(most <= BOUND, "{most} messages waited");
        executor.stop().await;
        Ok(())
    }
}

kernel_test! {
    /// A behaviour sends to thousands of mailboxes. Its worker has few of them in hand at once, so that giving them back never
    /// takes long.
    async fn few_are_in_hand_at_once() -> Outcome {
        const MOST: u64 = 128;
        let seen = Arc::new(Seen::default());
        let executor = Executor::start(&Config::default().mailboxes(amount("mailboxes", 4000) as usize))?;
        let nodes = nodes(&executor, &seen)?;
        let sender = executor.handle().spawn_beside(nodes[0], node(&seen))?;
        sender.send(Others(nodes.clone()))?;
        for round in 1..=3 {
            sender.send(Spread(Then::Nothing))?;
            sched::out_of_work().await;
            ensure_eq!(seen.handled(), round * nodes.len() as u64, "messages handled in round {round}");
        }
        let most = executor.handle().cores().iter().map(|core| stats::worker(core).most_in_hand.get()).max();
        ensure_eq!(most, Some(MOST), "the most mailboxes in hand at once");
        ensure_eq!(seen.out_of_order(), 0, "messages out of order");
        ensure_eq!(seen.refused(), 0, "messages that were refused");
        executor.stop().await;
        Ok(())
    }
}

/// Balls are thrown in so many mailboxes of one worker, from each to itself or, between two beside each other in the first, to
/// the other. How many have come in each mailbox by the time when so many have come in all.
async fn balls(mailboxes: usize, all: u64) -> Result<Vec<u64>, Failure> {
    let seen = Arc::new(Seen::default());
    let executor = Executor::start(&Config::default().workers(1).mailboxes(mailboxes))?;
    let handle = executor.handle();
    let nodes = nodes(&executor, &seen)?;
    let neighbour = handle.spawn_beside(nodes[0], node(&seen))?;
    neighbour.send(Others(vec![nodes[0]]))?;
    nodes[0].send(Others(vec![neighbour]))?;
    for node in &nodes[1..] {
        node.send(Others(vec![*node]))?;
    }
    // From one behaviour, so that none begins before the others.
    let thrower = handle.spawn_beside(nodes[0], node(&seen))?;
    thrower.send(Others(nodes.clone()))?;
    sched::out_of_work().await;
    thrower.send(Throw)?;
    while seen.handled() < all {
        sched::yield_now().await;
    }
    seen.gave_up.store(1, Ordering::Relaxed);
    sched::out_of_work().await;
    let mut came = Vec::new();
    for node in &nodes {
        came.push(node.ask(Balls).await?);
    }
    came[0] += neighbour.ask(Balls).await?;
    ensure_eq!(seen.refused(), 0, "balls that were refused");
    executor.stop().await;
    Ok(came)
}

kernel_test! {
    /// Mailboxes that always have mail, because their actors send to themselves or to each other, all have their turns.
    async fn mailboxes_that_never_empty_take_turns() -> Outcome {
        // With many, not all have a turn in each of the worker's.
        for mailboxes in [16, 300] {
            let came = balls(mailboxes, amount("balls", 400) * mailboxes as u64).await?;
            let (least, most) = (came.iter().min(), came.iter().max());
            let (Some(&least), Some(&most)) = (least, most) else { continue };
            ensure!(most < 4 * least, "of {mailboxes} mailboxes one had {least} messages, another {most}");
        }
        Ok(())
    }
}

kernel_test! {
    /// Two beside each other that never stop sending to one another do not keep what is under way between other mailboxes.
    async fn neighbours_do_not_keep_others_waiting() -> Outcome {
        const TOKENS: u64 = 15;
        let seen = Arc::new(Seen::default());
        let pair = Arc::new(Seen::default());
        let executor = Executor::start(&Config::default().workers(1).mailboxes(16))?;
        let handle = executor.handle();
        let nodes = nodes(&executor, &seen)?;
        let hops = amount("hops", 300);
        // Not what the two do while the process that starts and ends all this waits for the host.
        let player = || Node { during: Some((seen.clone(), TOKENS * (hops + 1))), ..node(&pair) };
        let first = handle.spawn_beside(nodes[0], player())?;
        let second = handle.spawn_beside(first, player())?;
        first.send(Others(vec![second]))?;
        second.send(Others(vec![first]))?;
        for node in &nodes[1..] {
            node.send(Others(nodes[1..].to_vec()))?;
        }
        sched::out_of_work().await;
        first.send(Ball)?;
        for node in &nodes[1..] {
            node.send(Token(hops))?;
        }
        while seen.handled() < TOKENS * (hops + 1) {
            sched::yield_now().await;
        }
        let passed = pair.handled();
        pair.gave_up.store(1, Ordering::Relaxed);
        sched::out_of_work().await;
        // What fits into a buffer may be handled at once: at most 42 messages, while each of the tokens has a hop.
        let most = 2 * 42 * hops;
        ensure!(passed <= most, "{passed} messages went between two while {TOKENS} tokens made {hops} hops each");
        ensure_eq!(seen.refused() + pair.refused(), 0, "messages that were refused");
        executor.stop().await;
        Ok(())
    }
}
