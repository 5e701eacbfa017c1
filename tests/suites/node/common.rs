//! Two nodes, and who is on them. The registry is the kernel's, so a name is the same actor's on both.

use alloc::format;
use alloc::string::String;
use core::net::Ipv4Addr;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use core::time::Duration;

use magpie::actor::{Actor, Bound, Config as Actors, Context, Executor, Receive, WhenFull};
use magpie::registry;
use magpie_net::{Cable, Config as Net, Faults, Network};
use magpie_node::{Config, Error, Node, RemoteRecipient};
use magpie_tests::{Failure, HANGS_AFTER};

pub const HERE: &str = "here@10.0.0.1";
pub const THERE: &str = "there@10.0.0.2";
pub const ADDRESS_THERE: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
pub const PATIENCE: Duration = HANGS_AFTER;

/// What the actor of these tests is asked.
pub enum Job {
    Add(u64),
    Text(String),
    /// Wait so many microseconds.
    Linger(u64),
    /// Wait until nothing holds it: see [`hold`].
    Hold,
    Crash,
}
magpie_node::term! {
    enum Job {
        Add(number) as "add",
        Text(text) as "text",
        Linger(microseconds) as "linger",
        Hold as "hold",
        Crash as "crash",
    }
}

static HOLDS: AtomicBool = AtomicBool::new(false);

/// Whether an actor that is asked to is held.
pub fn hold(holds: bool) {
    HOLDS.store(holds, Ordering::Relaxed);
}

/// What it answers: how much it has added, and a text's length.
pub struct Adder(pub u64);

impl Actor for Adder {}

impl Receive<Job> for Adder {
    type Reply = u64;

    fn receive(&mut self, job: Job, _: &mut Context<Self>) -> u64 {
        match job {
            Job::Add(number) => self.0 += number,
            Job::Text(text) => return text.len() as u64,
            Job::Linger(microseconds) => {
                let began = magpie::time::Instant::now();
                while began.elapsed() < Duration::from_micros(microseconds) {
                    core::hint::spin_loop();
                }
                self.0 += 1;
            }
            Job::Hold => {
                while HOLDS.load(Ordering::Relaxed) {
                    core::hint::spin_loop();
                }
            }
            Job::Crash => panic!("asked to crash"),
        }
        self.0
    }
}

/// Both nodes, and an actor under a name of its own.
pub struct Pair {
    pub here: Node,
    pub there: Node,
    /// It is there as long as this is.
    _cable: Cable,
    pub networks: (Network, Network),
    pub executor: Executor,
    pub name: String,
}

static NAMES: AtomicU64 = AtomicU64::new(0);

pub fn config(name: &str, actor: &str) -> Config {
    Config::new(name, "cookie").actor::<Adder, Job, _>(actor)
}

impl Pair {
    /// Started, not yet connected. An actor's mailbox takes so many messages.
    pub async fn start(faults: Faults, most: u32) -> Result<Self, Failure> {
        Self::start_with(faults, most, |config| config).await
    }

    /// The same, with what else is to be said of the node there.
    pub async fn start_with(
        faults: Faults,
        most: u32,
        change: impl FnOnce(Config) -> Config,
    ) -> Result<Self, Failure> {
        Self::start_on(faults, most, Net::fixed(ADDRESS_THERE, 24), change).await
    }

    /// The same, with what else is to be said of both nodes.
    pub async fn start_alike(
        faults: Faults,
        most: u32,
        change: impl Fn(Config) -> Config,
    ) -> Result<Self, Failure> {
        let network = Net::fixed(ADDRESS_THERE, 24);
        Self::start_both(faults, most, network, &change, &change).await
    }

    /// The same, with what there is to say of the network there.
    pub async fn start_on(
        faults: Faults,
        most: u32,
        network: Net,
        change: impl FnOnce(Config) -> Config,
    ) -> Result<Self, Failure> {
        Self::start_both(faults, most, network, |config| config, change).await
    }

    async fn start_both(
        faults: Faults,
        most: u32,
        network: Net,
        change_here: impl FnOnce(Config) -> Config,
        change_there: impl FnOnce(Config) -> Config,
    ) -> Result<Self, Failure> {
        let here = Network::start(Net::fixed(Ipv4Addr::new(10, 0, 0, 1), 24))?;
        let networks = (here, Network::start(network)?);
        let cable = Cable::connect(&networks.0, &networks.1, faults)?;
        let executor = Executor::start(&Actors::default().bound(Bound::new(most, WhenFull::Refuse)))?;
        let name = format!("adder{}", NAMES.fetch_add(1, Ordering::Relaxed));
        let adder = executor.handle().spawn(Adder(0))?;
        registry::register(&name, adder)?;
        let here = Node::start(&networks.0, change_here(config(HERE, &name))).await?;
        let there = Node::start(&networks.1, change_there(config(THERE, &name))).await?;
        Ok(Self { here, there, _cable: cable, networks, executor, name })
    }

    pub async fn remote(&self) -> Result<RemoteRecipient<Job>, Error> {
        self.here.recipient(THERE, &self.name).await
    }

    /// Nothing of it is left.
    pub async fn end(self) {
        self.here.process().kill();
        self.there.process().kill();
        self.networks.0.process().kill();
        self.networks.1.process().kill();
        self.executor.stop().await;
    }
}
