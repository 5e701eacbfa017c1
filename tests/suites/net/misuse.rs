//! Those who do not read, do not answer, or ask without end.

use core::time::Duration;

use magpie::{sched, time};
use magpie_net::{Config, Error, Faults, Network};
use magpie_tests::{HANGS_AFTER, ensure, ensure_eq, kernel_test};

use crate::common::{HERE, THERE, at, echo, pair, there_and_back};

kernel_test! {
    /// What is not read is not taken: the sender waits, and goes on when somebody reads.
    async fn a_slow_reader_holds_up_its_sender_alone() -> Outcome {
        let (here, there, _cable) = pair(Faults::none())?;
        sched::spawn(echo(there.listen(7, 4).await?))?;
        let mut listener = there.listen(8, 1).await?;
        let mut sender = here.connect(at(THERE, 8)).await?;
        let mut reader = listener.accept().await?;
        let block = [7; 4096];
        let mut sent = 0;
        // Both sides' buffers, and the one on its way.
        while time::timeout(Duration::from_millis(300), sender.write_all(&block)).await.is_ok() {
            sent += block.len();
            ensure!(sent <= 4 * (16 << 10), "{sent} bytes were taken that nobody reads");
        }
        // Others go on meanwhile.
        there_and_back(here.connect(at(THERE, 7)).await?, 3, 100_000).await?;
        let mut bytes = [0; 1000];
        let mut come = 0;
        while come < sent {
            let count = time::timeout(Duration::from_secs(20), reader.read(&mut bytes)).await??;
            ensure!(bytes[..count].iter().all(|byte| *byte == 7), "another byte came");
            come += count;
        }
        Ok(())
    }
}

kernel_test! {
    /// Frames stop coming in the middle: both sides find out.
    async fn one_that_is_gone_is_noticed() -> Outcome {
        let config = |address| Config {
            keep_alive: Some(Duration::from_millis(200)),
            timeout: Duration::from_secs(1),
            ..Config::fixed(address, 24)
        };
        let (here, there) = (Network::start(config(HERE))?, Network::start(config(THERE))?);
        let cable = magpie_net::Cable::connect(&here, &there, Faults::none())?;
        let mut listener = there.listen(7, 2).await?;
        let mut one = here.connect(at(THERE, 7)).await?;
        let mut other = listener.accept().await?;
        one.write_all(b"x").await?;
        let mut bytes = [0; 10];
        ensure_eq!(other.read(&mut bytes).await, Ok(1), "while the cable was there");
        cable.process().kill();
        // A link that loses everything, in place of the cable.
        for network in [&here, &there] {
            let network = network.clone();
            sched::spawn(crate::by_hand::hole(network))?;
        }
        let limit = Duration::from_secs(20);
        ensure_eq!(time::timeout(limit, other.read(&mut bytes)).await?, Err(Error::Reset), "the reader there");
        ensure_eq!(time::timeout(limit, one.read(&mut bytes)).await?, Err(Error::Reset), "the reader here");
        Ok(())
    }
}

kernel_test! {
    /// What was written before the end is read, and the end after that; and half a connection goes on.
    async fn half_closed_is_half_open() -> Outcome {
        let (here, there, _cable) = pair(Faults::none())?;
        let mut listener = there.listen(7, 2).await?;
        let mut one = here.connect(at(THERE, 7)).await?;
        let mut other = listener.accept().await?;
        one.write_all(b"last words").await?;
        one.shutdown().await?;
        ensure_eq!(one.write(b"more").await, Err(Error::Closed), "after the end");
        let mut bytes = [0; 10];
        other.read_exact(&mut bytes).await?;
        ensure_eq!(&bytes, b"last words", "what came");
        ensure_eq!(other.read(&mut bytes).await, Ok(0), "the end");
        other.write_all(b"an answer.").await?;
        one.read_exact(&mut bytes).await?;
        ensure_eq!(&bytes, b"an answer.", "the answer");
        other.close().await?;
        ensure_eq!(one.read(&mut bytes).await, Ok(0), "the other end");
        Ok(())
    }
}

kernel_test! {
    async fn aborted_is_reset() -> Outcome {
        let (here, there, _cable) = pair(Faults::none())?;
        let mut listener = there.listen(7, 2).await?;
        let one = here.connect(at(THERE, 7)).await?;
        let mut other = listener.accept().await?;
        one.abort();
        let mut bytes = [0; 10];
        ensure_eq!(other.read(&mut bytes).await, Err(Error::Reset), "the other side");
        // Without its network's process, whoever waits is told.
        let mut two = here.connect(at(THERE, 7)).await?;
        let waits = sched::spawn(async move { two.read(&mut [0; 10]).await })?;
        time::sleep(Duration::from_millis(20)).await;
        here.process().kill();
        ensure_eq!(waits.await?, Err(Error::Stopped), "who waits for a network that is gone");
        Ok(())
    }
}

