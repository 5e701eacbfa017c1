//! What the processes of a node have in common.

use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use core::net::Ipv4Addr;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use magpie_dist::connection::{Chance, Identity, Limits};
use magpie_net::Network;
use magpie_random::Random;

use crate::config::Config;
use crate::error::Error;
use crate::exports::Exports;

/// A counter.
#[derive(Default)]
pub struct Count(AtomicU64);

impl Count {
    pub fn add(&self) {
        // Relaxed: a statistic.
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    pub fn get(&self) -> u64 {
        // Relaxed: as above.
        self.0.load(Ordering::Relaxed)
    }
}

/// What is counted.
#[derive(Default)]
pub struct Counted {
    pub received: Count,
    pub sent: Count,
    pub unreachable: Count,
    pub misshapen: Count,
    pub full: Count,
    pub refused: Count,
    pub refused_calls: Count,
}

/// What a node has counted since it was started.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Statistics {
    /// Messages for exported actors.
    pub received: u64,
    /// What was sent to other nodes.
    pub sent: u64,
    /// Messages for somebody who is not exported, or has gone.
    pub unreachable: u64,
    /// Messages that were none of their actor's.
    pub misshapen: u64,
    /// How often a mailbox was full, so that nothing more was read for a while.
    pub full: u64,
    /// Connections that were refused because there are too many.
    pub refused: u64,
    /// Calls that were refused because too many others wait for their answers.
    pub refused_calls: u64,
}

/// What is fixed, and the counters.
pub struct Shared {
    pub identity: Arc<Identity>,
    /// What stands before the `@`.
    pub alive: String,
    pub name: String,
    pub port: u16,
    pub mapper_port: u16,
    pub limits: Limits,
    pub connections: usize,
    pub exports: Exports,
    pub network: Network,
    pub counted: Counted,
    /// What the next connection's references begin with: another number each time.
    salt: AtomicU32,
}

impl Shared {
    pub fn new(config: Config, network: &Network, host: Ipv4Addr) -> Result<Self, Error> {
        let name = match config.name.split_once('@') {
            Some(_) => config.name,
            None => format!("{}@{host}", config.name),
        };
        let alive = name.split('@').next().unwrap_or_default().into();
        let mut random = Random::new();
        // Four at least.
        let creation = random.bits() as u32 | 4;
        let identity = Identity::new(&name, &config.cookie, creation).map_err(|_| Error::Name)?;
        Ok(Self {
            identity: Arc::new(identity),
            alive,
            name,
            port: config.port,
            mapper_port: config.mapper_port,
            limits: config.limits,
            connections: config.connections,
            exports: config.exports,
            network: network.clone(),
            counted: Counted::default(),
            salt: AtomicU32::new(random.bits() as u32),
        })
    }

    /// For the next connection: a challenge that nobody can guess, as far as the machine has such numbers.
    pub fn chance(&self) -> Chance {
        // Relaxed: a number for each who asks, and nothing else.
        Chance { challenge: Random::new().bits() as u32, salt: self.salt.fetch_add(1, Ordering::Relaxed) }
    }

    pub fn statistics(&self) -> Statistics {
        let counted = &self.counted;
        Statistics {
            received: counted.received.get(),
            sent: counted.sent.get(),
            unreachable: counted.unreachable.get(),
            misshapen: counted.misshapen.get(),
            full: counted.full.get(),
            refused: counted.refused.get(),
            refused_calls: counted.refused_calls.get(),
        }
    }
}
