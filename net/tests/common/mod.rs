//! What tests of sockets share, those on the host and those in the booted kernel (`tests/suites/net/`).

use core::net::{Ipv4Addr, SocketAddrV4};

use magpie::sched;
use magpie_net::{Cable, Config, Error, Faults, Network, TcpListener};

pub const HERE: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
pub const THERE: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);

pub const fn at(address: Ipv4Addr, port: u16) -> SocketAddrV4 {
    SocketAddrV4::new(address, port)
}

/// Two networks and the cable between them. Their seeds are the same each time, so that a run can be repeated.
pub fn pair(faults: Faults) -> Result<(Network, Network, Cable), Error> {
    let here = Network::start(Config { seed: 1, ..Config::fixed(HERE, 24) })?;
    let there = Network::start(Config { seed: 2, ..Config::fixed(THERE, 24) })?;
    let cable = Cable::connect(&here, &there, faults)?;
    Ok((here, there, cable))
}

/// Bytes of a long sequence that does not repeat itself soon, from there on.
pub fn bytes(seed: u64, from: usize, into: &mut [u8]) {
    for (at, byte) in into.iter_mut().enumerate() {
        let at = (from + at) as u64;
        *byte = ((at ^ seed).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8;
    }
}

/// Sends back what comes, for whoever comes, however many that are.
pub async fn echo(mut listener: TcpListener) -> Result<(), Error> {
    loop {
        let mut stream = listener.accept_or_wait().await?;
        sched::spawn(async move {
            let mut bytes = [0; 2048];
            loop {
                let count = stream.read(&mut bytes).await?;
                if count == 0 {
                    return stream.close().await;
                }
                stream.write_all(&bytes[..count]).await?;
            }
        })?;
    }
}
