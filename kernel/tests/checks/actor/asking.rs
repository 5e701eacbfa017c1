//! Asking: every asker is told, once, whatever becomes of the request.

use alloc::vec::Vec;
use core::time::Duration;

use super::{Dropped, Verdict, count, counter, ensure, equal, failed, start, unsuspended};
use crate::actor::stop::End;
use crate::actor::{Actor, Addr, AskError, Bound, Config, Context, Executor, Reply};
use crate::actor::{Receive, Request, SendError, WhenFull};
use crate::arch::atomic::{AtomicU64, Ordering};
use crate::{sched, time};

/// Answers numbers with their successors; keeps the reply of what is asked with `Later`.
struct Oracle {
    kept: Vec<Reply<Told>>,
    came_back: &'static AtomicU64,
}

impl Actor for Oracle {}

/// An answer whose loss would be noticed.
#[derive(Debug)]
struct Told(u64, #[expect(dead_code, reason = "counts when it is dropped")] Option<DebugDropped>);

struct DebugDropped(#[expect(dead_code, reason = "counts when it is dropped")] Dropped);

impl core::fmt::Debug for DebugDropped {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Dropped")
    }
}

struct Later;
struct Never;
/// Answer what was kept with this number.
struct Now(u64, &'static AtomicU64);

impl Receive<u64> for Oracle {
    type Reply = u64;

    fn receive(&mut self, number: u64, _: &mut Context<Self>) -> u64 {
        number + 1
    }
}

impl Receive<Request<Later, Told>> for Oracle {
    type Reply = ();

    fn receive(&mut self, request: Request<Later, Told>, _: &mut Context<Self>) {
        self.kept.push(request.reply);
    }
}

impl Receive<Request<Never, u64>> for Oracle {
    type Reply = ();

    fn receive(&mut self, _: Request<Never, u64>, _: &mut Context<Self>) {}
}

impl Receive<Now> for Oracle {
    type Reply = ();

    fn receive(&mut self, message: Now, _: &mut Context<Self>) {
        for reply in self.kept.drain(..) {
            let wanted = reply.is_wanted();
            if let Err(told) = reply.send(Told(message.0, Some(DebugDropped(Dropped(message.1))))) {
                self.came_back.fetch_add(1 + u64::from(wanted) * 1_000_000, Ordering::Relaxed);
                drop(told);
            }
        }
    }
}

fn oracle(executor: &Executor, came_back: &'static AtomicU64) -> Result<Addr<Oracle>, alloc::string::String> {
    executor.handle().spawn(Oracle { kept: Vec::new(), came_back }).map_err(failed)
}

pub(super) async fn requests_are_answered(work: u64) -> Verdict {
    let executor = start()?;
    let mut askers = Vec::new();
    for asker in 0..8 {
        let oracle = oracle(&executor, counter())?;
        let body = async move {
            for number in 0..work / 80 {
                let question = number * 8 + asker;
                match oracle.ask(question).await {
                    Ok(answer) if answer == question + 1 => {}
                    other => return Err(alloc::format!("asked {question}, answered {other:?}")),
                }
            }
            Ok(())
        };
        askers.push(sched::spawn(body).map_err(|error| alloc::format!("{error:?}"))?);
    }
    for asker in askers {
        asker.await.map_err(|error| alloc::format!("{error:?}"))??;
    }
    equal(executor.stop().await, 0, "messages left over")
}

pub(super) async fn an_answer_may_come_later(_work: u64) -> Verdict {
    let executor = start()?;
    let (came_back, drops) = (counter(), counter());
    let oracle = oracle(&executor, came_back)?;
    let answers: Vec<_> = (0..10).map(|_| oracle.ask(Later)).collect();
    oracle.send(Now(7, drops)).map_err(failed)?;
    for answer in answers {
        equal(answer.await.map_err(failed)?.0, 7, "an answer that came later")?;
    }
    equal(count(drops), 10, "answers dropped by who got them")?;
    // Given up before it is answered: the answer goes back, and is dropped once.
    drop(oracle.ask(Later));
    oracle.send(Now(8, drops)).map_err(failed)?;
    sched::out_of_work().await;
    equal(count(came_back), 1, "answers that came back")?;
    equal(count(drops), 11, "answers dropped")?;
    // Answered, and never looked at.
    let unread = oracle.ask(Later);
    oracle.send(Now(9, drops)).map_err(failed)?;
    sched::out_of_work().await;
    equal(count(drops), 11, "answers dropped before their asker gave up")?;
    drop(unread);
    equal(count(drops), 12, "answers dropped after it did")?;
    equal(count(came_back), 1, "answers that came back, later")?;
    equal(executor.stop().await, 0, "messages left over")
}

pub(super) async fn who_gets_no_answer_is_told(_work: u64) -> Verdict {
    const LIMIT: Duration = Duration::from_millis(3);
    let executor = start()?;
    let (came_back, drops) = (counter(), counter());
    let asked = oracle(&executor, came_back)?;
    equal(asked.ask(Never).await, Err(AskError::Unanswered), "an actor that does not answer")?;
    let begin = time::Instant::now();
    let late = asked.ask_within(LIMIT, Later).await.map(|told: Told| told.0);
    equal(late, Err(AskError::TimedOut), "an actor that answers too late")?;
    ensure!(begin.elapsed() >= LIMIT, "the limit was {:?}", begin.elapsed());
    equal(asked.ask_within(Duration::from_secs(60), 1_u64).await, Ok(2), "an answer in time")?;
    // What was kept for who waited no longer goes back.
    asked.send(Now(1, drops)).map_err(failed)?;
    sched::out_of_work().await;
    equal((count(came_back), count(drops)), (1, 1), "answers that came back, and were dropped")?;
    // The actor ends with a reply in its state, and with requests in its mail.
    let kept = asked.ask(Later);
    asked.send(End).map_err(failed)?;
    let behind = asked.ask(1_u64);
    equal(kept.await.map(|told| told.0), Err(AskError::Unanswered), "the state was dropped")?;
    let behind = behind.await;
    ensure!(
        matches!(behind, Err(AskError::Unanswered | AskError::Ended)),
        "a request behind the end: {behind:?}"
    );
    sched::out_of_work().await;
    equal(asked.ask(1_u64).await, Err(AskError::Ended), "an actor that has ended")?;
    match asked.try_ask(5_u64) {
        Err(SendError::Ended(message)) => equal(message, 5, "the message that came back")?,
        other => return Err(alloc::format!("asked an actor that has ended: {}", other.is_ok())),
    }
    let stopped = oracle(&executor, came_back)?;
    let kept = stopped.ask(Later);
    sched::out_of_work().await;
    executor.stop().await;
    equal(kept.await.map(|told| told.0), Err(AskError::Unanswered), "the executor was stopped")
}

/// Asks its neighbour, in the same mailbox, more than fits.
struct Pusher(Addr<Oracle>, &'static AtomicU64);

impl Actor for Pusher {}

impl Receive<()> for Pusher {
    type Reply = ();

    fn receive(&mut self, (): (), _: &mut Context<Self>) {
        for number in 0..10_u64 {
            if let Err(SendError::Full(message)) = self.0.try_ask(number) {
                self.1.fetch_add(u64::from(message == number), Ordering::Relaxed);
            }
        }
    }
}

pub(super) async fn a_full_mailbox_gives_the_question_back(_work: u64) -> Verdict {
    let bound = Bound::new(4, WhenFull::Refuse);
    let executor = Executor::start(&Config::default().bound(bound)).map_err(failed)?;
    let oracle = oracle(&executor, counter())?;
    let refused = unsuspended(async || {
        let refused = counter();
        let pusher = executor.handle().spawn_beside(oracle, Pusher(oracle, refused)).map_err(failed)?;
        pusher.send(()).map_err(failed)?;
        sched::out_of_work().await;
        Ok(count(refused))
    });
    equal(refused.await?, 6, "questions that came back")?;
    equal(executor.stop().await, 0, "messages left over")
}

/// Asks oracles, and adds up what they answer.
struct Curious {
    oracle: Addr<Oracle>,
    asked: u64,
    answered: &'static AtomicU64,
    failed: &'static AtomicU64,
    inside: bool,
    drops: &'static AtomicU64,
}

impl Actor for Curious {}

impl Curious {
    fn note(&mut self, result: Result<u64, AskError>) {
        match result {
            // One less than the answer was asked.
            Ok(answer) => self.answered.fetch_add(answer - 1, Ordering::Relaxed),
            Err(_) => self.failed.fetch_add(1, Ordering::Relaxed),
        };
    }
}

impl Receive<u64> for Curious {
    type Reply = bool;

    fn receive(&mut self, number: u64, context: &mut Context<Self>) -> bool {
        let alone = !core::mem::replace(&mut self.inside, true);
        self.asked += 1;
        let dropped = Dropped(self.drops);
        let then = move |curious: &mut Self, result, context: &mut Context<Self>| {
            let _dropped = dropped;
            curious.note(result);
            if core::mem::replace(&mut curious.inside, true) || !context.address().is_alive() {
                curious.note(Err(AskError::Ended));
            }
            curious.inside = false;
        };
        let asked = context.ask(self.oracle, number, then);
        self.inside = false;
        alone && asked.is_ok()
    }
}

/// Asks what is not answered before it has ended.
impl Receive<Later> for Curious {
    type Reply = bool;

    fn receive(&mut self, _: Later, context: &mut Context<Self>) -> bool {
        let dropped = Dropped(self.drops);
        context.end();
        let then = move |curious: &mut Self, _: Result<Told, AskError>, _: &mut Context<Self>| {
            let _dropped = dropped;
            curious.note(Err(AskError::Ended));
        };
        context.ask(self.oracle, Later, then).is_ok()
    }
}

pub(super) async fn an_actor_asks_another(work: u64) -> Verdict {
    let executor = start()?;
    let (came_back, answered, unanswered, drops) = (counter(), counter(), counter(), counter());
    let oracle = oracle(&executor, came_back)?;
    let curious = || Curious { oracle, asked: 0, answered, failed: unanswered, inside: false, drops };
    let asker = executor.handle().spawn(curious()).map_err(failed)?;
    let asks = (work / 100).max(10);
    for number in 0..asks {
        equal(asker.ask(number).await, Ok(true), "whether it was asked")?;
    }
    sched::out_of_work().await;
    equal(count(answered), asks * (asks - 1) / 2, "what was answered")?;
    equal((count(unanswered), count(drops)), (0, asks), "asks that failed, and what was done")?;
    // What comes for one that has ended is dropped, and not done.
    equal(asker.ask(Later).await, Ok(true), "whether it was asked")?;
    oracle.send(Now(1, drops)).map_err(failed)?;
    sched::out_of_work().await;
    equal((count(unanswered), count(drops)), (0, asks + 2), "what was dropped, with the answer")?;
    // One that has ended does not answer.
    let asker = executor.handle().spawn(curious()).map_err(failed)?;
    oracle.send(End).map_err(failed)?;
    sched::out_of_work().await;
    equal(asker.ask(1_u64).await, Ok(true), "whether it was asked")?;
    sched::out_of_work().await;
    equal((count(unanswered), count(drops)), (1, asks + 3), "asks that failed, and what was done")?;
    equal(executor.stop().await, 0, "messages left over")
}
