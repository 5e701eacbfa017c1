//! Processes as children: each strategy, each kind of child, delays, kills, and children that come and go.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::time::Duration;

use magpie::internals::mem::heap::HEAP;
use magpie::supervise::{Backoff, Child, Supervisor};
use magpie::time::{self, Instant};
use magpie::watch::Exit;
use magpie::{registry, sched};
use magpie_tests::{HANGS_AFTER, ensure, ensure_eq, kernel_test};

use super::scene::{HOUR, Order, Scene, Told, end_of, patient, until};
use crate::ways::Way;

kernel_test! {
    async fn each_strategy_starts_whom_it_names() -> Outcome {
        use Told::Ended;
        let cases: [(Supervisor, &[Told], &[u32]); 3] = [
            (Supervisor::one_for_one(), &[], &[1]),
            (Supervisor::one_for_all(), &[Ended(2), Ended(0)], &[0, 1, 2]),
            (Supervisor::rest_for_one(), &[Ended(2)], &[1, 2]),
        ];
        for (supervisor, ended, begun) in cases {
            let mut scene = Scene::new()?;
            let supervisor = (0..3).fold(patient(supervisor), |all, number| all.child(scene.worker(number))).start()?;
            scene.expect_begins(&[0, 1, 2]).await?;
            for order in [Order::Fail, Order::Return, Order::Fail] {
                scene.order(1, order)?;
                scene.expect(ended).await?;
                scene.expect_begins(begun).await?;
            }
            ensure_eq!(supervisor.children().await?.iter().map(|child| child.restarts).sum::<u64>(), 3, "restarts");
            supervisor.stop().await?;
            scene.expect(&[Ended(2), Ended(1), Ended(0)]).await?;
            scene.nothing_more()?;
        }
        Ok(())
    }
}

kernel_test! {
    async fn each_kind_is_restarted_as_it_was_declared() -> Outcome {
        for failure in [Order::Fail, Order::Return] {
            let mut scene = Scene::new()?;
            let supervisor = patient(Supervisor::one_for_one())
                .child(scene.worker(0))
                .child(scene.worker(1).transient())
                .child(scene.worker(2).temporary())
                .start()?;
            scene.expect_begins(&[0, 1, 2]).await?;
            let is_failure = matches!(failure, Order::Fail);
            scene.order(2, failure)?;
            until(&supervisor, |children| children.len() == 2).await?;
            scene.order(1, failure)?;
            if is_failure {
                scene.expect_begins(&[1]).await?;
            } else {
                until(&supervisor, |children| children.len() == 2 && !children[1].runs).await?;
            }
            scene.order(0, failure)?;
            scene.expect_begins(&[0]).await?;
            supervisor.stop().await?;
            let ended = if is_failure { &[Told::Ended(1), Told::Ended(0)][..] } else { &[Told::Ended(0)] };
            scene.expect(ended).await?;
            scene.nothing_more()?;
        }
        Ok(())
    }
}

kernel_test! {
    /// The inner one gives up, the outer one starts it again, until it gives up, too.
    async fn who_gives_up_tells_its_own() -> Outcome {
        let mut scene = Scene::new()?;
        let inner = Supervisor::one_for_one()
            .backoff(Backoff::NONE)
            .restarts(2, HOUR)
            .child(scene.worker(0))
            .child(scene.worker(1));
        let outer = Supervisor::one_for_one()
            .backoff(Backoff::NONE)
            .restarts(1, HOUR)
            .child(scene.worker(2))
            .child(Child::supervisor("inner", inner))
            .start()?;
        scene.expect_begins(&[0, 1, 2]).await?;
        for is_last in [false, true] {
            for _ in 0..2 {
                scene.order(0, Order::Fail)?;
                scene.expect_begins(&[0]).await?;
            }
            scene.order(0, Order::Fail)?;
            scene.expect(&[Told::Ended(1)]).await?;
            if is_last {
                scene.expect(&[Told::Ended(2)]).await?;
            } else {
                scene.expect_begins(&[0, 1]).await?;
                ensure!(outer.children().await?.iter().any(|child| child.name == "inner" && child.restarts == 1), "restarts");
            }
        }
        let exit = end_of(&outer).await?;
        ensure!(exit == Exit::Failed || exit == Exit::Gone && outer.process().has_failed(), "it ended as {exit:?}");
        ensure!(outer.start_child(scene.worker(3)).await.is_err(), "one that has given up has taken a child");
        scene.nothing_more()
    }
}

