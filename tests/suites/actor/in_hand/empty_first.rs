//! Mailboxes that come into the run list with nothing in hand, or with nothing in the first segment of what is in hand. Behind another
//! batch of the list nothing is delivered from there that was delivered before, or was never sent.

use alloc::sync::Arc;
use core::sync::atomic::Ordering;

use magpie::actor::{Actor, Addr, Config, Context, Executor, ExecutorHandle, Hook, Receive};
use magpie::{sched, stats};
use magpie_tests::{Failure, amount, ensure_eq, kernel_test};

use super::node::{Counted, Seen};

/// Messages that do not fit into one segment.
const BURST: u64 = 100;

/// What happens while the quiet one's mailbox rests in hand.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Then {
    /// An actor begins there, which is said in the queue.
    Spawn,
    /// A message comes that is longer than the segment.
    SendWide,
    /// A message comes, and the sender's own mail, behind it in the run list, goes on in another segment.
    Burst,
}

/// Sends one message to the quiet one, and then does this.
struct Main {
    seen: Arc<Seen>,
    quiet: Addr<Quiet>,
    echo: Addr<Echo>,
    then: Then,
}

impl Actor for Main {}

/// Counts.
struct Quiet(Arc<Seen>);

impl Actor for Quiet {}

/// Says so when asked.
struct Echo;

impl Actor for Echo {}

/// Notes its beginning.
struct Late(Arc<Seen>);

impl Actor for Late {
    fn started() -> Option<Hook<Self>> {
        Some(|late, context| {
            late.0.second_mail.fetch_add(1, Ordering::Relaxed);
            context.end();
        })
    }
}

struct Begin;
struct Back(Addr<Main>);
struct Again;

/// Longer than a mailbox's segment before it has grown.
struct Wide([u64; 128]);

impl Receive<Begin> for Main {
    type Reply = ();

    fn receive(&mut self, _: Begin, context: &mut Context<Self>) {
        let refused = self.quiet.send(Counted::new(&self.seen)).is_err();
        let refused = refused || self.echo.send(Back(context.address())).is_err();
        self.seen.refused.fetch_add(u64::from(refused), Ordering::Relaxed);
    }
}

impl Receive<Back> for Echo {
    type Reply = ();

    fn receive(&mut self, Back(main): Back, _: &mut Context<Self>) {
        let _ = main.send(Again);
    }
}

impl Receive<Again> for Main {
    type Reply = ();

    fn receive(&mut self, _: Again, context: &mut Context<Self>) {
        let refused = match self.then {
            Then::Spawn => context.executor().spawn_beside(self.quiet, Late(self.seen.clone())).is_err(),
            Then::SendWide => self.quiet.send(Wide([7; 128])).is_err(),
            Then::Burst => {
                let own = context.address();
                let refused = self.quiet.send(Counted::new(&self.seen)).is_err();
                (0..BURST).fold(refused, |refused, _| refused | own.send(Counted::new(&self.seen)).is_err())
            }
        };
        self.seen.refused.fetch_add(u64::from(refused), Ordering::Relaxed);
    }
}

impl Receive<Counted> for Main {
    type Reply = ();

    fn receive(&mut self, _: Counted, _: &mut Context<Self>) {
        self.seen.handled.fetch_add(1, Ordering::Relaxed);
    }
}

impl Receive<Counted> for Quiet {
    type Reply = ();

    fn receive(&mut self, _: Counted, _: &mut Context<Self>) {
        self.0.handled.fetch_add(1, Ordering::Relaxed);
    }
}

impl Receive<Wide> for Quiet {
    type Reply = ();

    fn receive(&mut self, Wide(words): Wide, _: &mut Context<Self>) {
        let is_whole = words.iter().all(|&word| word == 7);
        self.0.second_mail.fetch_add(u64::from(is_whole), Ordering::Relaxed);
    }
}

/// How much has crashed on the executor's cores.
fn crashes(handle: &ExecutorHandle) -> u64 {
    handle.cores().iter().map(|core| stats::core(core).crashes.get()).sum()
}

async fn nothing_twice(then: Then) -> Result<(), Failure> {
    let executor = Executor::start(&Config::default())?;
    let handle = executor.handle();
    let seen = Arc::new(Seen::default());
    let before = crashes(handle);
    for round in 1..=amount("rounds", 20) {
        let quiet = handle.spawn(Quiet(seen.clone()))?;
        let echo = handle.spawn(Echo)?;
        let main = handle.spawn(Main { seen: seen.clone(), quiet, echo, then })?;
        main.send(Begin)?;
        sched::out_of_work().await;
        ensure_eq!(seen.refused(), 0, "refused");
        let (counted, second) = if then == Then::Burst { (BURST + 2, 0) } else { (1, 1) };
        ensure_eq!(seen.handled(), round * counted, "messages handled");
        ensure_eq!(seen.dropped.load(Ordering::Relaxed), round * counted, "messages dropped");
        ensure_eq!(seen.second_mail.load(Ordering::Relaxed), round * second, "what came later");
        ensure_eq!(crashes(handle) - before, 0, "crashed");
    }
    executor.stop().await;
    Ok(())
}

kernel_test! {
    /// The beginning of an actor goes into the queue of a mailbox that rests in hand: it is listed with nothing there.
    async fn who_begins_where_mail_rests_has_nothing_delivered_twice() -> Outcome {
        nothing_twice(Then::Spawn).await
    }
}

kernel_test! {
    /// A message that is too long for the segment of a mailbox at rest lies in another one, behind that.
    async fn a_long_message_where_mail_rests_has_nothing_delivered_twice() -> Outcome {
        nothing_twice(Then::SendWide).await
    }
}

kernel_test! {
    /// What follows a batch that has filled its segment lies in the next one.
    async fn what_follows_a_full_segment_begins_in_the_next() -> Outcome {
        nothing_twice(Then::Burst).await
    }
}
