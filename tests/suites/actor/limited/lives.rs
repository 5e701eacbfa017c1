//! What ends, in whatever way, and what comes after it under the same limit.

use alloc::vec::Vec;
use core::hint::black_box;
use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;

use magpie::actor::{Actor, Addr, Context, Hook, Limits, Receive};
use magpie::mem::MemoryLimit;
use magpie::supervise::{Child, Supervisor};
use magpie::{registry, time};
use magpie_tests::{Failure, ensure, kernel_test};

use super::scene::{Fill, Keeper, LIMIT, crowded, falls_to, until};

/// Ends in the way that it is told to, and some of them go wrong there.
struct Ends {
    way: u64,
    _load: Vec<u8>,
}

static HOOKS: AtomicU64 = AtomicU64::new(0);

impl Actor for Ends {
    fn stopped() -> Option<Hook<Self>> {
        Some(|ends, _| {
            HOOKS.fetch_add(1, Ordering::Relaxed);
            assert!(ends.way != 5, "on purpose");
        })
    }
}

impl Drop for Ends {
    fn drop(&mut self) {
        assert!(self.way != 6, "on purpose");
    }
}

struct Go;

impl Receive<Go> for Ends {
    type Reply = ();

    fn receive(&mut self, _: Go, context: &mut Context<Self>) {
        match self.way {
            1 => context.vacate(),
            2 => context.retire(),
            3 => panic!("on purpose"),
            _ => context.end(),
        }
    }
}

kernel_test! {
    /// However it ends (by itself, vacated, retired, crashed, killed, in its hook, in its destructor, or with its executor) its meter
    /// and its charge come back: more of them live one after the other than there are meters.
    #[machine("isolation")]
    async fn what_counts_comes_back() -> Outcome {
        let limit = MemoryLimit::new(8 << 20).map_err(|error| Failure(alloc::format!("{error}")))?;
        let limits = Limits::new().memory(&limit);
        let (mut lives, mut round) = (0, 0);
        while lives < 5000 {
            round += 1;
            let executor = crowded()?;
            let mut all = Vec::new();
            for number in 0..400_u64 {
                // Those that crash are dear.
                let way = if number < 40 { number % 8 } else { [0, 1, 2, 4][number as usize % 4] };
                let ends = Ends { way, _load: alloc::vec![1; 8] };
                let address = executor.handle().spawn_limited(ends, limits)?;
                lives += 1;
                match way {
                    // It is left to its executor.
                    7 => continue,
                    4 => address.kill()?,
                    _ => drop(address.send(Go)?),
                }
                all.push((way, address));
            }
            for (way, address) in all {
                until(|| !address.is_alive(), || alloc::format!("{address:?} lives, way {way}")).await?;
                if way == 2 {
                    until(|| address.take().is_some(), || "its state is gone".into()).await?;
                }
            }
            executor.stop().await;
            falls_to(&limit, 0).await.map_err(|Failure(what)| Failure(alloc::format!("round {round}: {what}")))?;
        }
        ensure!(HOOKS.load(Ordering::Relaxed) > 1000, "hooks that have run");
        Ok(())
    }
}

kernel_test! {
    /// A supervised one has its limit in each life.
    #[machine("isolation")]
    async fn each_life_has_the_limit() -> Outcome {
        #[derive(Default)]
        struct Named(Keeper);
        impl Actor for Named {
            fn started() -> Option<Hook<Self>> {
                Some(|_, context| {
                    // Who does not get the name is not found under it.
                    let _ = registry::register("limited", context.address());
                })
            }
        }
        impl Receive<Fill> for Named {
            type Reply = usize;
            fn receive(&mut self, _: Fill, context: &mut Context<Self>) -> usize {
                // One that crashes after it has said how much it got.
                if self.0.last == 1 {
                    context.end();
                }
                self.0.last += 1;
                let mut all = Vec::new();
                while all.try_reserve(1000).is_ok() {
                    all.resize(all.capacity(), 1_u8);
                }
                black_box(&all).len()
            }
        }
        let executor = crowded()?;
        let limit = MemoryLimit::new(LIMIT).map_err(|error| Failure(alloc::format!("{error}")))?;
        let child = Child::limited_actor("limited", executor.handle(), Limits::new().memory(&limit), Named::default);
        let supervisor = Supervisor::one_for_one().restarts(100, Duration::MAX).child(child).start()?;
        let mut lives = Vec::new();
        while lives.len() < 8 {
            ensure!(!supervisor.process().is_done(), "the supervisor has ended after {} lives", lives.len());
            let Ok(found) = registry::find::<Addr<Named>>("limited") else {
                time::sleep(Duration::from_millis(1)).await;
                continue;
            };
            if let Ok(bytes) = found.ask(Fill).await {
                ensure!(bytes > LIMIT / 4 && bytes <= LIMIT, "{bytes} bytes are all that it gets");
                lives.push(bytes);
            }
        }
        supervisor.stop().await?;
        executor.stop().await;
        falls_to(&limit, 0).await
    }
}
