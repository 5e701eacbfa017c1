//! Sockets over a cable, on the host, in virtual time: it passes only when all wait.

mod common;

use std::time::Duration;

use common::{HERE, THERE, at, bytes, echo, pair};
use magpie::testing::{Options, run};
use magpie::{sched, time};
use magpie_net::{Cable, Config, Error, Faults, Network, TcpStream};

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Whether that is what the sequence says.
fn checked(seed: u64, from: usize, come: &[u8]) -> Result<(), Failure> {
    let mut expected = vec![0; come.len()];
    bytes(seed, from, &mut expected);
    match come.iter().zip(&expected).position(|(come, expected)| come != expected) {
        None => Ok(()),
        Some(at) => Err(format!("byte {} is another", from + at).into()),
    }
}

/// Sends so many bytes and reads them back, both at once.
async fn there_and_back(stream: TcpStream, seed: u64, count: usize) -> Result<(), Failure> {
    let (mut read, mut write) = stream.split();
    let writes = sched::spawn(async move {
        let mut sent = 0;
        let mut block = vec![0; 5000];
        while sent < count {
            let now = block.len().min(count - sent);
            bytes(seed, sent, &mut block[..now]);
            write.write_all(&block[..now]).await?;
            sent += now;
        }
        write.close().await
    })?;
    let mut back = 0;
    let mut block = vec![0; 3001];
    loop {
        let come = read.read(&mut block).await?;
        if come == 0 {
            break;
        }
        checked(seed, back, &block[..come])?;
        back += come;
    }
    assert_eq!(back, count, "bytes that came back");
    writes.await??;
    Ok(())
}

async fn over(faults: Faults, count: usize) -> Result<(), Failure> {
    let (here, there, cable) = pair(faults)?;
    sched::spawn(echo(there.listen(7, 4).await?))?;
    there_and_back(here.connect(at(THERE, 7)).await?, 1, count).await?;
    let carried = cable.carried();
    eprintln!("{carried:?}, {:?} simulated", time::Instant::now());
    for (promille, done) in [
        (faults.lost, carried.lost),
        (faults.doubled, carried.doubled),
        (faults.reordered, carried.reordered),
        (faults.corrupted, carried.corrupted),
    ] {
        assert!(promille == 0 || done > 0, "{faults:?}: {carried:?}");
    }
    Ok(())
}

#[test]
fn nobody_listens() {
    run(&Options::default().virtual_time(), || async {
        let (here, _there, _cable) = pair(Faults::none())?;
        assert_eq!(here.connect(at(THERE, 80)).await.map(drop), Err(Error::Refused));
        assert_eq!(here.connect(at(HERE, 0)).await.map(drop), Err(Error::NoSuchAddress));
        Ok::<(), Failure>(())
    });
}

#[test]
fn nobody_is_there() {
    run(&Options::default().virtual_time(), || async {
        let alone = Network::start(Config::fixed(HERE, 24))?;
        let waits = time::timeout(Duration::from_secs(1), alone.connect(at(THERE, 80))).await;
        assert!(waits.is_err(), "without a link nobody answers");
        let (here, _there, _cable) = pair(Faults { lost: 1000, ..Faults::none() })?;
        assert_eq!(here.connect(at(THERE, 80)).await.map(drop), Err(Error::Refused));
        Ok::<(), Failure>(())
    });
}

#[test]
fn a_megabyte_comes_back() {
    run(&Options::default().virtual_time(), || over(Faults::none(), 1 << 20));
}

#[test]
fn ten_megabytes_come_back_over_a_bad_cable() {
    run(&Options::default().virtual_time(), || {
        let faults = Faults { lost: 10, doubled: 10, reordered: 20, corrupted: 10, seed: 7 };
        over(faults, 10_000_000)
    });
}

#[test]
fn a_very_bad_cable_is_got_over() {
    run(&Options::default().virtual_time(), || {
        let faults = Faults { lost: 50, doubled: 20, reordered: 50, corrupted: 30, seed: 3 };
        over(faults, 200_000)
    });
}

/// Nobody is asked whether it is there, so nobody's silence ends a connection; who is gone is noticed when something is sent.
#[test]
fn without_keep_alive_silence_is_no_end() {
    run(&Options::default().virtual_time(), || async {
        let config = |address| Config { keep_alive: None, ..Config::fixed(address, 24) };
        let (here, there) = (Network::start(config(HERE))?, Network::start(config(THERE))?);
        let cable = Cable::connect(&here, &there, Faults::none())?;
        sched::spawn(echo(there.listen(7, 4).await?))?;
        let mut stream = here.connect(at(THERE, 7)).await?;
        let mut back = [0; 1000];
        for round in 0..3 {
            stream.write_all(&[round; 1000]).await?;
            stream.read_exact(&mut back).await?;
            assert_eq!(back, [round; 1000]);
            time::sleep(Duration::from_secs(3600)).await;
        }
        cable.process().kill();
        Cable::connect(&here, &there, Faults { lost: 1000, ..Faults::none() })?;
        stream.write_all(b"is anybody there").await?;
        assert_eq!(stream.read(&mut back).await, Err(Error::Reset));
        Ok::<(), Failure>(())
    });
}
