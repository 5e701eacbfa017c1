//! Where actors run: pinned to a core, beside one another; and configurations that cannot be.

use alloc::vec::Vec;

use super::{Verdict, count, counter, ensure, equal, failed, start_with_thieves, unsuspended};
use crate::actor::{Actor, Config, Context, Executor, MailboxVictim, NotSpawned, Receive, StartError};
use crate::arch::CoreId;
use crate::arch::atomic::{AtomicU64, Ordering};
use crate::{machine, sched};

/// Notes on which cores it has run, as a mask.
struct Traveller {
    cores: &'static AtomicU64,
}

impl Actor for Traveller {}

impl Receive<u64> for Traveller {
    type Reply = ();

    fn receive(&mut self, left: u64, context: &mut Context<Self>) {
        self.cores.fetch_or(sched::current_core().map_or(0, CoreId::mask), Ordering::Relaxed);
        if left > 0 && context.address().send(left - 1).is_err() {
            self.cores.store(0, Ordering::Relaxed);
        }
    }
}

pub(super) async fn pinned_actors_stay(work: u64) -> Verdict {
    let executor = start_with_thieves(MailboxVictim::Random).map_err(failed)?;
    let workers = executor.handle().cores();
    let mut travellers = Vec::new();
    for core in workers.iter() {
        for _ in 0..4 {
            let cores = counter();
            let pinned = executor.handle().spawn_pinned(core, Traveller { cores }).map_err(failed)?;
            pinned.send(work / 100).map_err(failed)?;
            travellers.push((core, cores));
        }
    }
    sched::out_of_work().await;
    for (core, cores) in travellers {
        equal(count(cores), 1 << core.index(), "the cores that a pinned actor has run on")?;
    }
    ensure!(executor.handle().table_is_whole(), "the table does not hold each mailbox once");
    executor.stop().await;
    Ok(())
}

pub(super) async fn neighbours_share_a_core(_work: u64) -> Verdict {
    let executor = start_with_thieves(MailboxVictim::None).map_err(failed)?;
    let handle = executor.handle();
    let last = handle.workers() - 1;
    let core = |number| CoreId::new(number).ok_or("the number of a core");
    // A behaviour that was suspended goes on wherever there is time.
    let (first, second) = unsuspended(async || {
        let (first, second) = (counter(), counter());
        let one = handle.spawn_on(core(last)?, Traveller { cores: first }).map_err(failed)?;
        let other = handle.spawn_beside(one, Traveller { cores: second }).map_err(failed)?;
        one.send(10).map_err(failed)?;
        other.send(10).map_err(failed)?;
        sched::out_of_work().await;
        Ok((first, second))
    })
    .await?;
    equal((count(first), count(second)), (1 << last, 1 << last), "the cores that the two have run on")?;
    ensure!(
        matches!(
            handle.spawn_on(core(last + 1)?, Traveller { cores: first }),
            Err(NotSpawned::NoSuchWorker(_))
        ),
        "an actor was spawned on a worker that does not exist"
    );
    executor.stop().await;
    Ok(())
}

pub(super) async fn wrong_configurations_are_refused(_work: u64) -> Verdict {
    let cores = machine::cores();
    let refused = |config: Config| Executor::start(&config).err();
    let none = Config::default().workers(0);
    equal(refused(none), Some(StartError::Workers { asked: 0, cores }), "no workers")?;
    let many = Config::default().workers(cores + 1);
    equal(refused(many), Some(StartError::Workers { asked: cores + 1, cores }), "more workers than cores")?;
    let few = Config::default().mailboxes(cores - 1);
    let error = StartError::TooFewMailboxes { mailboxes: cores - 1, workers: cores };
    equal(refused(few), Some(error), "fewer mailboxes than workers")?;
    for mailboxes in [4097 - cores, 1_000_000, usize::MAX] {
        let too_many = Config::default().mailboxes(mailboxes);
        let error = StartError::TooManyMailboxes { mailboxes, most: 4096 - cores };
        equal(refused(too_many), Some(error), "more mailboxes than there are numbers for")?;
    }
    let idle = Config::default().reductions(0);
    equal(refused(idle), Some(StartError::NoReductions), "turns without a message")?;
    let endless = Config::default().segment_bytes(usize::MAX);
    equal(refused(endless), Some(StartError::OutOfMemory), "buffers without end")?;
    // As many as workers is allowed, and does not keep later executors from stealing.
    let least = Config::default().mailboxes(cores);
    Executor::start(&least).map_err(failed)?.stop().await;
    Ok(())
}
