//! Names, asked of a server that is honest, silent, or lies; and pings.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::future::{Future, poll_fn};
use core::net::Ipv4Addr;
use core::pin::{Pin, pin};
use core::task::Poll;
use core::time::Duration;

use magpie::{sched, time};
use magpie_net::{Addressing, Cable, Config, Error, Faults, Network, UdpSocket};
use magpie_tests::{comes, ensure, ensure_eq, expect_panic, kernel_test};

use crate::by_hand::{Hand, frame, sum};
use crate::common::{HERE, THERE};

/// What the server knows.
const NAME: &str = "magpie.test";
const ADDRESS: [u8; 4] = [10, 0, 0, 77];
/// For what takes milliseconds: it decides nothing but that a test ends.
const PATIENCE: Duration = Duration::from_secs(50);
/// DNS.
const PORT: u16 = 53;

/// An answer to a question: the same with the address behind it, or with that error.
fn answer(question: &[u8], error: u8) -> Vec<u8> {
    let mut answer = question.to_vec();
    (answer[2], answer[3]) = (0x81, 0x80 | error);
    if error == 0 {
        answer[7] = 1;
        // The name of the question, an address, of the Internet, for a minute, of four bytes.
        answer.extend_from_slice(&[0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4]);
        answer.extend_from_slice(&ADDRESS);
    }
    answer
}

/// The name that is asked for, with a dot behind each part.
fn asked(question: &[u8]) -> Vec<u8> {
    let mut name = Vec::new();
    let mut rest = &question[12..];
    while let Some((&length, parts)) = rest.split_first()
        && length > 0
        && parts.len() > usize::from(length)
    {
        name.extend_from_slice(&parts[..usize::from(length)]);
        name.push(b'.');
        rest = &parts[usize::from(length)..];
    }
    name
}

/// A server that knows one name. Before each answer it says much that is wrong.
async fn serve(mut socket: UdpSocket) -> Result<(), Error> {
    let mut bytes = [0; 512];
    loop {
        let (count, from) = socket.receive_from(&mut bytes).await?;
        let question = &bytes[..count];
        let is_known = asked(question) == b"magpie.test.";
        // Of another question, cut off, and with a name that leads to itself.
        let mut other = answer(question, 0);
        other[0] ^= 0xff;
        socket.send_to(&other, from).await?;
        for cut in [0, 1, 11, 12, 13, count - 1] {
            socket.send_to(&answer(question, 0)[..cut], from).await?;
        }
        let mut circle = answer(question, 0);
        circle[12..14].copy_from_slice(&[0xc0, 12]);
        socket.send_to(&circle, from).await?;
        socket.send_to(&answer(question, if is_known { 0 } else { 3 }), from).await?;
    }
}

/// Two networks, of which the first asks the other for names.
fn asking() -> Result<(Network, Network, Cable), Error> {
    let addressing = Addressing::Fixed { address: HERE, prefix: 24, gateway: None, names: Some(THERE) };
    let here = Network::start(Config { addressing, ..Config::dhcp() })?;
    let there = Network::start(Config::fixed(THERE, 24))?;
    let cable = Cable::connect(&here, &there, Faults::none())?;
    Ok((here, there, cable))
}

kernel_test! {
    /// What is known, and what is not; many ask at once.
    async fn names_are_asked_for() -> Outcome {
        let (here, there, _cable) = asking()?;
        sched::spawn(serve(there.bind(PORT, 32, 16 << 10).await?))?;
        for _ in 0..20 {
            ensure_eq!(here.resolve(NAME).await, Ok(Ipv4Addr::from(ADDRESS)), "a name");
            ensure_eq!(here.resolve("nobody.test").await, Err(Error::NoSuchName), "one that nobody has");
        }
        ensure_eq!(here.resolve("10.1.2.3").await, Ok(Ipv4Addr::new(10, 1, 2, 3)), "an address");
        let mut askers = Vec::new();
        for _ in 0..6 {
            let here = here.clone();
            askers.push(sched::spawn(async move { here.resolve(NAME).await })?);
        }
        for asker in askers {
            ensure_eq!(asker.await?, Ok(Ipv4Addr::from(ADDRESS)), "one of several");
        }
        Ok(())
    }
}

kernel_test! {
    /// Names that cannot be are refused, here or by the server.
    async fn odd_names_are_refused() -> Outcome {
        let (here, there, _cable) = asking()?;
        sched::spawn(serve(there.bind(PORT, 32, 16 << 10).await?))?;
        let long = [b'a'; 300];
        let long = core::str::from_utf8(&long)?;
        for odd in ["", ".", "..", "a..b", &long[..63], &long[..64], long] {
            let found = time::timeout(PATIENCE, here.resolve(odd)).await?;
            ensure_eq!(found, Err(Error::NoSuchName), "an odd name");
        }
        Ok(())
    }
}

/// Asks, and whether there is no answer by the time that the network has looked at the question: what is asked next is answered later.
async fn keeps_waiting<F: Future>(mut asks: Pin<&mut F>, network: &Network) -> Result<bool, Error> {
    let mut waits = true;
    for _ in 0..2 {
        waits = poll_fn(|context| Poll::Ready(asks.as_mut().poll(context).is_pending())).await;
        network.statistics().await?;
    }
    Ok(waits)
}

