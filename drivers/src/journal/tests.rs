//! The power fails at any write, of any sector and in the middle of one, and again while the journal is opened and goes on.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::vec::Vec;

use super::record::{HEAD_BYTES, Head};
use super::{Journal, JournalError, PIECE_SECTORS, sectors};
use crate::block::{Blocks, DiskError, SECTOR_BYTES};

/// Sectors of the journal; more lie around it, which are not to be touched.
const RANGE: std::ops::Range<u64> = 3..43;
const ALL: usize = 50;

/// splitmix64 (Steele, Lea and Flood, 2014).
struct Random(Cell<u64>);

impl Random {
    fn below(&self, bound: usize) -> usize {
        self.0.set(self.0.get().wrapping_add(0x9e37_79b9_7f4a_7c15));
        let mut z = self.0.get();
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % bound as u64) as usize
    }
}

/// A disk whose power fails after so many writes and flushes: that write is not done either, and everything afterwards fails.
#[derive(Clone)]
struct Medium(Arc<Mutex<State>>);

struct State {
    lasting: Vec<u8>,
    /// What was written since the last flush.
    since: BTreeMap<u64, Vec<Vec<u8>>>,
    left: usize,
    /// The most bytes that were read at once.
    longest_read: usize,
}

impl Medium {
    fn new(lasting: Vec<u8>, left: usize) -> Self {
        Self(Arc::new(Mutex::new(State { lasting, since: BTreeMap::new(), left, longest_read: 0 })))
    }

    /// What is there when the power is back: of what was written since the last flush any sector as it was before, as it was written, or as the one up to a byte and
    /// as the other from there on.
    fn after_a_cut(&self, random: &Random) -> Vec<u8> {
        let state = self.0.lock().unwrap();
        let mut found = state.lasting.clone();
        for (sector, written) in &state.since {
            let place = *sector as usize * SECTOR_BYTES;
            // Any of those that were written one behind the other.
            for bytes in &written[..random.below(written.len() + 1)] {
                let end = [0, SECTOR_BYTES, random.below(SECTOR_BYTES)][random.below(3)];
                found[place..place + end].copy_from_slice(&bytes[..end]);
            }
        }
        found
    }
}

impl State {
    fn step(&mut self) -> Result<(), DiskError> {
        self.left = self.left.checked_sub(1).ok_or(DiskError::Failed)?;
        Ok(())
    }
}

impl Blocks for Medium {
    async fn read(&self, sector: u64, bytes: usize) -> Result<Vec<u8>, DiskError> {
        let mut state = self.0.lock().unwrap();
        state.longest_read = state.longest_read.max(bytes);
        assert!(bytes > 0 && bytes.is_multiple_of(SECTOR_BYTES));
        let place = sector as usize * SECTOR_BYTES;
        let mut found = state.lasting.get(place..place + bytes).ok_or(DiskError::Outside)?.to_vec();
        for (at, piece) in (sector..).zip(found.chunks_mut(SECTOR_BYTES)) {
            if let Some(written) = state.since.get(&at).and_then(|written| written.last()) {
                piece.copy_from_slice(written);
            }
        }
        Ok(found)
    }

    async fn write(&self, sector: u64, bytes: Vec<u8>) -> Result<(), DiskError> {
        let mut state = self.0.lock().unwrap();
        assert!(RANGE.contains(&sector) && sector + (bytes.len() / SECTOR_BYTES) as u64 <= RANGE.end);
        for (at, piece) in (sector..).zip(bytes.chunks(SECTOR_BYTES)) {
            state.since.entry(at).or_default().push(piece.to_vec());
        }
        state.step()
    }

    async fn flush(&self) -> Result<(), DiskError> {
        let mut state = self.0.lock().unwrap();
        state.step()?;
        for (sector, written) in std::mem::take(&mut state.since) {
            let place = sector as usize * SECTOR_BYTES;
            state.lasting[place..place + SECTOR_BYTES].copy_from_slice(written.last().unwrap());
        }
        Ok(())
    }
}

