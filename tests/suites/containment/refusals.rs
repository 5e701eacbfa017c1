//! Each allocation of each public way to make something is refused once, and only that: what cannot be made is an error that says so, and
//! nothing of it stays.

use core::time::Duration;

use magpie::actor::{
    Actor, Addr, Bound, Config, Context, Executor, ExecutorHandle, NotSpawned, Receive, SendError, Shared,
    StartError, WhenFull,
};
use magpie::arch::CoreId;
use magpie::channel::ProcessMailbox;
use magpie::internals::mem::heap::HEAP;
use magpie::internals::mem::refusal::refuse_one_after;
use magpie::mem::{MemoryLimit, OutOfMemory};
use magpie::registry::{self, RegisterError};
use magpie::sched::{self, CpuShare, Priority, Spawn, SpawnError};
use magpie::supervise::{self, Child, Supervisor};
use magpie::watch::{Ended, link};
use magpie_tests::{Failure, Outcome, ensure, kernel_test};

/// So many allocations nothing here needs.
const MOST: u64 = 2000;
/// So often what stays is looked for: a list of the kernel's may have grown for good.
const ROUNDS: usize = 4;

/// Bytes in use when nothing is under way.
async fn in_use() -> usize {
    sched::out_of_work().await;
    HEAP.usage().0
}

/// Refuses each allocation of `make` once, until there is no further; `end` takes back what was made. Fails unless at least `least` could not
/// be done without, each was the error that `is_it` knows, and nothing is left.
async fn each_is_refused<T, E, F>(
    what: &'static str,
    least: u64,
    make: impl Fn() -> Result<T, E>,
    is_it: impl Fn(&E) -> bool,
    end: impl Fn(T) -> F,
) -> Outcome
where
    F: Future<Output = Outcome> + Send,
{
    // What is kept for the next is there then.
    for _ in 0..2 {
        let Ok(made) = make() else { return Err(Failure(alloc::format!("{what} is refused without need"))) };
        end(made).await?;
    }
    let mut left = usize::MAX;
    for _ in 0..ROUNDS {
        let before = in_use().await;
        let (mut errors, mut granted) = (0, 0);
        loop {
            match refuse_one_after(granted, &make) {
                (Ok(made), was_refused) => {
                    end(made).await?;
                    if !was_refused {
                        break;
                    }
                }
                (Err(error), was_refused) => {
                    ensure!(
                        was_refused,
                        "{what} is refused after {granted} allocations, all of which were granted"
                    );
                    ensure!(is_it(&error), "{what} has another error without allocation {granted}");
                    errors += 1;
                }
            }
            granted += 1;
            ensure!(granted < MOST, "{what} allocates for ever");
        }
        ensure!(errors >= least, "{what} has {errors} errors of {least}, and {granted} allocations");
        left = in_use().await.saturating_sub(before);
        if left == 0 {
            return Ok(());
        }
    }
    Err(Failure(alloc::format!("{what}: {left} bytes are left, each time")))
}

/// What needs no end.
async fn nothing<T>(_: T) -> Outcome {
    Ok(())
}

/// More than fits into a cell or an envelope.
struct Large([u64; 200]);

impl Actor for Large {}

struct Message([u64; 200]);

impl Receive<Message> for Large {
    type Reply = u64;

    fn receive(&mut self, Message(words): Message, _: &mut Context<Self>) -> u64 {
        words[7] + self.0[7]
    }
}

impl Receive<u64> for Large {
    type Reply = u64;

    fn receive(&mut self, number: u64, _: &mut Context<Self>) -> u64 {
        number
    }
}

impl Receive<Ended> for Large {
    type Reply = ();

    fn receive(&mut self, _: Ended, _: &mut Context<Self>) {}
}

