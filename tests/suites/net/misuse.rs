//! Those who do not read, do not answer, or ask without end.

use core::time::Duration;

use magpie::{sched, time};
use magpie_net::{Config, Error, Faults, Network};
use magpie_tests::{ensure, ensure_eq, kernel_test};

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
            sched::spawn(crate::frames::hole(network))?;
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
