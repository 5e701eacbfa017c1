//! Actors as children: they are started again, found under their names, and none outlives its supervisor.

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;

use magpie::actor::{
    Actor, Addr, Bound, Config, Context, Executor, ExecutorHandle, Hook, Receive, WhenFull, stop,
};
use magpie::supervise::{Child, Supervisor};
use magpie::{registry, sched, time};
use magpie_tests::{Failure, HANGS_AFTER, HeapExhauster, Outcome, ensure, ensure_eq, kernel_test};

use super::scene::{Order, Scene, Told, patient};
use crate::ways::{Way, linger};

/// An actor with a name.
struct Clerk(Arc<AtomicU64>);

impl Actor for Clerk {
    fn started() -> Option<Hook<Self>> {
        Some(|clerk, context| {
            clerk.0.fetch_add(1, Ordering::Relaxed);
            // Who does not get it is not found, and the test says so.
            let _ = registry::register("supervised clerk", context.address());
        })
    }
}

impl Receive<Way> for Clerk {
    type Reply = u64;

    fn receive(&mut self, way: Way, _: &mut Context<Self>) -> u64 {
        way.crash()
    }
}

/// The clerk of that life.
async fn clerk(lives: &AtomicU64, life: u64) -> Result<Addr<Clerk>, Failure> {
    let found = async {
        loop {
            if lives.load(Ordering::Relaxed) >= life
                && let Ok(clerk) = registry::find("supervised clerk")
            {
                return clerk;
            }
            sched::yield_now().await;
        }
    };
    time::background_timeout(HANGS_AFTER, found).await.map_err(|_| Failure("no clerk was found".into()))
}

/// Actors are started again, and found under their name.
async fn actors(crash: impl Fn(u64, Addr<Clerk>) -> bool) -> Outcome {
    lives_of(|executor, make| Child::actor("clerk", executor, make), crash).await
}

async fn lives_of(
    child: impl Fn(&ExecutorHandle, Box<dyn Fn() -> Clerk + Send + Sync>) -> Child,
    crash: impl Fn(u64, Addr<Clerk>) -> bool,
) -> Outcome {
    let executor = Executor::start(&Config::default().own_mailboxes(1))?;
    let lives = Arc::new(AtomicU64::new(0));
    let counted = lives.clone();
    let make = Box::new(move || Clerk(counted.clone()));
    let supervisor = patient(Supervisor::one_for_one()).child(child(executor.handle(), make)).start()?;
    for life in 1..20 {
        let clerk = clerk(&lives, life).await?;
        ensure!(crash(life, clerk), "it could not be told to end");
    }
    let last = clerk(&lives, 20).await?;
    supervisor.stop().await?;
    ensure!(!last.is_alive(), "it lives on without its supervisor");
    ensure_eq!(lives.load(Ordering::Relaxed), 20, "lives");
    executor.stop().await;
    Ok(())
}

kernel_test! {
    async fn actors_that_end_are_started_again() -> Outcome {
        actors(|_, clerk| clerk.send(stop::End).is_ok()).await
    }
}

kernel_test! {
    #[machine("isolation")]
    async fn actors_that_crash_are_started_again() -> Outcome {
        actors(|life, clerk| clerk.send(Way::ALL[life as usize % 3]).is_ok()).await
    }
}

kernel_test! {
    /// Each has the one mailbox alone, and leaves it full.
    #[machine("isolation")]
    async fn bounded_actors_that_crash_are_started_again() -> Outcome {
        lives_of(
            |executor, make| Child::bounded_actor("clerk", executor, Bound::new(2, WhenFull::Refuse), make),
            |life, clerk| {
                let is_told = clerk.send(Way::ALL[life as usize % 3]).is_ok();
                while clerk.send(Way::ALL[0]).is_ok() {}
                is_told
            },
        )
        .await
    }
}

/// An actor that computes for ever, on each core and for each life.
struct Hog {
    life: u64,
    beats: Arc<[AtomicU64; 3]>,
}

impl Actor for Hog {
    fn started() -> Option<Hook<Self>> {
        Some(|hog, context| {
            // In its turn it is found by the test.
            let _ = registry::register("hog", context.address());
            hog.beats[hog.life as usize].store(1, Ordering::Relaxed);
        })
    }
}

struct Spin;

