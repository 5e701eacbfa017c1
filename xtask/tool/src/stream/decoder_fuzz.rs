//! The decoder fed with random streams: text, lines for the tool, log frames of an ELF that is made here, and damage to all
//! of them. And what a stream without any end costs in memory.
//!
//! Seeded, so a failure can be repeated: it names its seed (`MAGPIE_FUZZ` streams from `MAGPIE_SEED` on).

use super::{Decoder, Output};
use crate::memory_count::most_during;
use crate::random::{Random, setting};

/// Log statements; each has its place in the list for a number, from 1 on.
const FORMATS: [(&str, &str); 5] = [
    ("defmt_timestamp", "{=u32}"),
    ("defmt_info", "started"),
    ("defmt_warn", "{=u8} of {=u32:#x}"),
    ("defmt_error", "{=str} and {=[u8]}"),
    ("defmt_info", "{=bool} {=f32} {=i64}"),
];
/// Reads are of so many bytes, as from a pipe.
const READ_BYTES: usize = 16 * 1024;
const ENDLESS_BYTES: usize = 4 << 20;
/// What a stream may cost at most, however long it is.
const MOST_BYTES: usize = 3 << 20;

/// An ELF with log strings and nothing else.
fn elf() -> Vec<u8> {
    let mut names = vec![0];
    // The first symbol is none.
    let mut symbols = vec![0; 24];
    let own = ["_defmt_version_ = 4", "_defmt_encoding_ = rzcobs"].map(|name| (0, name.to_owned()));
    let formats = FORMATS.iter().zip(1_u64..).map(|((tag, data), number)| {
        let name = format!(
            r#"{{"package":"p","tag":"{tag}","data":"{data}","disambiguator":"{number}","crate_name":"p"}}"#
        );
        (number, name)
    });
    for (value, name) in own.into_iter().chain(formats) {
        symbols.extend((names.len() as u32).to_le_bytes());
        // A global object in the first section.
        symbols.extend([0x11, 0, 1, 0]);
        symbols.extend(value.to_le_bytes());
        symbols.extend(1_u64.to_le_bytes());
        names.extend(name.bytes().chain([0]));
    }
    let section_names = b"\0.defmt\0.symtab\0.strtab\0.shstrtab\0";
    // Name, kind, contents, the section it refers to, bytes of an entry.
    let sections: [(u32, u32, &[u8], u32, u64); 5] = [
        (0, 0, b"", 0, 0),
        (1, 1, &[0; 16], 0, 0),
        (8, 2, &symbols, 3, 24),
        (16, 3, &names, 0, 0),
        (24, 3, section_names, 0, 0),
    ];
    let mut contents = Vec::new();
    let mut headers = Vec::new();
    for (name, kind, content, link, entry) in sections {
        headers.extend([name, kind].map(u32::to_le_bytes).concat());
        let place = 64 + contents.len() as u64;
        headers.extend([0, 0, place, content.len() as u64].map(u64::to_le_bytes).concat());
        headers.extend([link, u32::from(kind == 2)].map(u32::to_le_bytes).concat());
        headers.extend([1, entry].map(u64::to_le_bytes).concat());
        contents.extend_from_slice(content);
    }
    let mut elf = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x02\0\xb7\0\x01\0\0\0".to_vec();
    elf.extend([0, 0, 64 + contents.len() as u64].map(u64::to_le_bytes).concat());
    elf.extend(0_u32.to_le_bytes());
    elf.extend([64_u16, 56, 0, 64, 5, 4].map(u16::to_le_bytes).concat());
    [elf, contents, headers].concat()
}

/// A frame that is likely to be decodable: a number of a format, a time, arguments. Of each seven bytes the last says which
/// are zeros; here the second is, as in every small number.
fn frame(random: &mut Random) -> Vec<u8> {
    let mut bytes = vec![1 + random.below(FORMATS.len() + 1) as u8];
    bytes.extend((0..random.below(4)).map(|_| 1 + random.below(255) as u8));
    bytes.push(random.below(0x80) as u8 & !1 | 2);
    bytes
}

fn stream(random: &mut Random) -> Vec<u8> {
    const LINES: [&str; 8] = [
        "\0\x02@test ok a 7\n",
        "\0\x02@test fail a: b\n",
        "\0\x02@test done 1 2\n",
        "\0\x02@magpie build=ff app=a board=b cores=99999999999\n",
        "\0\x02@bench a b=c\n",
        "\0\x02@panic \u{e9}\n",
        "a log frame of 99 bytes; its format is number 18446744073709551616\n",
        "  pc  ffffffffffffffff  x30 0000000000000001\r\n",
    ];
    let mut bytes = Vec::new();
    for _ in 0..random.below(30) {
        match random.below(3) {
            0 => bytes.extend(LINES[random.below(LINES.len())].bytes()),
            1 => bytes.extend((0..random.below(40)).map(|_| random.next() as u8)),
            _ => bytes.extend([&[0, 1], &frame(random)[..], &[0]].concat()),
        }
    }
    for _ in 0..random.below(6) {
        if !bytes.is_empty() {
            let at = random.below(bytes.len());
            match random.below(3) {
                0 => bytes[at] = random.next() as u8,
                1 => drop(bytes.remove(at)),
                _ => bytes.insert(at, random.next() as u8),
            }
        }
    }
    bytes
}

fn decode(bytes: &[u8], read: usize, sink: &mut dyn FnMut(Output)) {
    let mut decoder = Decoder::new(&elf()).unwrap();
    bytes.chunks(read).for_each(|part| decoder.push(part, sink));
    decoder.finish(sink);
}

#[test]
fn no_stream_breaks_it_and_a_cut_changes_nothing() {
    let first = setting("MAGPIE_SEED", 1);
    let mut logged = 0;
    for seed in first..first + setting("MAGPIE_FUZZ", 3_000) {
        let mut random = Random::new(seed);
        let bytes = stream(&mut random);
        let (mut whole, mut cut) = (Vec::new(), Vec::new());
        decode(&bytes, READ_BYTES, &mut |output| whole.push(output));
        decode(&bytes, 1 + random.below(30), &mut |output| cut.push(output));
        assert_eq!(whole, cut, "seed {seed}: the output depends on how the stream is cut");
        logged += whole.iter().filter(|output| matches!(output, Output::Log(_))).count();
    }
    assert!(logged > 100, "only {logged} frames were decoded");
}

#[test]
fn no_stream_costs_more_memory_the_longer_it_is() {
    let long_line = "x".repeat(70_000);
    for (name, start, again) in [
        ("a line", "", "x"),
        ("a line of characters that are cut", "", "\u{20ac}"),
        ("lines", "", "\n"),
        ("a frame", "\0\x01", "x"),
        ("frames", "", "\0\x01x\0"),
        ("frames in a long line", &long_line, "\0\x01x\0"),
        ("a notice", "\0\x02", "x"),
        ("notices", "", "\0\x02@panic\n"),
        ("boundaries", "", "\0"),
        ("the rests of frames", "", "\x01\x02\0"),
    ] {
        let part = again.repeat(READ_BYTES / again.len());
        let mut decoder = Decoder::new(&elf()).unwrap();
        let most = most_during(|| {
            let sink = &mut |output| drop(output);
            decoder.push(start.as_bytes(), sink);
            for _ in 0..ENDLESS_BYTES / part.len() {
                decoder.push(part.as_bytes(), sink);
            }
            decoder.finish(sink);
        });
        assert!(most < MOST_BYTES, "{name}: {most} bytes");
    }
}
