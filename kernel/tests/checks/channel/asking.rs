//! Processes that are asked: every asker is told.

use alloc::vec::Vec;
use core::time::Duration;

use super::ended;
use crate::actor::checks::{Verdict, equal, failed};
use crate::channel::{AskError, ProcessMailbox, Reply, Request, SendError};
use crate::sched;

const LIMIT: Duration = Duration::from_millis(3);

pub(super) async fn a_process_answers(work: u64) -> Verdict {
    let mut questions = ProcessMailbox::<Request<u64, u64>>::new(100).map_err(failed)?;
    let to = questions.address();
    let oracle = sched::spawn(async move {
        // Every other one is answered with the next.
        let mut kept: Vec<Reply<u64>> = Vec::new();
        let mut answered = 0;
        while let Some(Request { message, reply }) = questions.receive().await {
            kept.push(reply);
            if message % 2 == 1 {
                answered += kept.len() as u64;
                kept.drain(..).for_each(|reply| _ = reply.send(message));
            }
        }
        answered
    });
    let oracle = oracle.map_err(failed)?;
    for number in (0..work / 10).step_by(2) {
        let (even, odd) = (to.ask(number), to.ask(number + 1));
        equal(odd.await, Ok(number + 1), "the answer to an odd number")?;
        equal(even.await, Ok(number + 1), "the answer to an even one")?;
    }
    equal(to.ask_within(LIMIT, 0).await, Err(AskError::TimedOut), "one that is kept")?;
    drop(to);
    oracle.await.map_err(ended)?;
    Ok(())
}

pub(super) async fn who_gets_no_answer_is_told(_work: u64) -> Verdict {
    let mut questions = ProcessMailbox::<Request<u64, u64>>::new(2).map_err(failed)?;
    let to = questions.address();
    let (first, second) = (to.ask(1), to.ask(2));
    equal(to.ask(3).await, Err(AskError::Full), "a third")?;
    match to.try_ask(4) {
        Err(SendError::Full(message)) => equal(message, 4, "the message that came back")?,
        _ => return Err("a full mailbox accepted a request".into()),
    }
    drop(questions.try_receive());
    equal(first.await, Err(AskError::Unanswered), "a request that was dropped")?;
    drop(questions);
    equal(second.await, Err(AskError::Unanswered), "a request in a mailbox that was dropped")?;
    equal(to.ask(5).await, Err(AskError::Ended), "a mailbox that is gone")?;
    Ok(())
}
