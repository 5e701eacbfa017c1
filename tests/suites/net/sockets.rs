//! Streams and datagrams that are used as they should be.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicUsize, Ordering};
use core::time::Duration;

use magpie::{sched, time};
use magpie_net::{Cable, Config, Error, Faults, Network};
use magpie_tests::{amount, ensure, ensure_eq, kernel_test};

use crate::common::{HERE, THERE, at, echo, pair, there_and_back};

kernel_test! {
    async fn what_is_sent_comes_back() -> Outcome {
        let (here, there, _cable) = pair(Faults::none())?;
        sched::spawn(echo(there.listen(7, 4).await?))?;
        there_and_back(here.connect(at(THERE, 7)).await?, 1, 1 << 20).await
    }
}

kernel_test! {
    /// 10 MB: it takes as long as the clock says, because a lost last frame is sent again after a second.
    async fn ten_megabytes_come_back_over_a_bad_cable() -> Outcome {
        let faults = Faults { lost: 2, doubled: 5, reordered: 10, corrupted: 2, seed: amount("seed", 7) };
        let (here, there, cable) = pair(faults)?;
        sched::spawn(echo(there.listen(7, 4).await?))?;
        let count = amount("bytes", 10_000_000) as usize;
        there_and_back(here.connect(at(THERE, 7)).await?, 1, count).await?;
        let carried = cable.carried();
        ensure!(carried.lost > 0 && carried.doubled > 0 && carried.reordered > 0 && carried.corrupted > 0,
            "the cable was good: {carried:?}");
        Ok(())
    }
}

kernel_test! {
    async fn nobody_listens() -> Outcome {
        let (here, _there, _cable) = pair(Faults::none())?;
        ensure_eq!(here.connect(at(THERE, 80)).await.map(drop), Err(Error::Refused), "no listener");
        ensure_eq!(here.connect(at(THERE, 0)).await.map(drop), Err(Error::NoSuchAddress), "no port");
        Ok(())
    }
}

kernel_test! {
    /// 200 at a time, until there were 1000. Memory is as before.
    async fn many_come_and_go() -> Outcome {
        let config = |address| Config {
            sockets: 600, receive_bytes: 4096, send_bytes: 4096, ..Config::fixed(address, 24)
        };
        let (here, there) = (Network::start(config(HERE))?, Network::start(config(THERE))?);
        let _cable = Cable::connect(&here, &there, Faults::none())?;
        let store = 256;
        sched::spawn(echo(there.listen(7, store).await?))?;
        let (all, at_once) = (amount("connections", 1000) as usize, 200);
        let (mut done, mut most) = (0, 0);
        let open = Arc::new(AtomicUsize::new(0));
        let mut used = None;
        while done < all {
            let mut visitors = Vec::new();
            for number in 0..at_once {
                let (here, open) = (here.clone(), open.clone());
                visitors.push(sched::spawn(async move {
                    let stream = here.connect(at(THERE, 7)).await?;
                    // A count by itself.
                    open.fetch_add(1, Ordering::Relaxed);
                    // Until all are open, or a time has passed.
                    let begin = time::Instant::now();
                    while open.load(Ordering::Relaxed) % at_once != 0 {
                        if begin.elapsed() > Duration::from_secs(60) {
                            return Err("not all could be opened at once".into());
                        }
                        time::sleep(Duration::from_millis(20)).await;
                    }
                    there_and_back(stream, number as u64, 3000).await
                })?);
            }
            for visitor in visitors {
                visitor.await??;
            }
            done += at_once;
            most = most.max(open.load(Ordering::Relaxed));
            // What rests is the same number after each round.
            let now = there.statistics().await?.sockets;
            ensure!(now <= store + 16 + at_once / 4, "{now} sockets are left after {done}");
            let bytes = crate::common::heap_in_use();
            let first = *used.get_or_insert(bytes);
            ensure!(bytes <= first + (2 << 20), "{bytes} bytes are in use, {first} were after the first {at_once}");
        }
        ensure_eq!(most, done, "connections");
        Ok(())
    }
}

kernel_test! {
    async fn datagrams_come() -> Outcome {
        let (here, there, _cable) = pair(Faults::none())?;
        let mut server = there.bind(53, 8, 8 << 10).await?;
        ensure_eq!(there.bind(53, 1, 100).await.map(drop), Err(Error::PortInUse), "the port");
        let mut client = here.bind(0, 8, 8 << 10).await?;
        let mut bytes = [0; 100];
        // Who gives up waiting loses nothing.
        ensure!(time::timeout(Duration::from_millis(5), server.receive_from(&mut bytes)).await.is_err(), "nothing came");
        client.send_to(b"how late is it", at(THERE, 53)).await?;
        let (count, from) = server.receive_from(&mut bytes).await?;
        ensure_eq!((&bytes[..count], from), (&b"how late is it"[..], at(HERE, client.port())), "the question");
        server.send_to(b"too late", from).await?;
        let (count, from) = client.receive_from(&mut bytes).await?;
        ensure_eq!((&bytes[..count], from), (&b"too late"[..], at(THERE, 53)), "the answer");
        let long = [0; 9000];
        ensure_eq!(client.send_to(&long, at(THERE, 53)).await, Err(Error::TooLong), "a long one");
        Ok(())
    }
}

kernel_test! {
    async fn places_are_bounded() -> Outcome {
        let (here, there, _cable) = pair(Faults::none())?;
        let small = Network::start(Config { sockets: 2, ..Config::fixed(HERE, 24) })?;
        let _one = small.bind(1, 1, 100).await?;
        let two = small.bind(2, 1, 100).await?;
        ensure_eq!(small.bind(3, 1, 100).await.map(drop), Err(Error::TooMany), "the third");
        ensure_eq!(small.listen(3, 1).await.map(drop), Err(Error::TooMany), "a listener");
        drop(two);
        let _again = small.bind(3, 1, 100).await?;
        let _listener = here.listen(80, 1).await?;
        ensure_eq!(here.listen(80, 1).await.map(drop), Err(Error::PortInUse), "the port");
        let _other = there.listen(80, 1).await?;
        Ok(())
    }
}
