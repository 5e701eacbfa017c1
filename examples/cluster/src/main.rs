//! Works for an Erlang application: a worker on each core counts primes for whoever calls it, from any node of the cluster. `cluster.erl` beside this is such an application. A worker
//! that crashes is started anew, and is there again under its name.
#![cfg_attr(target_os = "none", no_std, no_main)]

extern crate alloc;

use alloc::format;
use alloc::string::String;
use core::time::Duration;
use magpie::prelude::*;
use magpie_drivers::uplink::Uplink;
use magpie_net::Network;
use magpie_node::Node;

magpie::entry!(cluster);

/// Counts primes.
struct Worker {
    name: String,
    jobs: u64,
}

/// What a worker is asked: `{primes, From, To}`, `jobs`, `crash`.
enum Job {
    /// How many primes there are from one number to below the other.
    Primes(u64, u64),
    /// How many jobs this worker has done in this life.
    Jobs,
    /// To see what becomes of it.
    Crash,
}
magpie_node::term! { enum Job { Primes(from, to) as "primes", Jobs as "jobs", Crash as "crash" } }

impl Actor for Worker {
    fn started() -> Option<Hook<Self>> {
        Some(|worker, context| {
            // Who does not get the name is not found under it.
            let _ = registry::register(&worker.name, context.address());
        })
    }
}

impl Receive<Job> for Worker {
    type Reply = u64;

    fn receive(&mut self, job: Job, _: &mut Context<Self>) -> u64 {
        match job {
            Job::Primes(from, to) => {
                self.jobs += 1;
                (from..to).filter(|number| is_prime(*number)).count() as u64
            }
            Job::Jobs => self.jobs,
            Job::Crash => panic!("asked to crash"),
        }
    }
}

fn is_prime(number: u64) -> bool {
    number > 1
        && (2..)
            .take_while(|divisor| divisor * divisor <= number)
            .all(|divisor| !number.is_multiple_of(divisor))
}

async fn cluster() -> magpie::Result {
    let uplink = Uplink::chosen();
    let network = Network::start(uplink.config())?;
    let carried = network.clone();
    let card = Child::process("card", move |_| uplink.drive("card", carried.clone())).within(Duration::ZERO);
    let driver = Supervisor::one_for_one().child(card).start()?;
    match time::timeout(Duration::from_secs(10), network.address()).await {
        Ok(address) => _ = address?,
        Err(_) if driver.process().is_done() => {
            return Err(uplink.missing().into());
        }
        Err(_) => return Err("nobody gives this machine an address".into()),
    }

    let executor = Executor::start(&Config::default())?;
    let mut workers = Supervisor::one_for_one().restarts(1000, Duration::from_secs(1));
    let mut config = magpie_node::Config::new("magpie", "magpie").with_arguments();
    for core in 0..machine::cores() {
        let name = format!("worker{core}");
        config = config.actor::<Worker, Job, _>(&name);
        let worker = move || Worker { name: name.clone(), jobs: 0 };
        workers = workers.child(Child::actor("worker", executor.handle(), worker));
    }
    let _workers = workers.start()?;
    let node = Node::start(&network, config).await?;
    text!("{} with {} workers", node.name(), machine::cores());
    while !node.process().is_done() {
        time::sleep(Duration::from_secs(1)).await;
        if driver.process().is_done() {
            return Err(uplink.missing().into());
        }
    }
    Err("the node has ended".into())
}
