//! Limits for one actor: one in an executor of its own, which is started under a limit for memory and in a share of CPU time, with a mailbox
//! that is bounded. Whatever it does, others have memory, time and room; and it is started anew within the same limits.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::hint::{black_box, spin_loop};
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use core::time::Duration;

use magpie::actor::{Actor, Addr, Bound, Config, Context, Executor, Hook, Receive, SendError, WhenFull};
use magpie::mem::MemoryLimit;
use magpie::registry;
use magpie::sched::{self, CpuShare, Spawn};
use magpie::supervise::{Child, Supervisor};
use magpie::time;
use magpie_tests::{Failure, HANGS_AFTER, ensure, ensure_eq, kernel_test};

const LIMIT: usize = 256 * 1024;
const ROOM: u32 = 20;

struct Hog {
    kept: Vec<Vec<u8>>,
    is_named: bool,
}

impl Hog {
    fn new(is_named: bool) -> Self {
        Self { kept: Vec::new(), is_named }
    }
}

impl Actor for Hog {
    fn started() -> Option<Hook<Self>> {
        Some(|hog, context| {
            if hog.is_named {
                // Who does not get it is not found, and the test says so.
                let _ = registry::register("a hog alone", context.address());
            }
        })
    }
}

/// Keep so many bytes. Whether there was memory.
struct Keep(usize);

impl Receive<Keep> for Hog {
    type Reply = bool;

    fn receive(&mut self, Keep(bytes): Keep, _: &mut Context<Self>) -> bool {
        let mut block = Vec::new();
        let is_there = self.kept.try_reserve(1).is_ok() && block.try_reserve_exact(bytes).is_ok();
        if is_there {
            block.push(1);
            self.kept.push(block);
        }
        is_there
    }
}

/// Take memory for ever, and do not take no for an answer.
struct Devour;

impl Receive<Devour> for Hog {
    type Reply = ();

    fn receive(&mut self, _: Devour, _: &mut Context<Self>) {
        loop {
            self.kept.push(Vec::from(*Box::new(black_box([1_u8; 500]))));
        }
    }
}

impl Receive<Arc<AtomicBool>> for Hog {
    type Reply = ();

    fn receive(&mut self, ends: Arc<AtomicBool>, _: &mut Context<Self>) {
        while !ends.load(Ordering::Acquire) {
            spin_loop();
        }
    }
}

async fn hog() -> Result<Addr<Hog>, Failure> {
    let found = async {
        loop {
            match registry::find("a hog alone") {
                Ok(hog) => return hog,
                Err(_) => sched::yield_now().await,
            }
        }
    };
    time::background_timeout(HANGS_AFTER, found).await.map_err(|_| Failure("no hog was found".into()))
}

kernel_test! {
    #[machine("isolation")]
    async fn one_actor_has_limits_of_its_own() -> Outcome {
        let limit = MemoryLimit::new(LIMIT).map_err(|error| Failure(alloc::format!("no limit: {error}")))?;
        let share = CpuShare::percent(20)?;
        let config = Config::default().workers(1).mailboxes(1).own_mailboxes(1);
        // What is started under a limit and in a share has both.
        let alone = share.start(Spawn::new().memory(&limit), async move { Executor::start(&config) })?.await??;
        let others = Executor::start(&Config::default())?;
        let neighbour = others.handle().spawn(Hog::new(false))?;
        let lives = Arc::new(AtomicU64::new(0));
        let counted = lives.clone();
        let bound = Bound::new(ROOM, WhenFull::Refuse);
        let child = Child::bounded_actor("hog", alone.handle(), bound, move || {
            counted.fetch_add(1, Ordering::Relaxed);
            Hog::new(true)
        });
        let supervisor =
            Supervisor::one_for_one().restarts(10, Duration::from_secs(3600)).child(child.transient()).start()?;

        for life in 1..=3 {
            // Memory: what can be refused is, and others have some.
            let first = hog().await?;
            let mut kept = 0;
            while first.ask(Keep(4000)).await? {
                kept += 4000;
            }
            ensure!(life > 1 || kept > LIMIT / 2, "it could keep {kept} bytes of its limit");
            ensure!(limit.most_used() <= LIMIT, "{} bytes were in use", limit.most_used());
            ensure!(neighbour.ask(Keep(4 * LIMIT)).await?, "its neighbour was refused memory");

            // Time: it goes on for long, and is put aside again and again; its neighbour answers.
            let (before, ends) = (share.usage().put_aside, Arc::new(AtomicBool::new(false)));
            first.send(ends.clone())?;
            // Room: it has no more than its bound. What its worker takes in hand before it is suspended, or aside, counts no more.
            let mut accepted = 0;
            let full = loop {
                match first.send(Keep(1)) {
                    Ok(_) => accepted += 1,
                    Err(error) => break error.without_message(),
                }
                ensure!(accepted < 100 * ROOM, "it has no bound");
            };
            ensure!(matches!(full, SendError::Full(_)), "it is {full}");
            let is_aside = async {
                while share.usage().put_aside < before + 5 {
                    ensure!(neighbour.ask(Keep(1)).await?, "its neighbour was refused memory");
                    sched::yield_now().await;
                }
                Ok(())
            };
            let is_aside = time::background_timeout(HANGS_AFTER, is_aside).await;
            is_aside.map_err(|_| Failure("it is not put aside".into()))??;
            ends.store(true, Ordering::Release);

            // What cannot be refused ends it alone, and its next life has the same limits.
            ensure_eq!(lives.load(Ordering::Relaxed), life, "lives");
            while let Err(error) = first.send(Devour) {
                // Its mailbox is full still, or it has failed of what waited there.
                if !matches!(error.without_message(), SendError::Full(_)) {
                    break;
                }
                sched::yield_now().await;
            }
            let has_ended = async {
                while first.is_alive() {
                    sched::yield_now().await;
                }
            };
            time::background_timeout(HANGS_AFTER, has_ended).await.map_err(|_| "it does not end of its limit")?;
        }
        let last = hog().await?;
        ensure!(!last.ask(Keep(LIMIT)).await?, "its last life has no limit");
        ensure!(neighbour.is_alive(), "its neighbour has ended, too");
        supervisor.stop().await?;
        alone.stop().await;
        others.stop().await;
        Ok(())
    }
}
