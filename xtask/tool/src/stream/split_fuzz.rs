//! The splitter fed with random and mutated streams.
//!
//! Seeded, so a failure can be repeated: it names its seed. `MAGPIE_FUZZ` sets how many streams are tried
//! (20,000 unless told), `MAGPIE_SEED` the first seed.

use super::{MAX_FRAME_BYTES, MAX_LINE_BYTES, Piece, Splitter, salvage};
use crate::random::{Random, setting};

/// A stream of text and frames in which some bytes were changed, lost, doubled or cut off.
fn stream(random: &mut Random) -> Vec<u8> {
    let mut bytes = Vec::new();
    for _ in 0..random.below(20) {
        match random.below(5) {
            4 => bytes.extend(format!("\0\x02@test ok case{} 7\n", random.below(1000)).bytes()),
            0 => bytes.extend(format!("@test ok case{} 7\n", random.below(1000)).bytes()),
            1 => bytes.extend((0..random.below(40)).map(|_| random.next() as u8)),
            2 if random.below(50) == 0 => bytes.resize(bytes.len() + MAX_LINE_BYTES + random.below(9), b'x'),
            _ => {
                bytes.extend([0, 1]);
                let length = if random.below(50) == 0 { MAX_FRAME_BYTES + 3 } else { random.below(60) };
                bytes.extend((0..length).map(|_| (random.next() as u8).max(1)));
                bytes.push(0);
            }
        }
    }
    for _ in 0..random.below(8) {
        if bytes.is_empty() {
            break;
        }
        let at = random.below(bytes.len());
        match random.below(4) {
            0 => bytes[at] = random.next() as u8,
            1 => _ = bytes.remove(at),
            2 => bytes.insert(at, bytes[at]),
            _ => bytes.truncate(at),
        }
    }
    bytes
}

fn push_all<'a>(splitter: &mut Splitter, parts: impl Iterator<Item = &'a [u8]>) -> Vec<Piece> {
    let mut pieces = Vec::new();
    for part in parts {
        splitter.push(part, &mut |piece| pieces.push(piece));
    }
    splitter.finish(&mut |piece| pieces.push(piece));
    pieces
}

#[test]
fn no_stream_breaks_it_and_a_cut_changes_nothing() {
    let first = setting("MAGPIE_SEED", 1);
    for seed in first..first + setting("MAGPIE_FUZZ", 20_000) {
        let mut random = Random::new(seed);
        let bytes = stream(&mut random);
        let mut splitter = Splitter::new();
        let whole = push_all(&mut splitter, std::iter::once(&bytes[..]));
        let cut = push_all(&mut splitter, bytes.chunks(1 + random.below(30)));
        assert_eq!(whole, cut, "seed {seed}: the pieces depend on how the stream is cut");
        let mut told = 0;
        for piece in &whole {
            told += match piece {
                Piece::Line(line) | Piece::Part(line) | Piece::Notice(line) => {
                    assert!(line.len() <= MAX_LINE_BYTES, "seed {seed}: a line is too long");
                    line.len()
                }
                Piece::Frame(frame) => {
                    assert!(
                        !frame.is_empty() && frame.len() <= MAX_FRAME_BYTES,
                        "seed {seed}: a frame's length"
                    );
                    assert!(!frame.contains(&0), "seed {seed}: a frame contains a boundary");
                    let salvaged: usize = salvage(frame).iter().map(String::len).sum();
                    assert!(salvaged <= frame.len(), "seed {seed}: more was salvaged than there was");
                    frame.len()
                }
                Piece::Binary(frame) => {
                    assert!(!frame.contains(&0), "seed {seed}: a frame contains a boundary");
                    frame.len()
                }
                Piece::Garbage(count) => {
                    assert!(*count > 0, "seed {seed}: empty garbage");
                    *count
                }
            };
        }
        assert!(told <= bytes.len(), "seed {seed}: more came out than went in");
    }
}

#[test]
fn after_any_stream_it_is_in_step_again_at_the_next_boundary() {
    let first = setting("MAGPIE_SEED", 1);
    for seed in first..first + setting("MAGPIE_FUZZ", 20_000) {
        let mut random = Random::new(seed);
        let mut bytes = stream(&mut random);
        // One zero may end a frame that was cut off, the next is a boundary in any case.
        bytes.extend(b"\0\0\x01frame\0\n\0\x02@panic last words\n");
        let pieces = push_all(&mut Splitter::new(), std::iter::once(&bytes[..]));
        let at = pieces.iter().rposition(|piece| *piece == Piece::Frame(b"frame".to_vec()));
        assert!(at.is_some(), "seed {seed}: the frame after the boundary was lost");
        let last = Piece::Notice(b"@panic last words".to_vec());
        assert_eq!(pieces.last(), Some(&last), "seed {seed}: the last line was lost");
    }
}
