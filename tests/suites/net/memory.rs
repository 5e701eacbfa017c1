//! Memory is used up while connections are open: what needs some is refused, nothing is lost, and all goes on afterwards.

use alloc::vec;

use magpie::sched::{self, yield_now};
use magpie_net::{Error, Faults, TcpListener, TcpStream};
use magpie_tests::{HeapExhauster, ensure, ensure_eq, kernel_test};

use crate::common::{THERE, at, bytes, pair, there_and_back};

/// What is tried again as long as there is no memory for it.
macro_rules! patient {
    ($tried:expr) => {
        loop {
            match $tried.await {
                Err(Error::OutOfMemory) => yield_now().await,
                done => break done,
            }
        }
    };
}

/// Sends back what comes on one connection after another.
async fn echo(mut listener: TcpListener) -> Result<(), Error> {
    let mut bytes = vec![0; 1000];
    loop {
        let mut stream = patient!(listener.accept())?;
        loop {
            let count = patient!(stream.read(&mut bytes))?;
            if count == 0 {
                break;
            }
            let mut sent = 0;
            while sent < count {
                sent += patient!(stream.write(&bytes[sent..count]))?;
            }
        }
        patient!(stream.shutdown())?;
    }
}

/// Sends some bytes of the sequence and reads them back.
async fn exchange(stream: &mut TcpStream, block: &[u8], back: &mut [u8]) -> Result<bool, Error> {
    let count = block.len();
    let mut sent = 0;
    while sent < count {
        sent += patient!(stream.write(&block[sent..]))?;
    }
    let mut come = 0;
    while come < count {
        let more = patient!(stream.read(&mut back[come..]))?;
        if more == 0 {
            return Err(Error::Reset);
        }
        come += more;
    }
    Ok(back == block)
}

kernel_test! {
    /// Connections and the cable outlive it, byte for byte; new ones are refused, and succeed afterwards.
    #[machine("the host's memory is not used up")]
    async fn it_is_used_up() -> Outcome {
        let (here, there, cable) = pair(Faults::none())?;
        sched::spawn(echo(there.listen(7, 4).await?))?;
        let mut stream = here.connect(at(THERE, 7)).await?;
        let (mut at_byte, mut refused) = (0, 0);
        for _ in 0..2 {
            // What the exchange needs itself is there before.
            let network = here.clone();
            let (mut block, mut back) = (vec![0; 40_000], vec![0; 40_000]);
            bytes(1, at_byte, &mut block);
            let mut work = sched::spawn(async move {
                let is_right = exchange(&mut stream, &block, &mut back).await?;
                Ok::<_, Error>((stream, is_right))
            })?;
            at_byte += 40_000;
            yield_now().await;
            {
                let mut exhauster = HeapExhauster::everything(16);
                for _ in 0..40 {
                    refused += u32::from(network.connect(at(THERE, 7)).await.map(drop) == Err(Error::OutOfMemory));
                    exhauster.take_more(16);
                    yield_now().await;
                }
            }
            let is_right;
            (stream, is_right) = (&mut work).await??;
            ensure!(is_right, "other bytes came back");
        }
        ensure!(refused > 20, "there was memory: {refused} were refused");
        ensure!(!cable.process().is_done(), "the cable has ended");
        patient!(stream.shutdown())?;
        ensure_eq!(stream.read(&mut [0; 10]).await, Ok(0), "the end");
        there_and_back(here.connect(at(THERE, 7)).await?, 3, 20_000).await
    }
}
