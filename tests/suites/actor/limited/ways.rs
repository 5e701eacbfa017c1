//! Every way that a message can come.

use core::time::Duration;

use magpie::actor::{Actor, Addr, Context, Limits, Receive, Signal};
use magpie::group::{Group, Publish, Subscribe};
use magpie::sched;
use magpie::time::Instant;
use magpie::watch::{Ended, link};
use magpie_tests::{HANGS_AFTER, ensure, ensure_eq, kernel_test};

use super::scene::{Keeper, Report, crowded, until};

/// Counts what reaches it, by the way it came.
#[derive(Default)]
struct Reached {
    plain: u64,
    ended: u64,
    answers: u64,
    other: Option<Addr<Keeper>>,
}

impl Actor for Reached {}

#[derive(Clone, Copy)]
struct Plain;

impl Receive<Plain> for Reached {
    type Reply = ();

    fn receive(&mut self, _: Plain, _: &mut Context<Self>) {
        self.plain += 1;
    }
}

impl Receive<Ended> for Reached {
    type Reply = ();

    fn receive(&mut self, _: Ended, _: &mut Context<Self>) {
        self.ended += 1;
    }
}

/// Have it ask another.
struct Ask;

impl Receive<Ask> for Reached {
    type Reply = bool;

    fn receive(&mut self, _: Ask, context: &mut Context<Self>) -> bool {
        let Some(other) = self.other else { return false };
        context.ask(other, Report, |reached, answer, _| reached.answers += u64::from(answer.is_ok())).is_ok()
    }
}

impl Receive<Report> for Reached {
    type Reply = [u64; 3];

    fn receive(&mut self, _: Report, _: &mut Context<Self>) -> [u64; 3] {
        [self.plain, self.ended, self.answers]
    }
}

static LINE: Signal<Plain> = Signal::new();

kernel_test! {
    /// By whatever way a message comes, it reaches one that is counted as it reaches others, once, and is counted.
    async fn all_ways_lead_there() -> Outcome {
        let executor = crowded()?;
        let handle = executor.handle();
        let other = handle.spawn_limited(Keeper::default(), Limits::new())?;
        let reached = handle.spawn_limited(Reached { other: Some(other), ..Reached::default() }, Limits::new())?;
        let report = || reached.ask(Report);
        reached.send(Plain)?;
        reached.recipient().send(Plain)?;
        reached.send_wait(Plain).await.map_err(|_| "it was not sent")?;
        Addr::send_to_all(&[reached, reached], &Plain)?;
        reached.send_after(Duration::from_micros(100), Plain)?;
        reached.send_at(Instant::now() + Duration::from_micros(200), Plain)?;
        let group = handle.spawn(Group::<Plain>::new())?;
        group.ask(Subscribe(reached.recipient())).await??;
        ensure_eq!(group.ask(Publish(Plain)).await?.reached, 1, "whom a group has reached");
        LINE.send_to(reached.recipient(), Plain);
        LINE.raise();
        let mut plain = 9;
        for _ in 0..3 {
            // An end, told of as a watch tells of one, in front of all other mail.
            let dies = handle.spawn_limited(Keeper::default(), Limits::new())?;
            dies.watch(&reached.recipient())?;
            dies.kill()?;
        }
        ensure!(reached.ask(Ask).await?, "it could not ask");
        let deadline = Instant::now() + HANGS_AFTER;
        let mut asked = 2;
        loop {
            let seen = report().await?;
            asked += 1;
            if seen == [plain, 3, 1] {
                break;
            }
            ensure!(Instant::now() < deadline, "{seen:?} have come");
            sched::yield_now().await;
        }
        let beats = reached.send_interval(Duration::from_micros(500), Plain)?;
        while plain < 12 {
            plain = report().await?[0];
            asked += 1;
            ensure!(Instant::now() < deadline, "{plain} have come");
            sched::yield_now().await;
        }
        beats.cancel();
        let [plain, ended, answers] = report().await?;
        let counted = reached.inspect().and_then(|seen| seen.messages).ok_or("it is not counted")?;
        // Those that came after the report, if one did.
        let all = plain + ended + answers + asked;
        ensure!(counted == all || counted == all + 1, "{counted} were counted, {all} have come");
        // What is linked to it ends it, and it ends what is linked to it.
        let linked = handle.spawn_limited(Keeper::default(), Limits::new())?;
        link(&linked, &reached)?;
        linked.kill()?;
        until(|| !reached.is_alive() && !linked.is_alive(), || "a link does not end it".into()).await?;
        executor.stop().await;
        Ok(())
    }
}