fn at_once<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(ready) => ready,
        Poll::Pending => panic!("it waits"),
    }
}

fn open(medium: &Medium) -> Result<(Journal<Medium>, Vec<Vec<u8>>), JournalError> {
    let mut entries = Vec::new();
    let journal = at_once(Journal::open(medium.clone(), RANGE, |entry| entries.push(entry.to_vec())))?;
    Ok((journal, entries))
}

#[test]
fn what_was_appended_is_there_again() {
    let medium = Medium::new(vec![0; ALL * SECTOR_BYTES], usize::MAX);
    let (mut journal, entries) = open(&medium).unwrap();
    assert!(entries.is_empty());
    let most = journal.most_bytes();
    assert_eq!(at_once(journal.append(&vec![1; most + 1])), Err(JournalError::TooLarge));
    let mut model = Vec::new();
    for entry in [&b""[..], b"one", &[7; 484], &[8; 485], &[9; 2000]] {
        at_once(journal.append(entry)).unwrap();
        model.push(entry.to_vec());
        let (_, entries) = open(&medium).unwrap();
        assert_eq!(entries, model);
    }
    assert_eq!(at_once(journal.append(&vec![1; most])), Err(JournalError::Full));
    // One that stands for all fits always.
    at_once(journal.begin_anew(&vec![1; most])).unwrap();
    assert_eq!(open(&medium).unwrap().1, [vec![1; most]]);
    assert_eq!(at_once(journal.append(b"")), Err(JournalError::Full));
    at_once(journal.begin_anew(b"again")).unwrap();
    assert_eq!(open(&medium).unwrap().1, [b"again"]);
    assert_eq!((sectors(484), sectors(485)), (1, 2));
    assert!(matches!(at_once(Journal::open(medium, 0..3, |_| ())), Err(JournalError::TooLarge)));
}

/// What a round was doing when the power failed.
enum Doing {
    Nothing,
    Append(Vec<u8>),
    Anew(Vec<u8>),
}

#[test]
fn whenever_the_power_fails_what_was_said_to_last_is_there() {
    let rounds = std::env::var("JOURNAL_ROUNDS").map_or(20_000, |text| text.parse().unwrap());
    let random = Random(Cell::new(7));
    // What was on the disk before is anything.
    let mut lasting: Vec<u8> = (0..ALL * SECTOR_BYTES).map(|_| random.below(256) as u8).collect();
    let outside = lasting[..3 * SECTOR_BYTES].to_vec();
    let mut model: Vec<Vec<u8>> = Vec::new();
    let mut doing = Doing::Nothing;
    let (mut cuts, mut came, mut went) = (0, 0, 0);
    for round in 0..rounds {
        let medium = Medium::new(lasting, random.below(12));
        let (mut journal, entries) = open(&medium).unwrap();
        match std::mem::replace(&mut doing, Doing::Nothing) {
            Doing::Append(entry) if entries.len() == model.len() + 1 => {
                model.push(entry);
                came += 1;
            }
            Doing::Anew(entry) if entries == [entry.clone()] => {
                model = vec![entry];
                came += 1;
            }
            Doing::Append(_) | Doing::Anew(_) => went += 1,
            Doing::Nothing => {}
        }
        assert!(entries == model, "round {round}: {} entries, of {}", entries.len(), model.len());
        loop {
            let entry: Vec<u8> = (0..random.below(1500)).map(|_| random.below(256) as u8).collect();
            let appended = at_once(journal.append(&entry));
            match appended {
                Ok(()) => model.push(entry),
                Err(JournalError::Full) => match at_once(journal.begin_anew(&entry)) {
                    Ok(()) => model = vec![entry],
                    Err(error) => {
                        assert!(matches!(error, JournalError::Disk(_)), "{error}");
                        doing = Doing::Anew(entry);
                        break;
                    }
                },
                Err(error) => {
                    assert!(matches!(error, JournalError::Disk(_)), "{error}");
                    // The first of all is one that stands for all.
                    doing = if model.is_empty() { Doing::Anew(entry) } else { Doing::Append(entry) };
                    break;
                }
            }
        }
        assert_eq!(at_once(journal.append(b"more")), Err(JournalError::Lost));
        cuts += 1;
        lasting = medium.after_a_cut(&random);
        assert_eq!(lasting[..3 * SECTOR_BYTES], outside);
    }
    // Both happen.
    assert!(
        came > cuts / 20 && went > cuts / 20,
        "{cuts} cuts: {came} entries came all the same, {went} went"
    );
}

