//! SLIP (RFC 1055): packets on a line of bytes, each between two marks. Bytes in, packets out, and the other way; no I/O, and no sum: what was garbled is found by those
//! of IP and TCP.
//!
//! ```text
//! END packet END        in the packet, END is sent as ESC ESC_END, and ESC as ESC ESC_ESC
//! ```
//!
//! The mark in front ends whatever noise came before. Whatever comes, the next mark finds both sides together again.
//!
//! The host tool has this file, too.

/// Between packets.
pub const END: u8 = 0xc0;
/// The next byte stands for another.
const ESC: u8 = 0xdb;
const ESC_END: u8 = 0xdc;
const ESC_ESC: u8 = 0xdd;

/// Where a packet is put together.
#[derive(Debug, Default)]
pub struct Decoder {
    length: usize,
    is_escaped: bool,
    /// It is too long, or garbled: nothing of it counts, up to the next mark.
    is_spoilt: bool,
}

impl Decoder {
    /// The next byte of the line. What belongs to a packet is written into `room`, which is the same until there is a whole one; then it returns how long that is.
    pub fn push(&mut self, byte: u8, room: &mut [u8]) -> Option<usize> {
        if byte == END {
            let Self { length, is_escaped, is_spoilt } = core::mem::take(self);
            return (length > 0 && !is_escaped && !is_spoilt).then_some(length);
        }
        let byte = match (core::mem::take(&mut self.is_escaped), byte) {
            (true, ESC_END) => END,
            (true, ESC_ESC) => ESC,
            (true, _) => {
                self.spoil();
                return None;
            }
            (false, ESC) => {
                self.is_escaped = true;
                return None;
            }
            (false, byte) => byte,
        };
        match room.get_mut(self.length) {
            Some(place) => {
                *place = byte;
                self.length += 1;
            }
            None => self.spoil(),
        }
        None
    }

    /// Something was lost on the way, or garbled: the packet in the middle of which that was is none.
    pub fn spoil(&mut self) {
        self.is_spoilt = true;
    }
}

/// How far a packet has gone.
#[derive(Clone, Copy, Debug, Default)]
pub struct Encoder {
    stage: Stage,
    at: usize,
}

#[derive(Clone, Copy, Debug, Default)]
enum Stage {
    #[default]
    Before,
    Within,
    /// Half of what stands for the byte is sent.
    Escaped,
    After,
}

impl Encoder {
    /// The next byte to be sent of this packet, which is the same until it has gone: then there is none.
    pub fn next(&mut self, packet: &[u8]) -> Option<u8> {
        match self.stage {
            Stage::Before => {
                self.stage = Stage::Within;
                return Some(END);
            }
            Stage::After => return None,
            Stage::Within | Stage::Escaped => {}
        }
        let Some(&byte) = packet.get(self.at) else {
            self.stage = Stage::After;
            return Some(END);
        };
        let is_half = matches!(self.stage, Stage::Escaped);
        if !is_half && (byte == END || byte == ESC) {
            self.stage = Stage::Escaped;
            return Some(ESC);
        }
        self.stage = Stage::Within;
        self.at += 1;
        Some(match byte {
            END => ESC_END,
            ESC => ESC_ESC,
            byte => byte,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{Decoder, END, ESC, Encoder};
    use std::vec::Vec;

    fn encoded(packet: &[u8]) -> Vec<u8> {
        let mut encoder = Encoder::default();
        std::iter::from_fn(|| encoder.next(packet)).collect()
    }

    /// What comes out of these bytes, with room for so many.
    fn decoded(bytes: &[u8], room: usize) -> Vec<Vec<u8>> {
        let (mut decoder, mut room) = (Decoder::default(), std::vec![0; room]);
        bytes
            .iter()
            .filter_map(|byte| decoder.push(*byte, &mut room).map(|length| room[..length].to_vec()))
            .collect()
    }

    /// xorshift64.
    fn random(state: &mut u64) -> u64 {
        *state ^= *state << 13;
        *state ^= *state >> 7;
        *state ^= *state << 17;
        *state
    }

    #[test]
    fn the_standards_bytes() {
        assert_eq!(encoded(&[1, 0xc0, 2, 0xdb]), [0xc0, 1, 0xdb, 0xdc, 2, 0xdb, 0xdd, 0xc0]);
        assert_eq!(encoded(&[]), [END, END]);
        assert_eq!(decoded(&[0xc0, 1, 0xdb, 0xdc, 2, 0xdb, 0xdd, 0xc0], 4), [[1, 0xc0, 2, 0xdb]]);
    }

    #[test]
    fn what_is_too_long_is_none_and_the_next_is_one() {
        let line = [encoded(&[1, 2, 3, 4, 5]), encoded(&[6, 7, 8, 9])].concat();
        assert_eq!(decoded(&line, 4), [[6, 7, 8, 9]]);
        assert!(decoded(&line, 0).is_empty());
    }

    #[test]
    fn noise_costs_the_packet_that_it_hits_and_no_other() {
        // An escape that is none, an escape at the end, noise before the first mark.
        assert_eq!(decoded(&[END, 1, ESC, 2, 3, END, 4, END], 9), [[4]]);
        assert_eq!(decoded(&[END, 1, ESC, END, 4, END], 9), [[4]]);
        assert_eq!(decoded(&[&[9, 9][..], &encoded(&[1])].concat(), 9), [&[9, 9][..], &[1]]);
        let mut decoder = Decoder::default();
        let mut room = [0; 9];
        assert_eq!(decoder.push(1, &mut room), None);
        decoder.spoil();
        assert_eq!(decoder.push(END, &mut room), None);
        assert_eq!((decoder.push(2, &mut room), decoder.push(END, &mut room)), (None, Some(1)));
    }

    #[test]
    fn whatever_is_sent_comes() {
        let mut state = 0x5eed;
        for _ in 0..2000 {
            let packets: Vec<Vec<u8>> = (0..random(&mut state) % 5 + 1)
                .map(|_| {
                    let length = random(&mut state) % 200 + 1;
                    // Half of them marks and escapes.
                    let byte = |state: &mut u64| [END, ESC, 0xdc, 0xdd][random(state) as usize % 4];
                    let any = |state: &mut u64| random(state) as u8;
                    (0..length)
                        .map(|_| {
                            if random(&mut state).is_multiple_of(2) {
                                byte(&mut state)
                            } else {
                                any(&mut state)
                            }
                        })
                        .collect()
                })
                .collect();
            let line: Vec<u8> = packets.iter().flat_map(|packet| encoded(packet)).collect();
            assert_eq!(decoded(&line, 200), packets);
        }
    }

    #[test]
    fn garbage_makes_no_packet_beyond_its_room_and_what_follows_comes() {
        let mut state = 0xbad;
        for _ in 0..2000 {
            let length = random(&mut state) % 1000;
            let mut line: Vec<u8> = (0..length).map(|_| random(&mut state) as u8).collect();
            line.extend(encoded(&[1, 2, 3]));
            let found = decoded(&line, 64);
            assert!(found.iter().all(|packet| !packet.is_empty() && packet.len() <= 64));
            assert_eq!(found.last().map(Vec::as_slice), Some(&[1, 2, 3][..]));
        }
    }
}