kernel_test! {
    /// A datagram for whom nobody answers, or to whom there is no way, holds up those behind it no longer than a while: anybody can make a server answer to such an address.
    async fn a_datagram_for_nobody_holds_up_no_other() -> Outcome {
        let (here, there, _cable) = pair(Faults::none())?;
        let mut server = here.bind(9, 2, 200).await?;
        let mut client = there.bind(9, 4, 400).await?;
        let nobody = core::net::Ipv4Addr::new(10, 0, 0, 77);
        let nowhere = core::net::Ipv4Addr::new(192, 0, 2, 1);
        for (count, lost) in [nobody, nowhere].into_iter().enumerate() {
            server.send_to(b"lost", at(lost, 9)).await?;
            let sends = async {
                loop {
                    server.send_to(&[count as u8], at(THERE, 9)).await?;
                    time::sleep(Duration::from_millis(100)).await;
                }
            };
            let comes = async {
                let mut byte = [0; 4];
                // Some of the round before may come late.
                while client.receive_from(&mut byte).await?.0 != 1 || byte[0] != count as u8 {}
                Ok::<(), Error>(())
            };
            let (mut sends, mut comes) = (core::pin::pin!(sends), core::pin::pin!(comes));
            let outcome: Result<(), Error> = time::timeout(HANGS_AFTER, core::future::poll_fn(|context| {
                use core::future::Future;
                if let core::task::Poll::Ready(outcome) = comes.as_mut().poll(context) {
                    return core::task::Poll::Ready(outcome);
                }
                sends.as_mut().poll(context)
            })).await?;
            outcome?;
            // On a host that stands still for seconds others are, too.
            ensure!(here.statistics().await?.unreachable > count as u64, "none was given up");
        }
        Ok(())
    }
}

kernel_test! {
    /// Where there is no place for a datagram there is one all the same, so nobody waits for ever.
    async fn room_for_no_datagram_is_room_for_one() -> Outcome {
        let (here, there, _cable) = pair(Faults::none())?;
        let mut client = there.bind(9, 0, 100).await?;
        let mut server = here.bind(9, 0, 100).await?;
        time::timeout(HANGS_AFTER, server.send_to(b"one", at(THERE, 9))).await??;
        let mut bytes = [0; 10];
        let (count, _) = time::timeout(HANGS_AFTER, client.receive_from(&mut bytes)).await??;
        ensure_eq!(&bytes[..count], b"one", "what came");
        Ok(())
    }
}

kernel_test! {
    /// The longest and the shortest times, and more sockets than can be, end no network.
    async fn no_setting_ends_a_network() -> Outcome {
        let all = |time, address| Config {
            keep_alive: Some(time),
            timeout: time,
            half_open: time,
            linger: time,
            ..Config::fixed(address, 24)
        };
        for time in [Duration::ZERO, Duration::MAX] {
            let (here, there) = (Network::start(all(time, HERE))?, Network::start(all(time, THERE))?);
            let _cable = magpie_net::Cable::connect(&here, &there, Faults::none())?;
            let mut listener = there.listen(7, 2).await?;
            let connected = time::timeout(HANGS_AFTER, here.connect(at(THERE, 7))).await?;
            if time > Duration::ZERO {
                let mut stream = connected?;
                let other = listener.accept().await?;
                stream.write_all(b"x").await?;
                drop(other);
                drop(stream);
            }
            drop(listener);
            for network in [here, there] {
                // Twice, so that it has served what was dropped.
                for _ in 0..2 {
                    network.statistics().await?;
                }
                ensure!(!network.process().is_done(), "a network has ended");
            }
        }
        for sockets in [0, usize::MAX - 1, usize::MAX] {
            let started = Network::start(Config { sockets, ..Config::fixed(HERE, 24) });
            match started {
                Ok(network) => {
                    ensure_eq!(sockets, 0, "started with so many sockets");
                    ensure_eq!(network.bind(1, 1, 1).await.map(drop), Err(Error::TooMany), "without places");
                }
                Err(error) => ensure_eq!(error, Error::OutOfMemory, "too many sockets"),
            }
        }
        Ok(())
    }
}