#[test]
fn what_is_behind_the_end_is_not_taken_for_more() {
    let medium = Medium::new(vec![0; ALL * SECTOR_BYTES], usize::MAX);
    let (mut journal, _) = open(&medium).unwrap();
    for entry in [b"a", b"b", b"c", b"d"] {
        at_once(journal.append(entry)).unwrap();
    }
    // The second is gone, and another of the same length comes in its place: what came behind the first one is not behind this.
    medium.0.lock().unwrap().lasting[4 * SECTOR_BYTES + 40] ^= 1;
    medium.0.lock().unwrap().lasting[4 * SECTOR_BYTES + 28] ^= 1;
    let (mut journal, entries) = open(&medium).unwrap();
    assert_eq!(entries, [b"a"]);
    at_once(journal.append(b"e")).unwrap();
    assert_eq!(open(&medium).unwrap().1, [b"a", b"e"]);
}

#[test]
fn the_last_of_all_numbers_is_an_error_and_no_crash() {
    let medium = Medium::new(vec![0; ALL * SECTOR_BYTES], usize::MAX);
    let forged = Head::of(u64::MAX, None, b"forged");
    {
        let lasting = &mut medium.0.lock().unwrap().lasting;
        let place = 3 * SECTOR_BYTES;
        lasting[place..place + 28].copy_from_slice(&forged.bytes());
        lasting[place + 28..place + 34].copy_from_slice(b"forged");
    }
    let (mut journal, entries) = open(&medium).unwrap();
    assert_eq!(entries, [b"forged"]);
    assert_eq!(at_once(journal.begin_anew(b"new")), Err(JournalError::Full));
    at_once(journal.append(b"more")).unwrap();
    assert_eq!(open(&medium).unwrap().1, [&b"forged"[..], b"more"]);
}

/// Opening takes no memory for what only says that it is long: half of an entry, or what is of earlier times.
#[test]
fn what_is_not_whole_is_looked_through_in_pieces() {
    const SECTORS: u64 = 2000;
    let range = 0..SECTORS;
    let long = vec![7; 300_000];
    let write = |lasting: &mut Vec<u8>, sector: u64, head: Head, entry: &[u8]| {
        let place = sector as usize * SECTOR_BYTES;
        lasting[place..place + HEAD_BYTES].copy_from_slice(&head.bytes());
        lasting[place + HEAD_BYTES..place + HEAD_BYTES + entry.len()].copy_from_slice(entry);
    };
    let first = Head::of(1, None, b"first");
    let second = Head::of(1, Some(first.checksum), &long);
    for is_whole in [false, true] {
        let mut lasting = vec![0; SECTORS as usize * SECTOR_BYTES];
        write(&mut lasting, 0, first, b"first");
        write(&mut lasting, 1, second, if is_whole { &long } else { &long[..1000] });
        let medium = Medium::new(lasting, usize::MAX);
        let mut found = Vec::new();
        let opened =
            at_once(Journal::open(medium.clone(), range.clone(), |entry| found.push(entry.to_vec())));
        assert!(opened.is_ok());
        let expected = if is_whole { vec![b"first".to_vec(), long.clone()] } else { vec![b"first".to_vec()] };
        assert!(found == expected, "{} entries", found.len());
        assert_eq!(medium.0.lock().unwrap().longest_read, PIECE_SECTORS as usize * SECTOR_BYTES);
    }
}
