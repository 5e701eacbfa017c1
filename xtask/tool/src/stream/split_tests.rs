//! Tests of the splitter: whole, cut, and corrupted streams.

use super::{MAX_FRAME_BYTES, MAX_HELD_BYTES, MAX_LINE_BYTES, Piece, Splitter, salvage};
use crate::random::Random;

fn split_in(bytes: &[u8], chunk: usize) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut splitter = Splitter::new();
    for part in bytes.chunks(chunk.max(1)) {
        splitter.push(part, &mut |piece| pieces.push(piece));
    }
    splitter.finish(&mut |piece| pieces.push(piece));
    pieces
}

fn split(bytes: &[u8]) -> Vec<Piece> {
    split_in(bytes, bytes.len())
}

fn line(text: &str) -> Piece {
    Piece::Line(text.as_bytes().to_vec())
}

fn frame(bytes: &[u8]) -> Piece {
    Piece::Frame(bytes.to_vec())
}

/// Text, frames, text interrupted by a frame, and a last line without an end.
const MIXED: &[u8] = b"hello\r\n\0\x01\x81\x82\x05\0\0\x01\xa0A\0par\0\x01\x90\x91\0tial\n\nend";

fn mixed() -> Vec<Piece> {
    vec![
        line("hello"),
        frame(b"\x81\x82\x05"),
        frame(b"\xa0A"),
        frame(b"\x90\x91"),
        line("partial"),
        line(""),
        line("end"),
    ]
}

#[test]
fn separates_text_from_frames() {
    assert_eq!(split(MIXED), mixed());
}

#[test]
fn does_not_depend_on_how_the_stream_is_cut_into_reads() {
    for chunk in 1..MIXED.len() {
        assert_eq!(split_in(MIXED, chunk), mixed(), "in reads of {chunk} bytes");
    }
}

#[test]
fn a_byte_of_one_inside_a_frame_is_data() {
    assert_eq!(split(b"\0\x01\x01\x01\0"), [frame(b"\x01\x01")]);
}

#[test]
fn zeros_and_empty_frames_in_excess_are_ignored() {
    assert_eq!(split(b"\0\0\0\x01\0\0\0\x01\x99\0\0\0ok\n"), [frame(b"\x99"), line("ok")]);
}

#[test]
fn one_zero_may_end_a_frame_and_begin_the_next() {
    assert_eq!(split(b"\0\x01\x99\0\x01\x98\0ok\n"), [frame(b"\x99"), frame(b"\x98"), line("ok")]);
}

#[test]
fn joined_in_the_middle_of_a_frame_it_is_in_step_at_the_next_zero() {
    assert_eq!(split(b"\x82\x03\xff\0\0\x01\x99\0text\n"), [Piece::Garbage(3), frame(b"\x99"), line("text")]);
}

#[test]
fn joined_anywhere_everything_after_the_second_zero_is_whole() {
    let tail = b"\0\x01\x99\x98\0a line of text\n";
    let stream = [b"\0\x01\x81\x82\x83\x84\0".as_slice(), tail].concat();
    for start in 0..7 {
        let pieces = split(&stream[start..]);
        assert!(
            pieces.ends_with(&[frame(b"\x99\x98"), line("a line of text")]),
            "joined at byte {start}: {pieces:?}"
        );
    }
}

#[test]
fn a_lost_start_of_frame_costs_that_frame_alone() {
    // The opening zero is gone, so 01 and the frame's bytes arrive as text.
    assert_eq!(
        split(b"before\n\x01\x81\x82\0\0\x01\x99\0after\n"),
        [line("before"), Piece::Garbage(3), frame(b"\x99"), line("after")]
    );
}

#[test]
fn a_lost_end_of_frame_hands_on_the_text_inside_the_frame() {
    let pieces = split(b"\0\x01\x81\x82kernel panicked at sched\nx0 = 0000000000000017\n");
    let [Piece::Frame(bytes)] = pieces.as_slice() else { panic!("{pieces:?}") };
    assert_eq!(salvage(bytes), ["kernel panicked at sched", "x0 = 0000000000000017"]);
}

#[test]
fn salvage_finds_nothing_in_an_ordinary_frame() {
    assert!(salvage(b"\x81\x02ab\x90\n\xff\xfe").is_empty());
}

#[test]
fn an_endless_frame_is_given_up() {
    let mut stream = b"\0\x01".to_vec();
    stream.resize(2 + MAX_FRAME_BYTES, 0x80);
    stream.extend_from_slice(b"text again\n");
    let pieces = split(&stream);
    assert_eq!(pieces.len(), 2);
    assert_eq!(pieces[1], line("text again"));
}

#[test]
fn lines_that_are_not_utf8_pass_as_they_are() {
    assert_eq!(split(b"  12 caf\xe9\n"), [Piece::Line(b"  12 caf\xe9".to_vec())]);
}