kernel_test! {
    /// Who crashes while it waits for an answer, which drops nothing, keeps no place.
    #[machine("a crash ends the program there")]
    async fn who_crashes_asks_no_longer() -> Outcome {
        let (here, there, _cable) = asking()?;
        let _silent = there.bind(PORT, 32, 16 << 10).await?;
        for _ in 0..20 {
            let network = here.clone();
            let crashes = sched::spawn(async move {
                let asks = pin!(network.resolve(NAME));
                if keeps_waiting(asks, &network).await? {
                    expect_panic("on purpose");
                    panic!("on purpose");
                }
                Ok::<(), Error>(())
            })?;
            ensure!(crashes.await.is_err(), "it did not crash");
        }
        let asks = pin!(here.resolve(NAME));
        ensure!(keeps_waiting(asks, &here).await?, "those that have crashed keep their places");
        Ok(())
    }
}

kernel_test! {
    /// Who asks may pass the waiting on and end.
    async fn another_may_wait_for_the_answer() -> Outcome {
        let (here, there, _cable) = asking()?;
        let socket = there.bind(PORT, 32, 16 << 10).await?;
        let network = here.clone();
        let begins = sched::spawn(async move {
            let asked = network.clone();
            let mut asks = Box::pin(async move { asked.resolve(NAME).await });
            let waits = keeps_waiting(asks.as_mut(), &network).await;
            (waits, asks)
        })?;
        let (waits, asks) = begins.await?;
        ensure_eq!(waits, Ok(true), "whether it is asked");
        // The network has looked at it since who asked has ended.
        here.statistics().await?;
        sched::spawn(serve(socket))?;
        ensure_eq!(asks.await, Ok(Ipv4Addr::from(ADDRESS)), "the answer");
        Ok(())
    }
}

kernel_test! {
    /// Of questions there are as many at a time as there are places, and who gives up waiting leaves its place.
    async fn questions_are_bounded() -> Outcome {
        let (here, there, _cable) = asking()?;
        let _silent = there.bind(PORT, 32, 16 << 10).await?;
        for _ in 0..5 {
            let mut askers = Vec::new();
            for _ in 0..12 {
                let here = here.clone();
                askers.push(sched::spawn(async move { here.resolve(NAME).await })?);
            }
            let refused = || askers.iter().filter(|asker| asker.process().is_done()).count();
            comes(|| refused() == 4, "of twelve questions not four were too many").await?;
            let mut refused = 0;
            for asker in askers {
                // One that is done already stays so.
                asker.process().kill();
                refused += u32::from(asker.await == Ok(Err(Error::TooMany)));
            }
            ensure_eq!(refused, 4, "that were too many");
        }
        Ok(())
    }
}

/// A ping's or its answer's packet, with its check sums.
fn echo(from: Ipv4Addr, to: Ipv4Addr, kind: u8, number: u16, content: &[u8]) -> Vec<u8> {
    let length = (28 + content.len()) as u16;
    let mut packet = Vec::from([0x45, 0]);
    packet.extend_from_slice(&length.to_be_bytes());
    packet.extend_from_slice(&[0, 0, 0, 0, 64, 1, 0, 0]);
    packet.extend_from_slice(&from.octets());
    packet.extend_from_slice(&to.octets());
    let check = sum(&[&packet]);
    packet[10..12].copy_from_slice(&check.to_be_bytes());
    packet.extend_from_slice(&[kind, 0, 0, 0, 0x12, 0x34]);
    packet.extend_from_slice(&number.to_be_bytes());
    packet.extend_from_slice(content);
    let check = sum(&[&packet[20..]]);
    packet[22..24].copy_from_slice(&check.to_be_bytes());
    packet
}

kernel_test! {
    /// Pings are answered with what they bring, of any length that a frame has; broken ones are not.
    async fn pings_are_answered() -> Outcome {
        let there = Network::start(Config::fixed(THERE, 24))?;
        let mut hand = Hand::new(&there)?;
        hand.introduce().await?;
        let content: Vec<u8> = (0..1472).map(|at| (at * 7) as u8).collect();
        for (number, length) in [(1, 0), (2, 1), (3, 56), (4, 1471), (5, 1472)] {
            // One with a wrong sum before, which is not heard.
            let mut broken = frame([8, 0], &echo(HERE, THERE, 8, 99, &content[..length]));
            broken[37] ^= 1;
            hand.receive(&broken).await?;
            hand.receive(&frame([8, 0], &echo(HERE, THERE, 8, number, &content[..length]))).await?;
            let told = hand.hear().await?;
            let answer = echo(THERE, HERE, 0, number, &content[..length]);
            // What the network chooses for itself is the packet's number and how far it may go, and so its sum.
            ensure_eq!(told.len(), 14 + answer.len(), "bytes of the answer");
            ensure!(told[..6] == [2, 0, 0, 0, 9, 1] && told[26..] == answer[12..], "the answer to ping {number}");
        }
        Ok(())
    }
}