kernel_test! {
    /// A supervisor with a name that is started anew gets it at once: its end, and no other, is a restart.
    async fn a_named_supervisor_is_restarted_once_for_each_end() -> Outcome {
        const ROUNDS: u32 = 200;
        let mut scene = Scene::new()?;
        let inner = Supervisor::one_for_one().named("inner").restarts(0, HOUR).child(scene.worker(0));
        let outer = patient(Supervisor::one_for_one()).child(Child::supervisor("inner", inner)).start()?;
        for round in 0..ROUNDS {
            scene.expect_begins(&[0]).await?;
            let restarts = outer.children().await?.iter().map(|child| child.restarts).sum::<u64>();
            ensure_eq!(restarts, u64::from(round), "restarts");
            scene.order(0, Order::Fail)?;
        }
        scene.expect_begins(&[0]).await?;
        outer.stop().await?;
        scene.expect(&[Told::Ended(0)]).await?;
        scene.nothing_more()
    }
}

kernel_test! {
    /// Each delay is in the range that is declared, and no restart comes before its delay is over.
    async fn delays_grow_and_begin_anew() -> Outcome {
        let milliseconds = Duration::from_millis;
        let backoff = Backoff::new(milliseconds(4), milliseconds(20));
        let grows = (backoff.reset_after(HOUR), [4, 8, 16, 20, 20]);
        let does_not = (backoff.reset_after(Duration::ZERO), [4; 5]);
        for (backoff, delays) in [grows, does_not] {
            let mut scene = Scene::new()?;
            let supervisor =
                Supervisor::one_for_one().restarts(1000, HOUR).backoff(backoff).child(scene.worker(0)).start()?;
            scene.expect_begins(&[0]).await?;
            for whole in delays.map(milliseconds) {
                let before = Instant::now();
                scene.order(0, Order::Fail)?;
                scene.expect_begins(&[0]).await?;
                let took = before.elapsed();
                let delay = supervisor.children().await?.first().map_or(Duration::ZERO, |child| child.delay);
                ensure!(delay * 2 >= whole && delay <= whole, "a delay of {delay:?} of {whole:?}");
                ensure!(took >= delay, "started after {took:?} in place of {delay:?}");
            }
            supervisor.stop().await?;
        }
        Ok(())
    }
}

kernel_test! {
    /// One that takes no notice is killed when its time is over; nobody else is.
    async fn who_does_not_end_is_killed() -> Outcome {
        const LIMIT: Duration = Duration::from_millis(20);
        let mut scene = Scene::new()?;
        let supervisor = Supervisor::one_for_one()
            .child(scene.worker(0))
            .child(scene.worker(1).within(LIMIT))
            .child(scene.worker(2))
            .start()?;
        scene.expect_begins(&[0, 1, 2]).await?;
        scene.order(1, Order::Sulk)?;
        let before = Instant::now();
        supervisor.stop().await?;
        ensure!(before.elapsed() >= LIMIT, "it had no time to end");
        scene.expect(&[Told::Ended(2)]).await?;
        let mut next = scene.next().await?;
        if next == Told::Dropped(1) {
            // It waited already; killed in its turn, it would not have told that.
            next = scene.next().await?;
        }
        ensure_eq!(next, Told::Ended(0), "what was told");
        scene.nothing_more()
    }
}

kernel_test! {
    #[machine("preemption")]
    async fn who_computes_for_ever_is_killed() -> Outcome {
        const LIMIT: Duration = Duration::from_millis(20);
        for second_is_hog in [true, false] {
            let mut scene = Scene::new()?;
            let second = scene.worker(2);
            let supervisor = patient(Supervisor::one_for_all())
                .child(scene.worker(0))
                .child(scene.worker(1).within(LIMIT))
                .child(if second_is_hog { second.within(LIMIT) } else { second })
                .start()?;
            scene.expect_begins(&[0, 1, 2]).await?;
            for _ in 0..3 {
                scene.order(1, Order::Hog)?;
                if second_is_hog {
                    scene.order(2, Order::Hog)?;
                }
                scene.order(0, Order::Fail)?;
                if !second_is_hog {
                    scene.expect(&[Told::Ended(2)]).await?;
                }
                let dropped = [Told::Dropped(1), Told::Dropped(2)];
                scene.expect_begins_but(&[0, 1, 2], &dropped[..1 + usize::from(second_is_hog)]).await?;
            }
            // All wait by now, and only the first may take as long as it likes.
            supervisor.stop().await?;
            let mut told = Vec::new();
            while let Some(end) = scene.told.try_receive() {
                told.push(end);
            }
            ensure_eq!(told.len(), 3, "how many have ended; {:?}", told);
            ensure_eq!(told[2], Told::Ended(0), "who ends last");
            let ends = told[0] == Told::Ended(2) || second_is_hog && told[0] == Told::Dropped(2);
            ensure!(ends, "what was told first: {:?}", told[0]);
        }
        Ok(())
    }
}