kernel_test! {
    /// Executors, of several kinds.
    #[machine("the kernel's heap")]
    async fn an_executor_without_one_allocation() -> Outcome {
        let configs = [
            Config::default(),
            Config::default().own_mailboxes(3).priority(Priority::High).deadline(Duration::from_millis(5)),
        ];
        for config in configs {
            let make = || Executor::start(&config);
            let stop = |executor: Executor| async {
                executor.stop().await;
                Ok(())
            };
            each_is_refused("an executor", 8, make, |error| *error == StartError::OutOfMemory, stop).await?;
        }
        Ok(())
    }
}

fn no_actor(error: &NotSpawned<()>) -> bool {
    matches!(error, NotSpawned::OutOfMemory(()))
}

async fn killed(actor: Addr<Large>) -> Outcome {
    actor.kill()?;
    while actor.is_alive() {
        sched::yield_now().await;
    }
    Ok(())
}

type Spawned = Result<Addr<Large>, NotSpawned<()>>;

async fn actors(handle: &ExecutorHandle) -> Outcome {
    let large = || Large([1; 200]);
    let anywhere = || -> Spawned { handle.spawn(large()).map_err(|error| error.without_actor()) };
    let pinned =
        || -> Spawned { handle.spawn_pinned(CoreId::BOOT, large()).map_err(|error| error.without_actor()) };
    let bound = Bound::new(3, WhenFull::DropOldest);
    let bounded =
        || -> Spawned { handle.spawn_bounded(large(), bound).map_err(|error| error.without_actor()) };
    each_is_refused("an actor", 1, anywhere, no_actor, killed).await?;
    each_is_refused("a pinned actor", 1, pinned, no_actor, killed).await?;
    each_is_refused("an actor with a mailbox of its own", 1, bounded, no_actor, |actor| async move {
        killed(actor).await?;
        // The mailbox is free a moment later than the actor is gone.
        sched::out_of_work().await;
        Ok(())
    })
    .await?;
    let actor = handle.spawn(large())?;
    let mailbox = ProcessMailbox::<Ended>::new(3)?;
    let (process, other) =
        (sched::spawn(core::future::pending::<()>())?, sched::spawn(core::future::pending::<()>())?);
    let ends = mailbox.address();
    let cancelled = |watch: magpie::watch::Watch| async move {
        watch.cancel();
        Ok(())
    };
    let not_watched = |OutOfMemory: &OutOfMemory| true;
    each_is_refused("a watch of an actor", 1, || actor.watch(&ends), not_watched, cancelled).await?;
    each_is_refused(
        "a watch by an actor",
        1,
        || process.process().watch(&actor.recipient::<Ended>()),
        not_watched,
        cancelled,
    )
    .await?;
    each_is_refused("a watch of a process", 1, || process.process().watch(&ends), not_watched, cancelled)
        .await?;
    let unlinked = |link: magpie::watch::Link| async move {
        link.cancel();
        Ok(())
    };
    each_is_refused("a link", 2, || link(process.process(), other.process()), not_watched, unlinked).await?;
    each_is_refused("a link to an actor", 2, || link(&actor, other.process()), not_watched, unlinked).await?;
    each_is_refused(
        "a long message",
        1,
        || actor.send(Message([1; 200])).map(|_| ()).map_err(|error| error.without_message()),
        |error| matches!(error, SendError::OutOfMemory(())),
        nothing,
    )
    .await?;
    each_is_refused(
        "a message for later",
        1,
        || actor.send_after(Duration::from_secs(1000), 1_u64),
        |error| matches!(error, SendError::OutOfMemory(1)),
        |later| async move {
            later.cancel();
            Ok(())
        },
    )
    .await?;
    each_is_refused(
        "an interval",
        1,
        || actor.send_interval(Duration::from_secs(1000), 1_u64),
        |error| matches!(error, SendError::OutOfMemory(1)),
        |interval| async move {
            interval.cancel();
            Ok(())
        },
    )
    .await?;
    each_is_refused(
        "a name",
        1,
        || registry::register("refusals", actor),
        |error| *error == RegisterError::OutOfMemory,
        |()| async {
            ensure!(registry::unregister("refusals"), "the name is not there");
            Ok(())
        },
    )
    .await?;
    process.process().kill();
    other.process().kill();
    let _ = (process.await, other.await);
    killed(actor).await
}

