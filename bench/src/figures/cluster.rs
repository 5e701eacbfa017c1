//! Two nodes of a cluster in the kernel, with a cable between their networks: calls of an actor on the other node, one after another or of many callers at once. Terms, the protocol,
//! TCP/IP on both sides and the actor are all in it; no device is.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::net::Ipv4Addr;
use core::time::Duration;

use magpie::actor::{Actor, Context, ExecutorHandle, Receive};
use magpie::channel::ProcessMailbox;
use magpie::{registry, sched};
use magpie_net::{Cable, Faults, Network};
use magpie_node::{Config, Error, Node};

use super::Go;
use crate::failed::Failed;
use crate::stopwatch;

const HERE: &str = "here@10.0.0.1";
const THERE: &str = "there@10.0.0.2";
const NAME: &str = "bench/remote";
const PATIENCE: Duration = Duration::from_secs(60);

/// Answers with what it is asked.
struct Same;

impl Actor for Same {}

impl Receive<u64> for Same {
    type Reply = u64;

    fn receive(&mut self, number: u64, _: &mut Context<Self>) -> u64 {
        number
    }
}

fn network(last: u8) -> Result<Network, magpie_net::Error> {
    let address = Ipv4Addr::new(10, 0, 0, last);
    Network::start(magpie_net::Config { keep_alive: None, seed: 1, ..magpie_net::Config::fixed(address, 24) })
}

/// Once they are told to go, so many callers share so many calls.
pub fn prepare(executor: &ExecutorHandle, parameters: &[u64]) -> Result<Go, Failed> {
    let (calls, callers) = (parameters[0], parameters[1]);
    let same = executor.spawn(Same).map_err(|_| Failed::Memory)?;
    registry::register(NAME, same).map_err(|_| Failed::Memory)?;
    let mut told = ProcessMailbox::new(1).map_err(|_| Failed::Memory)?;
    let address = told.address();
    let asks = async move {
        let (one, other) = (network(1)?, network(2)?);
        let _cable = Cable::connect(&one, &other, Faults::none())?;
        let here = Node::start(&one, Config::new(HERE, "bench")).await?;
        let there = Node::start(&other, Config::new(THERE, "bench").actor::<Same, u64, _>(NAME)).await?;
        let remote = here.recipient::<u64>(THERE, NAME).await?;
        // The way is made before time runs.
        remote.call::<u64>(&0, PATIENCE).await?;
        if told.receive().await.is_none() {
            return Ok(());
        }
        let mut all = Vec::new();
        for caller in 0..callers {
            let remote = remote.clone();
            all.push(sched::spawn(async move {
                for number in (caller..calls).step_by(callers as usize) {
                    if remote.call::<u64>(&number, PATIENCE).await? != number {
                        return Err(Error::Disconnected);
                    }
                }
                Ok(())
            }));
        }
        for caller in all {
            match caller.map_err(|_| Error::OutOfMemory)?.await {
                Ok(done) => done?,
                Err(_) => return Err(Error::Disconnected),
            }
        }
        stopwatch::done();
        here.process().kill();
        there.process().kill();
        Ok::<(), Error>(())
    };
    sched::spawn(asks).map_err(|_| Failed::Memory)?;
    Ok(Box::new(move || {
        stopwatch::begin(1);
        address.send(()).map_err(|_| Failed::Memory)?;
        Ok(calls)
    }))
}