kernel_test! {
    #[machine("isolation")]
    async fn who_crashes_is_started_again() -> Outcome {
        let mut scene = Scene::new()?;
        let supervisor = patient(Supervisor::one_for_one())
            .child(scene.worker(0).transient())
            .child(scene.worker(1))
            .start()?;
        scene.expect_begins(&[0, 1]).await?;
        for round in 0..30 {
            scene.order(round % 2, Order::Crash(Way::ALL[round as usize % 3]))?;
            scene.expect_begins(&[round % 2]).await?;
        }
        supervisor.stop().await?;
        scene.expect(&[Told::Ended(1), Told::Ended(0)]).await?;
        scene.nothing_more()
    }
}

kernel_test! {
    /// Children come and go at run time, and leave no memory.
    async fn children_come_and_go() -> Outcome {
        const ROUNDS: u32 = 200;
        let mut scene = Scene::new()?;
        let supervisor = patient(Supervisor::one_for_one()).start()?;
        let mut before = 0;
        for round in 0..ROUNDS {
            let one = supervisor.start_child(scene.worker(0)).await?;
            let other = supervisor.start_child(scene.worker(1).transient()).await?;
            scene.expect_begins(&[0, 1]).await?;
            scene.order(0, Order::Fail)?;
            scene.expect_begins(&[0]).await?;
            scene.order(1, Order::Return)?;
            until(&supervisor, |children| children.len() == 1).await?;
            ensure!(supervisor.terminate(one).await?, "one was forgotten");
            ensure!(!supervisor.terminate(other).await?, "one was kept that was over");
            scene.expect(&[Told::Ended(0)]).await?;
            if round == ROUNDS / 2 {
                sched::out_of_work().await;
                before = HEAP.usage().0;
            }
        }
        sched::out_of_work().await;
        let grown = HEAP.usage().0.saturating_sub(before);
        ensure!(grown < 16 * 1024, "{grown} bytes more are in use after {} children", ROUNDS);
        supervisor.stop().await?;
        scene.nothing_more()
    }
}

kernel_test! {
    /// With a supervisor its children end, and theirs, whatever ends it.
    async fn children_of_a_killed_supervisor_are_killed() -> Outcome {
        for _ in 0..20 {
            let mut scene = Scene::new()?;
            let inner = Supervisor::one_for_one().child(scene.worker(0)).child(scene.worker(1));
            let outer = Supervisor::one_for_one().child(Child::supervisor("inner", inner)).child(scene.worker(2)).start()?;
            scene.expect_begins(&[0, 1, 2]).await?;
            scene.order(0, Order::Sulk)?;
            outer.process().kill();
            let nobody = async {
                // Each name is gone with its worker, whether that waited when it was killed or not.
                while registry::names().any(|name| name.starts_with("worker")) {
                    sched::yield_now().await;
                }
            };
            ensure!(time::background_timeout(HANGS_AFTER, nobody).await.is_ok(), "a child lives on");
            while let Some(told) = scene.told.try_receive() {
                ensure!(matches!(told, Told::Dropped(_)), "a child was told to end, or began: {told:?}");
            }
            sched::out_of_work().await;
        }
        Ok(())
    }
}

/// What panics when it is dropped.
struct Brittle(Box<u64>);

impl Drop for Brittle {
    fn drop(&mut self) {
        assert!(*self.0 == 0, "on purpose");
    }
}

kernel_test! {
    /// Neither what makes a child nor its destructor ends the supervisor.
    #[machine("isolation")]
    async fn what_makes_a_child_may_crash() -> Outcome {
        let mut scene = Scene::new()?;
        let supervisor = patient(Supervisor::one_for_one()).child(scene.worker(0)).start()?;
        scene.expect_begins(&[0]).await?;
        for _ in 0..10 {
            let brittle = Brittle(Box::new(7));
            let child = Child::process("brittle", move |_| {
                assert!(*brittle.0 == 0, "on purpose");
                core::future::pending::<()>()
            });
            let child = supervisor.start_child(child).await?;
            until(&supervisor, |children| children.iter().any(|it| it.id == child && it.restarts > 2)).await?;
            ensure!(supervisor.terminate(child).await?, "it was forgotten");
        }
        ensure_eq!(supervisor.children().await?.len(), 1, "children");
        supervisor.stop().await?;
        scene.expect(&[Told::Ended(0)]).await
    }
}
