//! Supervisors, step by step.

use super::Result;

use core::time::Duration;

use magpie::actor::stop::End;
use magpie::actor::{Actor, Addr, Config, Context, Executor, Hook, Receive};
use magpie::channel::{ProcessAddr, ProcessMailbox, Request};
use magpie::registry::{self, Named};
use magpie::sched;
use magpie::supervise::{Backoff, Child, Shutdown, Supervisor, SupervisorRef};
use magpie::time::{self, Elapsed};
use magpie::watch::{Ended, Exit};

/// As std's, and kept: `main` compares it with what the guide shows.
macro_rules! println {
    ($($what:tt)*) => {
        super::say(format!($($what)*))
    };
}

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

/// Prints what a supervisor says of its children.
async fn show(supervisor: &SupervisorRef) -> Result {
    for child in supervisor.children().await? {
        println!("{}: {} restarts", child.name, child.restarts);
    }
    Ok(())
}

async fn one_child() -> Result {
    let supervisor = Supervisor::one_for_one().child(Child::process("scale", scale)).start()?;

    println!("{} g", weigh(300).await);
    println!("{} g", weigh(300).await);
    break_scale().await;
    // The next life: another mailbox, the same name, and nothing weighed yet.
    println!("{} g", weigh(300).await);
    show(&supervisor).await?;

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
    println!("{} g", weigh(300).await);
    show(&supervisor).await?;
    let children = supervisor.children().await?;
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
    println!("{} counted", counter.ask(7).await?);
    counter.send(End)?;
    while counter.is_alive() {
        time::sleep(Duration::from_millis(1)).await;
    }
    // Permanent: it is started anew after each end.
    let counter: Addr<Counter> = found("counter").await;
    println!("{} counted", counter.ask(7).await?);

    // Twice is once too often for the pipeline: it gives up, and its own supervisor starts it anew.
    for _ in 0..2 {
        break_scale().await;
        println!("{} g", weigh(300).await);
    }
    show(&root).await?;

    root.stop().await?;
    executor.stop().await;
    Ok(())
}

async fn at_run_time() -> Result {
    Supervisor::one_for_one().named("workers").start()?;

    let workers: SupervisorRef = registry::find("workers")?;
    let worker = workers.start_child(Child::process("worker", stage).temporary()).await?;
    show(&workers).await?;
    println!("ended: {}", workers.terminate(worker).await?);
    println!("{} children", workers.children().await?.len());

    let mut ends = ProcessMailbox::<Ended>::new(1)?;
    workers.process().watch(&ends.address())?;
    workers.stop().await?;
    assert_eq!(ends.receive().await.map(|ended| ended.exit()), Some(Exit::Normal));
    Ok(())
}

/// Starts all of it, and comes back if it has given up.
async fn appliance() -> Result {
    const HOUR: Duration = Duration::from_secs(3600);
    // What a device does wrong uses up no restart of the service's, nor the other way round.
    let devices = Supervisor::one_for_one().child(Child::process("card", stage));
    let service = Supervisor::one_for_one().restarts(1, HOUR).child(Child::process("scale", scale));
    let root = Supervisor::one_for_one()
        .restarts(1, HOUR)
        .child(Child::supervisor("devices", devices))
        .child(Child::supervisor("service", service))
        .start()?;

    // The root is watched: its handle keeps nothing going, and drops nothing.
    let mut ends = ProcessMailbox::<Ended>::new(1)?;
    root.process().watch(&ends.address())?;
    if let Some(ended) = ends.receive().await {
        println!("the root has ended: {:?}", ended.exit());
    }
    Ok(())
}

async fn a_main() -> Result {
    let main = sched::spawn(appliance())?;
    // Each life of the service allows one restart, and the root one more service.
    for _ in 0..4 {
        break_scale().await;
    }
    main.await?
}

pub async fn chapter() -> Result {
    one_child().await?;
    limits().await?;
    tree().await?;
    at_run_time().await?;
    a_main().await
}
