//! Frames by hand: malformed ones, floods, and requests from nowhere.

use core::time::Duration;

use magpie::internals::Random;
use magpie::{sched, time};
use magpie_net::{Cable, Config, FRAME_BYTES, Faults, Network};
use magpie_tests::{amount, ensure, kernel_test};

use crate::by_hand::{Hand, Segment, flags, sum};
use crate::common::{HERE, THERE, at, echo, there_and_back};

/// A request for a connection.
fn request(from: [u8; 4], port: u16) -> [u8; 54] {
    Segment { from: (from, port), to: 7, numbers: (0x7700_0000, 0), flags: flags::SYN, window: 0x2000 }
        .frame()
}

kernel_test! {
    /// Half-open connections from a flood keep others waiting, and not out.
    async fn a_flood_of_requests_is_got_over() -> Outcome {
        let there = Network::start(Config { half_open: Duration::from_secs(2), ..Config::fixed(THERE, 24) })?;
        sched::spawn(echo(there.listen(7, 4).await?))?;
        let mut hand = Hand::new(&there)?;
        for number in 0..amount("flood", 2000) {
            let from = [10, 0, 0, 100 + (number % 100) as u8];
            hand.receive(&request(from, 1024 + number as u16)).await?;
        }
        let statistics = there.statistics().await?;
        ensure!(statistics.backlog_full > 0, "nobody was kept waiting: {statistics:?}");
        ensure!(statistics.sockets <= 5, "{} sockets", statistics.sockets);
        drop(hand);
        let here = Network::start(Config::fixed(HERE, 24))?;
        let _cable = Cable::connect(&here, &there, Faults::none())?;
        let stream = time::timeout(Duration::from_secs(30), here.connect(at(THERE, 7))).await??;
        there_and_back(stream, 1, 10_000).await
    }
}

kernel_test! {
    /// Whatever comes, the network lives. Random bytes, and right frames with some of them changed.
    async fn malformed_frames_are_no_trouble() -> Outcome {
        let there = Network::start(Config::fixed(THERE, 24))?;
        sched::spawn(echo(there.listen(7, 4).await?))?;
        let mut hand = Hand::new(&there)?;
        let random = Random::new(amount("seed", 1), 0);
        let mut bytes = [0; FRAME_BYTES];
        for round in 0..amount("frames", 20_000) {
            let length = if round % 3 == 0 {
                let length = random.below(200);
                bytes[..length].fill_with(|| random.bits() as u8);
                if length > 14 {
                    // For this card, so that it is not thrown away at once.
                    bytes[..6].copy_from_slice(&[2, 0, 0, 0, 0, 2]);
                    bytes[12..14].copy_from_slice(&if random.below(2) == 0 { [8, 0] } else { [8, 6] });
                }
                length
            } else {
                let frame = request([10, 0, 0, 7], 4000 + random.below(4) as u16);
                bytes[..frame.len()].copy_from_slice(&frame);
                for _ in 0..random.below(4) {
                    bytes[14 + random.below(frame.len() - 14)] = random.bits() as u8;
                }
                // The header's sum made right again, so that what is behind it is looked at.
                bytes[24..26].fill(0);
                let check = sum(&[&bytes[14..34]]);
                bytes[24..26].copy_from_slice(&check.to_be_bytes());
                frame.len() - random.below(3)
            };
            let frame = bytes;
            hand.receive(&frame[..length]).await?;
        }
        let statistics = there.statistics().await?;
        ensure!(statistics.received >= amount("frames", 20_000), "{statistics:?}");
        drop(hand);
        let here = Network::start(Config::fixed(HERE, 24))?;
        let _cable = Cable::connect(&here, &there, Faults::none())?;
        let stream = time::timeout(Duration::from_secs(30), here.connect(at(THERE, 7))).await??;
        there_and_back(stream, 1, 10_000).await
    }
}
