//! Messages of every size: each arrives with every byte as it was sent, by way of a queue and in hand. Moving a message into its envelope and
//! out of it is done by pairs of registers, with a different rest for each size.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicU64, Ordering};

use magpie::actor::{Actor, Config, Context, Executor, ExecutorHandle, Message, Receive};
use magpie::sched;
use magpie_tests::{Failure, ensure_eq, kernel_test};

/// How often a message is sent: from a process, and then by the actor to itself.
const ROUNDS: u64 = 4;

#[derive(Default)]
struct Seen {
    whole: AtomicU64,
    broken: AtomicU64,
}

/// Looks at a message, and sends itself the next.
struct Reader(Arc<Seen>);

impl Actor for Reader {}

/// What a test sends.
trait Sample: Message {
    /// That of a round.
    fn of(round: u64) -> Self;
    /// The round it is of, if all of it is.
    fn round(&self) -> Option<u64>;
}

impl Reader {
    fn look<M: Sample>(&self, sample: M, context: &Context<Self>)
    where
        Self: Receive<M>,
    {
        let Some(round) = sample.round() else {
            self.0.broken.fetch_add(1, Ordering::Relaxed);
            return;
        };
        self.0.whole.fetch_add(1, Ordering::Relaxed);
        if round + 1 < ROUNDS && context.address().send(M::of(round + 1)).is_err() {
            self.0.broken.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// So many bytes, at any address.
struct Bytes<const N: usize>([u8; N]);

impl<const N: usize> Sample for Bytes<N> {
    fn of(round: u64) -> Self {
        Self(core::array::from_fn(|index| (index as u64 * 7 + round) as u8))
    }

    fn round(&self) -> Option<u64> {
        let round = u64::from(self.0[0]);
        (self.0 == Self::of(round).0).then_some(round)
    }
}

/// So many words.
struct Words<const N: usize>([u64; N]);

impl<const N: usize> Sample for Words<N> {
    fn of(round: u64) -> Self {
        Self(core::array::from_fn(|index| (index as u64) << 56 | round))
    }

    fn round(&self) -> Option<u64> {
        let round = self.0[0];
        (self.0 == Self::of(round).0).then_some(round)
    }
}

/// Parts of words, with gaps.
struct Parts(u8, u32, i16, Option<u16>, bool);

impl Sample for Parts {
    fn of(round: u64) -> Self {
        Self(round as u8, !round as u32, -(round as i16), Some(round as u16 + 9), round % 2 == 1)
    }

    fn round(&self) -> Option<u64> {
        let round = u64::from(self.0);
        let Self(_, second, third, fourth, fifth) = Self::of(round);
        ((self.1, self.2, self.3, self.4) == (second, third, fourth, fifth)).then_some(round)
    }
}

/// Two halves of a word.
struct Pair(i32, i32);

impl Sample for Pair {
    fn of(round: u64) -> Self {
        Self(round as i32, -1 - round as i32)
    }

    fn round(&self) -> Option<u64> {
        (self.1 == -1 - self.0).then_some(self.0 as u64)
    }
}

impl<M: Sample> Receive<M> for Reader {
    type Reply = ();

    fn receive(&mut self, sample: M, context: &mut Context<Self>) {
        self.look(sample, context);
    }
}

/// Sends a reader one of these.
fn begin<M: Sample>(handle: &ExecutorHandle, seen: &Arc<Seen>) -> Result<(), Failure> {
    handle.spawn(Reader(seen.clone()))?.send(M::of(0))?;
    Ok(())
}

macro_rules! begin_all {
    ($handle:ident, $seen:ident, $kind:ident: $($size:literal)*) => {{
        $(begin::<$kind<$size>>($handle, &$seen)?;)*
        [$($size),*].len() as u64
    }};
}

kernel_test! {
    /// Each size up to a round of 64 bytes and some more, and around further rounds, up to the largest that lies in an envelope, and beyond.
    async fn messages_of_every_size_arrive_whole() -> Outcome {
        let executor = Executor::start(&Config::default())?;
        let handle = executor.handle();
        let seen = Arc::new(Seen::default());
        let mut begun = begin_all!(handle, seen, Bytes:
            1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32 33 34 35 36 37 38 39 40 41 42 43 44
            45 46 47 48 49 50 51 52 53 54 55 56 57 58 59 60 61 62 63 64 65 66 67 68 69 70 71 72 79 80 81 95 96 97 111 112 113 119 120
            121 126 127 128 129 130 159 160 161 183 191 192 193 255 256 257 311 320 511 512 513 1001 1016 1023 1024 1025 2000);
        begun += begin_all!(handle, seen, Words: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 23 31 32 33 63 64 65 127 128 129 200);
        begin::<Parts>(handle, &seen)?;
        begin::<Pair>(handle, &seen)?;
        begun += 2;
        sched::out_of_work().await;
        ensure_eq!(seen.broken.load(Ordering::Relaxed), 0, "messages that were not as they were sent");
        ensure_eq!(seen.whole.load(Ordering::Relaxed), begun * ROUNDS, "messages that came");
        executor.stop().await;
        Ok(())
    }
}
