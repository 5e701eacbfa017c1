//! Very much waits in a mailbox, because all its actors send much before anything is handled.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use magpie::actor::{Actor, Addr, Config, Context, Executor, Receive};
use magpie::internals::mem::heap::HEAP;
use magpie::sched::{self, Setting};
use magpie_tests::{Changed, Failure, amount, ensure, ensure_eq, kernel_test};

const WORDS: u64 = 100;

/// Of a [`Word`] in its envelope: the actor's two words and its own.
const WORD_BYTES: usize = 24;

#[derive(Default)]
struct Seen {
    words: AtomicU64,
    refused: AtomicU64,
    most_used: AtomicUsize,
}

impl Seen {
    fn note_used(&self) {
        self.most_used.fetch_max(HEAP.usage().0, Ordering::Relaxed);
    }
}

struct Speaker {
    seen: Arc<Seen>,
}

impl Actor for Speaker {}

struct Word(u64);

impl Receive<Word> for Speaker {
    type Reply = ();

    fn receive(&mut self, Word(number): Word, _: &mut Context<Self>) {
        self.seen.words.fetch_add(1, Ordering::Relaxed);
        if number == 0 {
            self.seen.note_used();
        }
    }
}

/// Say [`WORDS`] to that one.
struct Speak(Addr<Speaker>);

impl Receive<Speak> for Speaker {
    type Reply = ();

    fn receive(&mut self, Speak(to): Speak, _: &mut Context<Self>) {
        self.seen.note_used();
        for number in 0..WORDS {
            let refused = to.send(Word(number)).is_err();
            self.seen.refused.fetch_add(u64::from(refused), Ordering::Relaxed);
        }
    }
}

/// So many speakers speak to one another at once, again and again. By how many bytes the heap has grown at most.
async fn most_memory(config: &Config, speakers: u64) -> Result<usize, Failure> {
    // Shorter than it takes to make a segment for all of it.
    let _short = Changed::new(&[(Setting::SliceMicroseconds, 50)])?;
    let seen = Arc::new(Seen::default());
    let executor = Executor::start(config)?;
    let speakers: Result<Vec<_>, _> =
        (0..speakers).map(|_| executor.handle().spawn(Speaker { seen: seen.clone() })).collect();
    let speakers = speakers?;
    sched::out_of_work().await;
    let before = HEAP.usage().0;
    let rounds = amount("rounds", 6);
    for round in 1..=rounds {
        for (speaker, to) in speakers.iter().zip(speakers.iter().rev()) {
            speaker.send(Speak(*to))?;
        }
        sched::out_of_work().await;
        let words = seen.words.load(Ordering::Relaxed);
        ensure_eq!(words, round * speakers.len() as u64 * WORDS, "words that came by round {round}");
    }
    ensure_eq!(seen.refused.load(Ordering::Relaxed), 0, "words that were refused");
    executor.stop().await;
    Ok(seen.most_used.load(Ordering::Relaxed).saturating_sub(before))
}

kernel_test! {
    /// A segment for very much mail takes longer to make than a slice. While one sender makes it, which is suspended in that, others do
    /// not each make one more.
    #[machine("the kernel's heap")]
    async fn a_backlog_needs_little_more_memory_than_its_mail() -> Outcome {
        const SPEAKERS: u64 = 1_000;
        let mail = SPEAKERS as usize * WORDS as usize * WORD_BYTES;
        // Of few mailboxes, because each keeps a segment or two.
        for mailboxes in [1, 4] {
            let config = Config::default().workers(1).mailboxes(mailboxes);
            let most = most_memory(&config, SPEAKERS).await?;
            magpie::text!("{most} bytes for {mail} of mail");
            ensure!(most >= mail / 2, "{most} bytes for {mail} of mail, which did not wait at once");
            ensure!(most <= 3 * mail, "{most} bytes for {mail} of mail");
        }
        Ok(())
    }
}
