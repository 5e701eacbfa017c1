//! Both sides have closed, and one has more to say than the other takes.

use alloc::vec;

use magpie::sched;
use magpie_net::{Config, Network};
use magpie_tests::{Failure, Outcome, ensure, ensure_eq, kernel_test};

use crate::by_hand::{Hand, Segment, flags};
use crate::common::{HERE, THERE, bytes};

const PORT: u16 = 7;
/// What the other side takes at once: two segments of the size that is taken for granted.
const WINDOW: u16 = 1000;
/// So it has sent a request, its end, and nothing else.
const BEGIN: u32 = 0x7700_0000;

/// The other side, which is slow.
struct Slow {
    hand: Hand,
    /// The number that it expects.
    next: u32,
    count: usize,
    has_ended: bool,
}

/// What the network has said to it.
struct Said {
    number: u32,
    acknowledged: u32,
    flags: u8,
    data: vec::Vec<u8>,
}

impl Slow {
    async fn tell(&mut self, number: u32, flags: u8, window: u16) -> Outcome {
        let from = (HERE.octets(), 40_000);
        let frame = Segment { from, to: PORT, numbers: (number, self.next), flags, window }.frame();
        self.hand.receive(&frame).await
    }

    /// The next segment.
    async fn hear(&mut self) -> Result<Said, Failure> {
        loop {
            let frame = self.hand.hear().await?;
            if frame[12..14] != [8, 0] || frame[23] != 6 {
                continue;
            }
            let end = 14 + usize::from(u16::from_be_bytes([frame[16], frame[17]]));
            let segment = &frame[34..end];
            let number = |at: usize| u32::from_be_bytes([0, 1, 2, 3].map(|byte| segment[at + byte]));
            return Ok(Said {
                number: number(4),
                acknowledged: number(8),
                flags: segment[13],
                data: segment[usize::from(segment[12] >> 4) * 4..].to_vec(),
            });
        }
    }

    /// Takes what fits into the window.
    async fn take(&mut self) -> Outcome {
        let end = self.count + usize::from(WINDOW);
        let mut again = 0;
        while self.count < end && !self.has_ended {
            let said = self.hear().await?;
            let has_ended = said.flags & flags::FIN != 0;
            if self.count == 0 && said.data.is_empty() {
                // It has answered an end that was said twice. No window has been opened yet.
                continue;
            }
            ensure!(
                has_ended || !said.data.is_empty(),
                "a window that is open was not heard of after {} bytes",
                self.count
            );
            // If the host stands still, a segment comes again, or a probe comes first and then its byte again in front of what is new.
            let known = self.next.wrapping_sub(said.number) as usize;
            let Some(data) = said.data.get(known..).filter(|data| has_ended || !data.is_empty()) else {
                again += 1;
                ensure!(
                    again < 100,
                    "number {} comes again and again, {} is expected",
                    said.number,
                    self.next
                );
                // A receiver says what it has, because the sender may not know that the window is open.
                let open = (end - self.count) as u16;
                self.tell(BEGIN + 2, flags::ACK, open).await?;
                continue;
            };
            let mut expected = vec![0; data.len()];
            bytes(1, self.count, &mut expected);
            ensure!(data == expected, "a byte is another");
            self.count += data.len();
            self.next = self.next.wrapping_add(data.len() as u32 + u32::from(has_ended));
            self.has_ended = has_ended;
        }
        Ok(())
    }
}

kernel_test! {
    /// Who has closed still hears that the other side, which has closed, too, takes more: what is left goes out at once, and not in probes.
    async fn a_slow_reader_gets_the_rest_without_probes() -> Outcome {
        const COUNT: usize = 12_000;
        let there = Network::start(Config::fixed(THERE, 24))?;
        let mut listener = there.listen(PORT, 1).await?;
        let mut slow = Slow { hand: Hand::new(&there)?, next: 0, count: 0, has_ended: false };
        slow.hand.introduce().await?;
        slow.tell(BEGIN, flags::SYN, WINDOW).await?;
        slow.next = slow.hear().await?.number.wrapping_add(1);
        slow.tell(BEGIN + 1, flags::ACK | flags::FIN, WINDOW).await?;
        let mut stream = listener.accept().await?;
        while slow.hear().await?.acknowledged != BEGIN + 2 {
            // It has not heard the end yet.
            slow.tell(BEGIN + 1, flags::ACK | flags::FIN, WINDOW).await?;
        }
        let mut all = vec![0; COUNT];
        bytes(1, 0, &mut all);
        stream.write_all(&all).await?;
        // A process of its own: it goes on when it hears that the write is done, which nobody knows how soon that is.
        let closes = sched::spawn(stream.close())?;
        // What is asked for later is answered later, so most often the network has heard by then that it closes.
        for _ in 0..2 {
            there.statistics().await?;
        }
        ensure!(!closes.process().is_done(), "it has closed with {COUNT} bytes to say");
        while !slow.has_ended {
            slow.take().await?;
            for window in [0, WINDOW] {
                slow.tell(BEGIN + 2, flags::ACK, window).await?;
            }
        }
        ensure_eq!(slow.count, COUNT, "bytes that came");
        closes.await??;
        Ok(())
    }
}
