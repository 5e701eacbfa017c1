//! Supervisors, step by step.

use super::Result;

use core::time::Duration;

use magpie::actor::stop::End;
use magpie::actor::{Actor, Addr, Config, Context, Executor, Hook, Receive};
use magpie::channel::{ProcessAddr, ProcessMailbox, Request};
use magpie::registry::{self, Named};
use magpie::supervise::{Backoff, Child, Shutdown, Supervisor, SupervisorRef};
use magpie::time::{self, Elapsed};
use magpie::watch::{Ended, Exit};

type Scale = ProcessAddr<Request<u32, u32>>;

async fn scale(shutdown: Shutdown) -> Result {
    let mut weights = ProcessMailbox::<Request<u32, u32>>::new(10)?;
    registry::register("scale", weights.address())?;
    let mut total = 0;
    while !shutdown.is_requested() {
        match weights.receive_within(Duration::from_millis(5)).await {
            Ok(Some(Request { message: weight, .. })) if weight > 1000 => return Err("it broke".into()),
            Ok(Some(Request { message: weight, reply })) => {
                total += weight;
                // An error only says that nobody waits for the answer any more.
                let _ = reply.send(total);
            }
            Ok(None) => break,
            Err(Elapsed) => {}
        }
    }
    Ok(())
}

/// Whoever has that name, as soon as somebody has.
async fn found<A: Named>(name: &str) -> A {
    loop {
        match registry::find(name) {
            Ok(address) => return address,
            Err(_) => time::sleep(Duration::from_millis(1)).await,
        }
    }
}

/// Asks whoever is the scale, until one answers.
async fn weigh(weight: u32) -> u32 {
    loop {
        let scale: Scale = found("scale").await;
        if let Ok(total) = scale.ask(weight).await {
            return total;
        }
    }
}

async fn break_scale() {
    let scale: Scale = found("scale").await;
    assert!(scale.ask(5000).await.is_err());
}

async fn one_child() -> Result {
    let supervisor = Supervisor::one_for_one().child(Child::process("scale", scale)).start()?;

    assert_eq!(weigh(300).await, 300);
    assert_eq!(weigh(300).await, 600);
    break_scale().await;
    // The next life: another mailbox, the same name, and nothing weighed yet.
    assert_eq!(weigh(300).await, 300);

    supervisor.stop().await?;
    Ok(())
}

async fn limits() -> Result {
    let supervisor = Supervisor::one_for_one()
        .restarts(10, Duration::from_secs(60))
        .backoff(Backoff::new(Duration::from_millis(2), Duration::from_secs(1)))
        .child(Child::process("scale", scale).transient().within(Duration::from_millis(100)))
        .start()?;

    break_scale().await;
    weigh(300).await;
    let children = supervisor.children().await?;
    assert_eq!((children[0].name, children[0].restarts), ("scale", 1));
    assert!(children[0].delay >= Duration::from_millis(1) && children[0].delay <= Duration::from_millis(2));

    supervisor.stop().await?;
    Ok(())
}

struct Counter(u64);

impl Actor for Counter {
    fn started() -> Option<Hook<Self>> {
        Some(|_, context| {
            // Who does not get the name is not found under it.
            let _ = registry::register("counter", context.address());
        })
    }
}

impl Receive<u64> for Counter {
    type Reply = u64;

    fn receive(&mut self, number: u64, _: &mut Context<Self>) -> u64 {
        self.0 += number;
        self.0
    }
}

/// One that works until it is asked to end.
async fn stage(mut shutdown: Shutdown) {
    shutdown.requested().await;
}

async fn tree() -> Result {
    let executor = Executor::start(&Config::default())?;

    let pipeline = Supervisor::rest_for_one()
        .restarts(1, Duration::from_secs(3600))
        .child(Child::process("source", stage))
        .child(Child::process("filter", stage))
        .child(Child::process("scale", scale));
    let root = Supervisor::one_for_one()
        .child(Child::actor("counter", executor.handle(), || Counter(0)))
        .child(Child::supervisor("pipeline", pipeline))
        .start()?;

    let counter: Addr<Counter> = found("counter").await;
    assert_eq!(counter.ask(7).await?, 7);
    counter.send(End)?;
    while counter.is_alive() {
        time::sleep(Duration::from_millis(1)).await;
    }
    assert_eq!(found::<Addr<Counter>>("counter").await.ask(7).await?, 7);

    // Twice is once too often for the pipeline: it gives up, and its own supervisor starts it anew.
    for _ in 0..2 {
        break_scale().await;
        weigh(300).await;
    }
    assert!(root.children().await?.iter().any(|child| child.name == "pipeline" && child.restarts == 1));

    root.stop().await?;
    executor.stop().await;
    Ok(())
}

async fn at_run_time() -> Result {
    Supervisor::one_for_one().named("workers").start()?;

    let workers: SupervisorRef = registry::find("workers")?;
    let worker = workers.start_child(Child::process("worker", stage).temporary()).await?;
    assert_eq!(workers.children().await?.len(), 1);
    assert!(workers.terminate(worker).await?);
    assert_eq!(workers.children().await?.len(), 0);

    let mut ends = ProcessMailbox::<Ended>::new(1)?;
    workers.process().watch(&ends.address())?;
    workers.stop().await?;
    assert_eq!(ends.receive().await.map(|ended| ended.exit()), Some(Exit::Normal));
    Ok(())
}

pub async fn chapter() -> Result {
    one_child().await?;
    limits().await?;
    tree().await?;
    at_run_time().await
}
