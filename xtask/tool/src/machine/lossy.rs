//! A bad network between a guest's card and QEMU's own: frames are lost, doubled and overtaken on their way, at random. QEMU connects to both ends here, and
//! what it sends over a stream are frames with their lengths in front.

use anyhow::{Context, Result};
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::Duration;

/// A frame that is to be overtaken waits for so long at most: perhaps nothing comes behind it.
const OVERTAKEN_AFTER: Duration = Duration::from_millis(20);
/// No frame of Ethernet's is longer, with what QEMU may put in front.
const LONGEST_FRAME: usize = 65_536 + 64;
/// Frames that may wait between an end and the other.
const MOST_WAITING: usize = 256;

/// Where QEMU connects, and how bad it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lossy {
    /// The port that is the card's other end, and that of QEMU's own network.
    ports: [u16; 2],
}

impl Lossy {
    /// Of a hundred frames, each way, so many are lost, as many doubled, and as many overtaken by the next. It carries what comes until this tool ends.
    pub fn start(percent: u8) -> Result<Self> {
        let ends = [(); 2].map(|()| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)));
        let [card, network] = ends.map(|end| end.context("no port of this machine can be taken"));
        let ends = [card?, network?];
        let mut ports = [0; 2];
        for (port, end) in ports.iter_mut().zip(&ends) {
            *port = end.local_addr().context("no port of this machine can be taken")?.port();
        }
        thread::spawn(move || {
            // One guest after the other.
            let error = loop {
                if let Err(error) = carry(&ends, percent) {
                    break error;
                }
            };
            eprintln!("xtask: the network between the card and this machine has failed: {error}");
        });
        Ok(Self { ports })
    }

    /// QEMU's words for a network card at one end, with its own network, which has this name, at the other.
    pub fn arguments(&self, network: &str) -> Vec<String> {
        let [card, other] =
            self.ports.map(|port| format!("addr.type=inet,addr.host=127.0.0.1,addr.port={port}"));
        [
            format!("stream,id=net,server=off,{card}"),
            format!("stream,id=lossy,server=off,{other}"),
            format!("hubport,id=here,hubid=0,netdev={network}"),
            "hubport,id=there,hubid=0,netdev=lossy".to_owned(),
        ]
        .into_iter()
        .flat_map(|word| ["-netdev".to_owned(), word])
        .collect()
    }
}

/// Carries frames between those who connect to both ends next, until they have gone.
fn carry(ends: &[TcpListener; 2], percent: u8) -> io::Result<()> {
    let (card, network) = (ends[0].accept()?.0, ends[1].accept()?.0);
    for stream in [&card, &network] {
        stream.set_nodelay(true)?;
    }
    let ways = [(card.try_clone()?, network.try_clone()?, 1), (network, card, 2)];
    thread::scope(|scope| {
        for (from, to, seed) in ways {
            let (sender, frames) = mpsc::sync_channel(MOST_WAITING);
            scope.spawn(move || {
                let mut from = from;
                while let Ok(frame) = read(&mut from) {
                    if sender.send(frame).is_err() {
                        return;
                    }
                }
            });
            // Where QEMU has ended there is nobody to write to.
            scope.spawn(move || pass(&frames, to, &mut Faults { percent, state: seed }));
        }
    });
    Ok(())
}

/// A frame with its length in front.
fn read(from: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut length = [0; 4];
    from.read_exact(&mut length)?;
    let count = u32::from_be_bytes(length) as usize;
    if count > LONGEST_FRAME {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut frame = vec![0; 4 + count];
    frame[..4].copy_from_slice(&length);
    from.read_exact(&mut frame[4..])?;
    Ok(frame)
}

/// Passes frames on, in one way.
fn pass(frames: &Receiver<Vec<u8>>, mut to: impl Write, faults: &mut Faults) {
    let mut overtaken: Option<Vec<u8>> = None;
    loop {
        let come = match overtaken {
            Some(_) => frames.recv_timeout(OVERTAKEN_AFTER),
            None => frames.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        let mut out = Vec::new();
        match come {
            Ok(frame) => match faults.next() {
                Fault::Lost => {}
                Fault::Overtaken if overtaken.is_none() => {
                    overtaken = Some(frame);
                    continue;
                }
                Fault::Doubled => out.extend([frame.clone(), frame]),
                Fault::Overtaken | Fault::None => out.push(frame),
            },
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
        out.extend(overtaken.take());
        if out.iter().any(|frame| to.write_all(frame).is_err()) {
            return;
        }
    }
}

/// What becomes of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    None,
    Lost,
    Doubled,
    Overtaken,
}

/// Which frames meet what, at random from a seed.
struct Faults {
    percent: u8,
    state: u64,
}

impl Faults {
    fn next(&mut self) -> Fault {
        // splitmix64 (Steele, Lea and Flood, 2014).
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let percent = u64::from(self.percent);
        match ((mixed ^ (mixed >> 31)) % 100).checked_div(percent) {
            Some(0) => Fault::Lost,
            Some(1) => Fault::Doubled,
            Some(2) => Fault::Overtaken,
            _ => Fault::None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Fault, Faults, pass, read};
    use std::sync::mpsc;

    #[test]
    fn as_many_frames_meet_each_fault_as_was_said() {
        let mut faults = Faults { percent: 5, state: 1 };
        let met: Vec<_> = (0..10_000).map(|_| faults.next()).collect();
        for fault in [Fault::Lost, Fault::Doubled, Fault::Overtaken] {
            let count = met.iter().filter(|met| **met == fault).count();
            assert!((400..600).contains(&count), "{fault:?}: {count}");
        }
        assert_eq!(Faults { percent: 0, state: 1 }.next(), Fault::None);
    }

    /// What comes out is whole frames, and of those that are not lost each.
    #[test]
    fn frames_come_whole() {
        let frame = |number: u8| {
            let mut frame = vec![0, 0, 0, 3];
            frame.extend([number; 3]);
            frame
        };
        let (sender, frames) = mpsc::sync_channel(256);
        (0..200).for_each(|number| sender.send(frame(number)).unwrap());
        drop(sender);
        let mut out = Vec::new();
        pass(&frames, &mut out, &mut Faults { percent: 10, state: 3 });
        let (mut rest, mut come) = (&out[..], Vec::new());
        while !rest.is_empty() {
            come.push(read(&mut rest).unwrap());
        }
        let lost = (0..200).filter(|number| !come.contains(&frame(*number))).count();
        let doubled = come.len() + lost - 200;
        let overtaken = come.windows(2).filter(|pair| pair[0] > pair[1]).count();
        assert!((5..40).contains(&lost) && doubled > 5 && overtaken > 5, "{lost}, {doubled}, {overtaken}");
    }

    #[test]
    fn a_length_that_no_frame_has_is_an_error() {
        assert!(read(&mut &[0xff, 0, 0, 0, 1][..]).is_err());
    }
}
