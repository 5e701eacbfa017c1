//! Limits of memory: sockets are charged to who opens them.

use alloc::vec::Vec;
use core::time::Duration;

use magpie::mem::MemoryLimit;
use magpie::sched::Spawn;
use magpie::{sched, time};
use magpie_net::{Cable, Config, Error, Faults, Network};
use magpie_tests::{Failure, comes, ensure, ensure_eq, kernel_test};

use crate::common::{HERE, THERE, at, echo, pair, there_and_back};

/// What a connection's buffers take at least, of the usual length.
const CONNECTION: usize = 32 << 10;
const LIMIT: usize = 5 * CONNECTION;

/// Opens as many connections as it may.
async fn open_all(network: Network) -> Result<Vec<magpie_net::TcpStream>, Error> {
    let mut opened = Vec::new();
    loop {
        match network.connect(at(THERE, 7)).await {
            Ok(stream) => opened.push(stream),
            Err(Error::OutOfMemory) => return Ok(opened),
            Err(error) => return Err(error),
        }
    }
}

fn limit() -> Result<MemoryLimit, Failure> {
    MemoryLimit::new(LIMIT).map_err(|error| Failure(alloc::format!("{error}")))
}

kernel_test! {
    /// Who has a limit opens as many connections as it pays for, and others go on; what is closed is given back, and may be had again.
    async fn connections_are_charged() -> Outcome {
        let (here, there, _cable) = pair(Faults::none())?;
        sched::spawn(echo(there.listen(7, 8).await?))?;
        let limit = limit()?;
        for _ in 0..3 {
            let network = here.clone();
            let opened = Spawn::new().memory(&limit).start(open_all(network))?.await??;
            ensure!((1..=LIMIT / CONNECTION).contains(&opened.len()), "{} were opened", opened.len());
            ensure!(limit.used() >= opened.len() * CONNECTION, "{} bytes for {}", limit.used(), opened.len());
            // Others are not held up, with what that one has opened either.
            there_and_back(here.connect(at(THERE, 7)).await?, 1, 20_000).await?;
            for stream in opened {
                stream.abort();
            }
            comes(|| limit.used() < CONNECTION, "the memory of what was closed was not given back").await?;
        }
        Ok(())
    }
}

kernel_test! {
    /// Listeners and datagrams are, too, and what a killed process has opened is given back.
    async fn all_sockets_are_charged() -> Outcome {
        let (_here, there, _cable) = pair(Faults::none())?;
        let limit = limit()?;
        let modest = Spawn::new().memory(&limit);
        let network = there.clone();
        let refused = modest.start(async move {
            let many = network.listen(80, 10).await.map(drop);
            let few = network.listen(80, 2).await;
            let long = network.bind(9, 4, LIMIT).await.map(drop);
            (many, few.map(drop), long)
        })?;
        let expected = (Err(Error::OutOfMemory), Ok(()), Err(Error::OutOfMemory));
        ensure_eq!(refused.await?, expected, "a long backlog, a short one, and long buffers");
        comes(|| limit.used() < CONNECTION, "what was dropped was not given back").await?;
        let network = there.clone();
        let holds = modest.start(async move {
            let _listener = network.listen(81, 2).await?;
            let _socket = network.bind(10, 4, 4096).await?;
            time::sleep(Duration::from_secs(3600)).await;
            Ok::<(), Error>(())
        })?;
        comes(|| limit.used() >= 2 * CONNECTION + 2 * 4096, "the sockets are not charged").await?;
        holds.process().kill();
        ensure!(holds.await.is_err(), "it was not killed");
        comes(|| limit.used() < CONNECTION, "what was killed was not given back").await?;
        let _again = there.listen(81, 2).await?;
        Ok(())
    }
}

kernel_test! {
    /// A network's own process has a limit: with too little it is not started, and what others open is not its own.
    async fn a_network_may_have_one_itself() -> Outcome {
        let limit = limit()?;
        let small = Config { sockets: 8, ..Config::fixed(THERE, 24) };
        let network = Network::start_with(Spawn::new().memory(&limit), small)?;
        let used = limit.used();
        let mut opened = Vec::new();
        for port in 1..=4 {
            opened.push(network.bind(port, 8, LIMIT / 2).await?);
        }
        ensure!(limit.used() < used + CONNECTION, "{} bytes after {used}", limit.used());
        Ok(())
    }
}

kernel_test! {
    /// More connections than a network has places for: `accept` says so, who waits serves them as others go.
    async fn a_crowd_ends_no_server() -> Outcome {
        let here = Network::start(Config::fixed(HERE, 24))?;
        let there = Network::start(Config { sockets: 6, ..Config::fixed(THERE, 24) })?;
        let _cable = Cable::connect(&here, &there, Faults::none())?;
        let mut listener = there.listen(7, 3).await?;
        let (mut crowd, mut held) = (Vec::new(), Vec::new());
        loop {
            let dial = here.connect(at(THERE, 7));
            crowd.extend(time::timeout(Duration::from_millis(200), dial).await.ok().and_then(Result::ok));
            match time::timeout(Duration::from_millis(200), listener.accept()).await {
                Ok(Ok(stream)) => held.push(stream),
                Ok(Err(error)) => {
                    ensure_eq!(error, Error::TooMany, "what is said to who accepts");
                    break;
                }
                Err(_) => {}
            }
        }
        ensure_eq!(held.len(), 3, "accepted beside the three in store");
        let server = sched::spawn(echo(listener))?;
        for stream in crowd.drain(..).chain(held.drain(..)) {
            stream.abort();
        }
        for seed in 0..10 {
            // Refused, as long as all in store are taken.
            let mut stream = loop {
                match here.connect(at(THERE, 7)).await {
                    Err(Error::Refused | Error::Reset) => sched::yield_now().await,
                    connected => break connected?,
                }
            };
            stream.write_all(&[seed; 100]).await?;
            let mut back = [0; 100];
            stream.read_exact(&mut back).await?;
            ensure_eq!(back, [seed; 100], "what came back");
        }
        ensure!(!server.process().is_done(), "the server has ended");
        Ok(())
    }
}