kernel_test! {
    /// Actors, what is sent to them, and what is known of them.
    #[machine("the kernel's heap")]
    async fn actors_without_one_allocation() -> Outcome {
        let executor = Executor::start(&Config::default().own_mailboxes(1))?;
        actors(executor.handle()).await?;
        executor.stop().await;
        Ok(())
    }
}

kernel_test! {
    /// Processes, their mailboxes, shares and limits.
    #[machine("the kernel's heap")]
    async fn processes_without_one_allocation() -> Outcome {
        let no_process = |error: &SpawnError| *error == SpawnError::OutOfMemory;
        let joined = |process: sched::JoinHandle<u8>| async { process.await.map(|_| ()).map_err(Failure::from) };
        each_is_refused("a process", 1, || sched::spawn(async { 1_u8 }), no_process, joined).await?;
        let prompt = Spawn::new().priority(Priority::High).deadline(Duration::from_millis(5));
        each_is_refused("a prompt process", 2, || prompt.start(async { 1_u8 }), no_process, joined).await?;
        let no_memory = |OutOfMemory: &OutOfMemory| true;
        each_is_refused("a share", 1, || CpuShare::percent(5), no_memory, nothing).await?;
        let share = CpuShare::percent(50)?;
        each_is_refused("a process in a share", 1, || share.start(Spawn::new(), async { 1_u8 }), no_process, joined).await?;
        // The first has made what all need.
        each_is_refused("a limit", 0, || MemoryLimit::new(1000), |_| true, nothing).await?;
        let limit = MemoryLimit::new(10_000)?;
        let limited = Spawn::new().memory(&limit);
        each_is_refused("a process with a limit", 1, || limited.start(async { 1_u8 }), no_process, joined).await?;
        each_is_refused("a mailbox", 1, || ProcessMailbox::<u64>::new(3), no_memory, nothing).await?;
        each_is_refused("what is shared", 1, || Shared::new(1), |error| error.without_message() == OutOfMemory, nothing).await?;
        let mut mailbox = ProcessMailbox::<[u64; 9]>::new(3)?;
        let address = mailbox.address();
        let send = || address.send([1; 9]).map(|_| ());
        ensure!(send().is_ok() && mailbox.try_receive().is_some(), "it does not work");
        each_is_refused(
            "a message to a process for later",
            1,
            || address.send_after(Duration::from_secs(1000), [1; 9]),
            |error| matches!(error, SendError::OutOfMemory(_)),
            |later| async move {
                later.cancel();
                Ok(())
            },
        )
        .await?;
        ensure!(limit.used() == 0, "{} bytes are charged", limit.used());
        Ok(())
    }
}

/// What has two children, of which one is a supervisor, all of whom wait.
fn tree() -> Supervisor {
    let wait = |mut shutdown: supervise::Shutdown| async move { shutdown.requested().await };
    let inner = Supervisor::one_for_one().child(Child::process("inner", wait));
    Supervisor::one_for_all()
        .named("refusals")
        .child(Child::process("one", wait))
        .child(Child::supervisor("other", inner))
}

kernel_test! {
    /// Supervisors, with what is declared for them.
    #[machine("the kernel's heap")]
    async fn a_supervisor_without_one_allocation() -> Outcome {
        let no_memory = |error: &supervise::StartError| {
            matches!(
                error,
                supervise::StartError::OutOfMemory
                    | supervise::StartError::Process(SpawnError::OutOfMemory)
                    | supervise::StartError::Name(RegisterError::OutOfMemory)
            )
        };
        let stop = |running: supervise::SupervisorRef| async move {
            running.stop().await?;
            sched::out_of_work().await;
            Ok(())
        };
        each_is_refused("a supervisor", 10, || tree().start(), no_memory, stop).await
    }
}
