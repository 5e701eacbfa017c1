//! The actors of these tests, and what they send to each other.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;

use magpie::actor::{Actor, Addr, Context, Executor, Receive};
use magpie::sched::{self, Setting};
use magpie::time::Instant;
use magpie_tests::{Failure, HANGS_AFTER};

/// What the actors of a test share.
#[derive(Default)]
pub(super) struct Seen {
    pub(super) handled: AtomicU64,
    pub(super) out_of_order: AtomicU64,
    pub(super) refused: AtomicU64,
    pub(super) made: AtomicU64,
    pub(super) dropped: AtomicU64,
    /// How often somebody has begun to spin, and how often it gave up.
    pub(super) spinning: AtomicU64,
    /// How often it was sent to all with memory used up.
    pub(super) late_rounds: AtomicU64,
    pub(super) gave_up: AtomicU64,
    /// In how many rounds a second mail was sent.
    pub(super) second_mail: AtomicU64,
}

impl Seen {
    pub(super) fn handled(&self) -> u64 {
        self.handled.load(Ordering::Relaxed)
    }

    pub(super) fn out_of_order(&self) -> u64 {
        self.out_of_order.load(Ordering::Relaxed)
    }

    pub(super) fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }
}

/// Gets numbered messages, and sends some.
pub(super) struct Node {
    pub(super) seen: Arc<Seen>,
    pub(super) others: Vec<Addr<Node>>,
    /// Which number comes next from each sender.
    pub(super) expected: Vec<u64>,
    /// Which number goes to all others next.
    pub(super) next: u64,
    /// Balls count only between the first and the last message that those others handle.
    pub(super) during: Option<(Arc<Seen>, u64)>,
}

impl Actor for Node {}

pub(super) struct Others(pub(super) Vec<Addr<Node>>);

impl Receive<Others> for Node {
    type Reply = ();

    fn receive(&mut self, Others(others): Others, _: &mut Context<Self>) {
        self.others = others;
    }
}

/// A message of a sender's.
#[derive(Clone, Copy)]
pub(super) struct Numbered {
    pub(super) sender: usize,
    pub(super) number: u64,
}

impl Node {
    pub(super) fn note(&mut self, Numbered { sender, number }: Numbered) {
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
pub(super) struct Long(pub(super) Numbered, pub(super) [u64; 20]);

impl Receive<Long> for Node {
    type Reply = ();

    fn receive(&mut self, Long(message, filling): Long, _: &mut Context<Self>) {
        self.note(message);
        let is_whole = filling.iter().all(|&word| word == message.number);
        self.seen.out_of_order.fetch_add(u64::from(!is_whole), Ordering::Relaxed);
    }
}

/// As [`Numbered`], and takes as long.
pub(super) struct Slow(pub(super) Numbered, pub(super) Duration);

impl Receive<Slow> for Node {
    type Reply = ();

    fn receive(&mut self, Slow(message, spins): Slow, _: &mut Context<Self>) {
        self.note(message);
        spin(spins);
    }
}

/// Send so many to each other, as this sender, and spin for as long in the middle.
pub(super) struct Talk {
    pub(super) sender: usize,
    pub(super) rounds: u64,
    pub(super) spins: Duration,
}

/// Spins for so long, wherever it is by then.
pub(super) fn spin(how_long: Duration) {
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
pub(super) struct TalkLong {
    pub(super) sender: usize,
    pub(super) rounds: u64,
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
pub(super) struct Spread(pub(super) Then);

pub(super) enum Then {
    /// Spin until so many were handled.
    SpinUntil(u64),
    /// Have the first tell the second to.
    Tell(Addr<Node>, Addr<Node>, u64),
    Panic,
    Nothing,
}

/// Spin until so many were handled, or for longer than that can take.
pub(super) struct SpinUntil(pub(super) u64);

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
pub(super) struct Tell(pub(super) Addr<Node>, pub(super) u64);

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
pub(super) struct Ball;

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
pub(super) struct Throw;

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
pub(super) struct Balls;

impl Receive<Balls> for Node {
    type Reply = u64;

    fn receive(&mut self, _: Balls, _: &mut Context<Self>) -> u64 {
        self.next
    }
}

/// Goes on to one other so many times.
pub(super) struct Token(pub(super) u64);

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
pub(super) struct Counted(pub(super) Arc<Seen>);

impl Counted {
    pub(super) fn new(seen: &Arc<Seen>) -> Self {
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
pub(super) struct Flood(pub(super) u64, pub(super) Duration);

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
pub(super) struct Grow(pub(super) u64, pub(super) Duration);

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
pub(super) struct Fill(pub(super) u64);

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

pub(super) fn node(seen: &Arc<Seen>) -> Node {
    Node { seen: seen.clone(), others: Vec::new(), expected: Vec::new(), next: 0, during: None }
}

/// A node in every mailbox that may be stolen.
pub(super) fn nodes(executor: &Executor, seen: &Arc<Seen>) -> Result<Vec<Addr<Node>>, Failure> {
    let mut nodes = Vec::new();
    for _ in 0..executor.handle().mailboxes() {
        nodes.push(executor.handle().spawn(node(seen))?);
    }
    Ok(nodes)
}

/// Longer than a behaviour runs before it is suspended.
pub(super) fn past_two_slices() -> Duration {
    Duration::from_micros(3 * sched::setting(Setting::SliceMicroseconds))
}