#[test]
fn no_corruption_makes_it_lose_what_follows_two_zeros() {
    // One byte of the stream is replaced by each of some values, or lost; the last line always arrives.
    let tail = b"\0\0\nthe last line\n";
    for at in 0..MIXED.len() {
        for value in [None, Some(0), Some(1), Some(b'\n'), Some(0x41), Some(0xff)] {
            let mut stream = MIXED.to_vec();
            match value {
                Some(value) => stream[at] = value,
                None => drop(stream.remove(at)),
            }
            stream.extend_from_slice(tail);
            let pieces = split(&stream);
            assert_eq!(pieces.last(), Some(&line("the last line")), "byte {at} became {value:?}");
        }
    }
}

#[test]
fn random_garbage_never_stops_it() {
    let mut random = Random::new(1);
    for round in 0..200 {
        let mask = if round % 2 == 0 { 0xff } else { 0x03 };
        let mut stream: Vec<u8> = (0..512).map(|_| random.next() as u8 & mask).collect();
        stream.extend_from_slice(b"\0\0\n\0\x01\x99\0still here\n");
        assert!(split_in(&stream, 7).ends_with(&[frame(b"\x99"), line("still here")]));
    }
}

#[test]
fn a_line_for_the_tool_is_told_from_text() {
    let notice = |text: &str| Piece::Notice(text.as_bytes().to_vec());
    assert_eq!(
        split(b"@panic no\n\0\x02@panic yes\r\nmore\n"),
        [line("@panic no"), notice("@panic yes"), line("more")]
    );
    assert_eq!(
        split(b"par\0\x02@test start a\ntial\n"),
        [line("par"), notice("@test start a"), line("tial")]
    );
    assert_eq!(split(b"\0\x01\x99\x98\0\x02@panic x\n"), [frame(b"\x99\x98"), notice("@panic x")]);
    // Its end was lost.
    assert_eq!(split(b"\0\x02@panic\0\x01\x99\0"), [line("@panic"), frame(b"\x99")]);
    assert_eq!(split(b"\0\x02@panic"), [line("@panic")]);
}

#[test]
fn frames_of_events_are_apart_from_text_and_log() {
    let binary = |bytes: &[u8]| Piece::Binary(bytes.to_vec());
    assert_eq!(
        split(b"a\n\0\x03\x01\x0a\0\0\x01\x99\0b\n"),
        [line("a"), binary(b"\x01\x0a"), frame(b"\x99"), line("b")]
    );
    // Its end was lost.
    assert_eq!(split(b"\0\x03\x01\x02"), [Piece::Garbage(2)]);
}

/// What a person sees: the text with its line ends, and an F for each frame.
fn shown(pieces: &[Piece]) -> Vec<u8> {
    let mut text = Vec::new();
    for piece in pieces {
        match piece {
            Piece::Part(part) => text.extend_from_slice(part),
            Piece::Line(line) => text.extend([line.as_slice(), b"\n"].concat()),
            Piece::Frame(_) => text.extend_from_slice(b"F\n"),
            Piece::Notice(_) | Piece::Binary(_) | Piece::Garbage(_) => panic!("{piece:?}"),
        }
    }
    text
}

#[test]
fn a_line_of_any_length_is_one_line() {
    for length in [1, 2, 3, 5].map(|times| times * MAX_LINE_BYTES) {
        for extra in 0..3 {
            let long = [&b"x".repeat(length + extra)[..], b"\r\nnext\n"].concat();
            let expected = [&b"x".repeat(length + extra)[..], b"\nnext\n"].concat();
            assert!(shown(&split_in(&long, 1000)) == expected, "{length} and {extra} bytes");
        }
    }
}

#[test]
fn a_long_line_is_not_cut_within_a_character() {
    let euros = "a\u{20ac}".repeat(MAX_LINE_BYTES);
    for before in 0..4 {
        // Behind a boundary it must be readable from its start.
        let stream = format!("{}{euros}\0\x01\u{99}\0{euros}\n", &"xxxx"[..before]);
        let pieces = split(stream.as_bytes());
        for piece in &pieces {
            let (Piece::Part(text) | Piece::Line(text)) = piece else { continue };
            assert!(std::str::from_utf8(text).is_ok());
        }
        assert!(shown(&pieces) == format!("{}{euros}{euros}\nF\n", &"xxxx"[..before]).as_bytes());
    }
}

#[test]
fn frames_inside_a_long_line_come_behind_it_as_long_as_they_can_be_held() {
    let long = "x".repeat(MAX_LINE_BYTES + 1);
    assert_eq!(
        shown(&split(format!("{long}\0\x01abc\0yes\n").as_bytes())),
        format!("{long}yes\nF\n").as_bytes()
    );
    let frames = MAX_HELD_BYTES / 1000 + 1;
    let many = format!("\0\x01{}\0", "f".repeat(1000)).repeat(frames);
    let expected = format!("{long}\n{}yes\n", "F\n".repeat(frames));
    assert!(shown(&split(format!("{long}{many}yes\n").as_bytes())) == expected.as_bytes());
}

#[test]
fn a_line_for_the_tool_ends_a_long_line() {
    let long = "x".repeat(MAX_LINE_BYTES);
    let pieces = split(format!("{long}\0\x02@panic no\nmore\n").as_bytes());
    assert!(
        pieces[1..] == [line(""), Piece::Notice(b"@panic no".to_vec()), line("more")],
        "{:?}",
        &pieces[1..]
    );
}