impl Receive<Spin> for Hog {
    type Reply = ();

    fn receive(&mut self, _: Spin, _: &mut Context<Self>) {
        loop {
            self.beats[self.life as usize].fetch_add(1, Ordering::Relaxed);
        }
    }
}

kernel_test! {
    /// An actor that does not end when it is asked to is killed, and its successor is not made before it has ended.
    #[machine("preemption")]
    async fn a_killed_actor_has_ended_before_its_successor_is_made() -> Outcome {
        let executor = Executor::start(&Config::default())?;
        let beats = Arc::new([const { AtomicU64::new(0) }; 3]);
        let (lives, went_on) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let make = {
            let (beats, went_on) = (beats.clone(), went_on.clone());
            move || {
                let life = lives.fetch_add(1, Ordering::Relaxed);
                if let Some(last) = (life as usize).checked_sub(1) {
                    let before = beats[last].load(Ordering::Relaxed);
                    linger();
                    went_on.fetch_add(u64::from(beats[last].load(Ordering::Relaxed) != before), Ordering::Relaxed);
                }
                Hog { life, beats: beats.clone() }
            }
        };
        let mut scene = Scene::new()?;
        let supervisor = patient(Supervisor::one_for_all())
            .child(Child::actor("hog", executor.handle(), make).within(Duration::from_millis(3)))
            .child(scene.worker(1))
            .start()?;
        for life in 0..3 {
            scene.expect(&[Told::Began(1)]).await?;
            let hog = async {
                loop {
                    match registry::find::<Addr<Hog>>("hog") {
                        Ok(hog) if beats[life].load(Ordering::Relaxed) == 1 => return hog,
                        _ => sched::yield_now().await,
                    }
                }
            };
            let hog = time::background_timeout(HANGS_AFTER, hog).await.map_err(|_| "a hog was not started")?;
            hog.send(Spin)?;
            while beats[life].load(Ordering::Relaxed) < 2 {
                sched::yield_now().await;
            }
            if life < 2 {
                scene.order(1, Order::Fail)?;
            }
        }
        let stopped = time::background_timeout(HANGS_AFTER, supervisor.stop()).await;
        ensure!(matches!(stopped, Ok(Ok(()))), "a supervisor whose child is a hog does not stop: {stopped:?}");
        ensure!(registry::find::<Addr<Hog>>("hog").is_err(), "the last hog lives");
        ensure_eq!(went_on.load(Ordering::Relaxed), 0, "lives that went on beside their successors");
        executor.stop().await;
        Ok(())
    }
}

kernel_test! {
    /// A supervisor is killed while memory is used up: so are the actors that are its children, for which memory was kept.
    #[machine("isolation")]
    async fn actors_of_a_killed_supervisor_are_killed_without_memory() -> Outcome {
        const CHILDREN: usize = 16;
        let executor = Executor::start(&Config::default())?;
        let lives = Arc::new(AtomicU64::new(0));
        let mut supervisor = patient(Supervisor::one_for_one());
        for _ in 0..CHILDREN {
            let lives = lives.clone();
            supervisor = supervisor.child(Child::actor("idle", executor.handle(), move || Idle(lives.clone())));
        }
        let supervisor = supervisor.start()?;
        let all = async {
            while lives.load(Ordering::Acquire) < CHILDREN as u64 {
                sched::yield_now().await;
            }
        };
        time::background_timeout(HANGS_AFTER, all).await.map_err(|_| "not all were started")?;
        let mut exhauster = HeapExhauster::everything(16);
        exhauster.take_more(16);
        supervisor.process().kill();
        // Until all is over that could take memory, and gives none back.
        while executor.handle().live_actors() > 0 && !supervisor.process().is_done() {
            exhauster.take_more(16);
            sched::yield_now().await;
        }
        let all_ended = time::background_timeout(HANGS_AFTER, executor.all_ended()).await;
        drop(exhauster);
        ensure!(all_ended.is_ok(), "{} actors outlive their supervisor", executor.handle().live_actors());
        executor.stop().await;
        Ok(())
    }
}

/// Says that it lives.
struct Idle(Arc<AtomicU64>);

impl Actor for Idle {
    fn started() -> Option<Hook<Self>> {
        Some(|idle, _| _ = idle.0.fetch_add(1, Ordering::AcqRel))
    }
}
