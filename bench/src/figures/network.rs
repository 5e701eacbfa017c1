//! Two networks in the kernel, and a cable between them: a datagram there and back, and a stream one way. No device takes part, so all of it is instructions of the cores.

use alloc::boxed::Box;
use alloc::vec;
use core::net::{Ipv4Addr, SocketAddrV4};

use magpie::actor::ExecutorHandle;
use magpie::channel::ProcessMailbox;
use magpie::sched;
use magpie_net::{Cable, Config, Error, Faults, Network};

use super::Go;
use crate::failed::Failed;
use crate::stopwatch;

const HERE: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const THERE: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
const PORT: u16 = 7;
/// Of a datagram, and of what of a stream is one operation.
const DATAGRAM_BYTES: usize = 64;
const PIECE_BYTES: usize = 1024;

/// Two networks and the cable between them. They have no timers while nothing is under way.
fn pair() -> Result<(Network, Network, Cable), Error> {
    let config = |address| Config { keep_alive: None, sockets: 4, seed: 1, ..Config::fixed(address, 24) };
    let (here, there) = (Network::start(config(HERE))?, Network::start(config(THERE))?);
    let cable = Cable::connect(&here, &there, Faults::none())?;
    Ok((here, there, cable))
}

/// Once it is told to go, a process sends so many datagrams, and each comes back before the next is sent.
pub fn prepare_datagrams(_: &ExecutorHandle, parameters: &[u64]) -> Result<Go, Failed> {
    let count = parameters[0];
    let mut told = ProcessMailbox::new(1).map_err(|_| Failed::Memory)?;
    let address = told.address();
    let asks = async move {
        let (here, there, _cable) = pair()?;
        let mut server = there.bind(PORT, 4, 4096).await?;
        sched::spawn(async move {
            let mut bytes = [0; DATAGRAM_BYTES];
            while let Ok((count, from)) = server.receive_from(&mut bytes).await {
                if count == 0 || server.send_to(&bytes[..count], from).await.is_err() {
                    break;
                }
            }
        })?;
        let mut client = here.bind(0, 4, 4096).await?;
        let to = SocketAddrV4::new(THERE, PORT);
        let mut back = [0; DATAGRAM_BYTES];
        // Who has which address is asked before time runs.
        client.send_to(b"?", to).await?;
        client.receive_from(&mut back).await?;
        if told.receive().await.is_none() {
            return Ok(());
        }
        for _ in 0..count {
            client.send_to(&[7; DATAGRAM_BYTES], to).await?;
            client.receive_from(&mut back).await?;
        }
        stopwatch::done();
        // Ends the server.
        client.send_to(&[], to).await
    };
    sched::spawn(asks).map_err(|_| Failed::Memory)?;
    Ok(Box::new(move || {
        stopwatch::begin(1);
        address.send(()).map_err(|_| Failed::Memory)?;
        Ok(count)
    }))
}

/// Once it is told to go, a process writes so many pieces to a connection, and another reads them.
pub fn prepare_stream(_: &ExecutorHandle, parameters: &[u64]) -> Result<Go, Failed> {
    let pieces = parameters[0];
    let mut told = ProcessMailbox::new(1).map_err(|_| Failed::Memory)?;
    let address = told.address();
    let writes = async move {
        let (here, there, _cable) = pair()?;
        let mut listener = there.listen(PORT, 1).await?;
        let reads = sched::spawn(async move {
            let mut stream = listener.accept().await?;
            let mut bytes = vec![0; 4 * PIECE_BYTES];
            let mut left = pieces as usize * PIECE_BYTES;
            while left > 0 {
                let count = stream.read(&mut bytes).await?;
                if count == 0 {
                    return Err(Error::Reset);
                }
                left = left.saturating_sub(count);
            }
            stopwatch::done();
            stream.abort();
            Ok(())
        })?;
        let mut stream = here.connect(SocketAddrV4::new(THERE, PORT)).await?;
        if told.receive().await.is_none() {
            return Ok(());
        }
        let block = vec![7; 4 * PIECE_BYTES];
        let mut left = pieces as usize * PIECE_BYTES;
        while left > 0 {
            let now = left.min(block.len());
            stream.write_all(&block[..now]).await?;
            left -= now;
        }
        // It resets the connection when all has come.
        let _ = reads.await;
        stream.abort();
        Ok::<(), Error>(())
    };
    sched::spawn(writes).map_err(|_| Failed::Memory)?;
    Ok(Box::new(move || {
        stopwatch::begin(1);
        address.send(()).map_err(|_| Failed::Memory)?;
        Ok(pieces)
    }))
}
