//! Actors are created and ended all the time, while their mailboxes are stolen.

use super::{Dropped, Verdict, count, counter, ensure, equal, failed, start_with_thieves};
use crate::actor::{Actor, Context, MailboxVictim, Receive};
use crate::arch::CoreId;
use crate::arch::atomic::{AtomicU64, Ordering};

/// Handles one message and ends; before that it begets a successor, and tells it so.
struct Mayfly {
    _dropped: Dropped,
    drops: &'static AtomicU64,
    handled: &'static AtomicU64,
}

impl Actor for Mayfly {}

impl Receive<u64> for Mayfly {
    type Reply = ();

    fn receive(&mut self, left: u64, context: &mut Context<Self>) {
        self.handled.fetch_add(1, Ordering::Relaxed);
        if left > 0 {
            let child = Self { _dropped: Dropped(self.drops), ..*self };
            if let Ok(child) = context.spawn(child) {
                // A second message comes too late for the first has ended it.
                let _ = child.send(left - 1).and_then(|child| child.send(0));
            }
        }
        context.end();
    }
}

/// Generations of actors, each of which lives for one message; every one is dropped once, and what is sent
/// to those that have ended is never handled.
pub(super) async fn actors_come_and_go_while_mailboxes_are_stolen(work: u64) -> Verdict {
    const LINES: u64 = 20;
    let generations = work / 10 / LINES;
    let executor = start_with_thieves(MailboxVictim::Random).map_err(failed)?;
    let (drops, handled) = (counter(), counter());
    for _ in 0..LINES {
        let first = Mayfly { _dropped: Dropped(drops), drops, handled };
        let first = executor.handle().spawn_on(CoreId::BOOT, first).map_err(failed)?;
        first.send(generations).map_err(failed)?;
    }
    executor.all_ended().await;
    let expected = LINES * (generations + 1);
    equal(count(handled), expected, "messages handled")?;
    equal(count(drops), expected, "actors dropped")?;
    ensure!(executor.handle().table_is_whole(), "the table does not hold each mailbox once");
    executor.stop().await;
    equal(count(drops), expected, "actors dropped after the executor was stopped")
}
