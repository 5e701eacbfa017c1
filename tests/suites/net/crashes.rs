//! Crashes of those who hold sockets, and of the link.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;

use magpie::{sched, time};
use magpie_net::{Cable, Error, Faults};
use magpie_tests::{ensure, ensure_eq, expect_panic, kernel_test};

use crate::common::{THERE, at, echo, pair, there_and_back};

kernel_test! {
    #[machine("a crash ends the program there")]
    async fn who_crashes_leaves_no_connection() -> Outcome {
        let (here, there, _cable) = pair(Faults::none())?;
        let mut listener = there.listen(7, 4).await?;
        let before = here.statistics().await?.sockets;
        for round in 0..20 {
            let network = here.clone();
            // A connection that is reset before it is accepted is none.
            let is_accepted = Arc::new(AtomicBool::new(false));
            let may_crash = is_accepted.clone();
            let crashes = sched::spawn(async move {
                let mut stream = network.connect(at(THERE, 7)).await?;
                stream.write_all(b"x").await?;
                while !may_crash.load(Ordering::Relaxed) {
                    time::sleep(Duration::from_millis(1)).await;
                }
                if round >= 0 {
                    expect_panic("on purpose");
                    panic!("on purpose");
                }
                stream.close().await
            })?;
            let mut other = listener.accept().await?;
            let mut bytes = [0; 10];
            ensure_eq!(other.read(&mut bytes).await, Ok(1), "before the crash");
            is_accepted.store(true, Ordering::Relaxed);
            let told = time::timeout(Duration::from_secs(10), other.read(&mut bytes)).await?;
            ensure_eq!(told, Err(Error::Reset), "after it");
            ensure!(crashes.await.is_err(), "it crashed");
        }
        let statistics = here.statistics().await?;
        ensure_eq!((statistics.sockets, statistics.owner_crashed), (before, 20), "sockets, and crashes");
        Ok(())
    }
}

kernel_test! {
    async fn who_is_killed_leaves_no_connection() -> Outcome {
        let (here, there, _cable) = pair(Faults::none())?;
        let mut listener = there.listen(7, 4).await?;
        for _ in 0..20 {
            let network = here.clone();
            let waits = sched::spawn(async move {
                let mut stream = network.connect(at(THERE, 7)).await?;
                stream.write_all(b"x").await?;
                stream.read(&mut [0; 10]).await
            })?;
            let mut other = listener.accept().await?;
            let mut bytes = [0; 10];
            ensure_eq!(other.read(&mut bytes).await, Ok(1), "before the kill");
            waits.process().kill();
            let told = time::timeout(Duration::from_secs(10), other.read(&mut bytes)).await?;
            ensure!(matches!(told, Ok(0) | Err(Error::Reset)), "it was told {told:?}");
        }
        Ok(())
    }
}

kernel_test! {
    /// The link is killed and replaced again and again while bytes are under way.
    async fn connections_outlive_their_link() -> Outcome {
        let (here, there, cable) = pair(Faults::none())?;
        sched::spawn(echo(there.listen(7, 4).await?))?;
        let stream = here.connect(at(THERE, 7)).await?;
        let work = sched::spawn(there_and_back(stream, 5, 3_000_000))?;
        let mut cable = cable;
        let mut killed = 0;
        while !work.process().is_done() && killed < 10 {
            time::sleep(Duration::from_millis(20)).await;
            cable.process().kill();
            killed += 1;
            cable = Cable::connect(&here, &there, Faults::none())?;
        }
        work.await??;
        ensure!(killed > 0, "the link was never killed");
        Ok(())
    }
}
