//! Writing a card and reading it back, with progress, whatever the card does meanwhile.

use crate::failure::usage;
use anyhow::{Result, anyhow};
use std::io;

/// What is written to.
pub trait Target {
    /// How long it is, in bytes.
    fn bytes(&self) -> u64;
    /// Writes at an offset; all of it or an error.
    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()>;
    /// Everything that was written has arrived; reading afterwards reads the card.
    fn sync(&mut self) -> io::Result<()>;
    /// Reads at an offset; all of it or an error.
    fn read_at(&mut self, offset: u64, bytes: &mut [u8]) -> io::Result<()>;
}

/// Bytes at once.
pub const CHUNK_BYTES: usize = 4 << 20;
/// Larger than any card: a disk.
const MOST_BYTES: u64 = 2 << 40;

/// What is going on, for the progress line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Phase {
    /// Writing.
    Writing,
    /// Reading back.
    Verifying,
}

/// Whether a card of that size can take an image of that size.
pub fn check_size(card: u64, image: u64) -> Result<()> {
    if card < image {
        return Err(usage(format!(
            "the card is too small: {} MiB, and the image has {} MiB; use a larger card",
            card >> 20,
            image.div_ceil(1 << 20)
        )));
    }
    if card > MOST_BYTES {
        return Err(usage(format!(
            "{} GiB is more than any SD card has: this looks like a disk; give the card's device",
            card >> 30
        )));
    }
    Ok(())
}

/// Writes `image` and compares what the card has afterwards. `progress` is told the phase and the bytes done.
pub fn write_and_verify(
    target: &mut dyn Target,
    image: &[u8],
    progress: &mut dyn FnMut(Phase, u64),
) -> Result<()> {
    check_size(target.bytes(), image.len() as u64)?;
    let mut done = 0;
    for chunk in image.chunks(CHUNK_BYTES) {
        target.write_at(done, chunk).map_err(|error| explain("writing", done, &error))?;
        done += chunk.len() as u64;
        progress(Phase::Writing, done);
    }
    target.sync().map_err(|error| explain("finishing", done, &error))?;
    let mut buffer = vec![0; CHUNK_BYTES];
    done = 0;
    for chunk in image.chunks(CHUNK_BYTES) {
        let buffer = &mut buffer[..chunk.len()];
        target.read_at(done, buffer).map_err(|error| explain("reading back", done, &error))?;
        if let Some(at) = chunk.iter().zip(buffer.iter()).position(|(wanted, found)| wanted != found) {
            return Err(anyhow!(
                "the card does not hold what was written, from byte {} on: it is worn out or fake; use another",
                done + at as u64
            ));
        }
        done += chunk.len() as u64;
        progress(Phase::Verifying, done);
    }
    Ok(())
}

fn explain(what: &str, offset: u64, error: &io::Error) -> anyhow::Error {
    let advice = match error.kind() {
        io::ErrorKind::StorageFull => "it is smaller than it says; use another card",
        io::ErrorKind::PermissionDenied => "run the command as root, or as a member of the device's group",
        io::ErrorKind::ReadOnlyFilesystem => "it is write-protected: look at the card's switch",
        _ => "was it pulled out? put it back in and run the command again",
    };
    anyhow!("{what} failed after {} MiB ({error}): {advice}", offset >> 20)
}

#[cfg(test)]
mod tests {
    use super::{CHUNK_BYTES, Phase, Target, check_size, write_and_verify};
    use crate::failure::{FAILURE, USAGE, status_of};
    use std::io;

    /// Stands in for a card.
    struct Card {
        memory: Vec<u8>,
        /// From this byte on, writing fails so.
        fails_at: Option<(u64, io::ErrorKind)>,
        /// Reading fails after a sync.
        unreadable: bool,
        /// This byte keeps its old value.
        stuck: Option<usize>,
        synced: bool,
    }

    impl Card {
        fn new(bytes: usize) -> Self {
            Self { memory: vec![0; bytes], fails_at: None, unreadable: false, stuck: None, synced: false }
        }
    }

    impl Target for Card {
        fn bytes(&self) -> u64 {
            self.memory.len() as u64
        }

        fn write_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
            match self.fails_at {
                Some((at, kind)) if offset + bytes.len() as u64 > at => return Err(kind.into()),
                _ => {}
            }
            self.memory[offset as usize..][..bytes.len()].copy_from_slice(bytes);
            if let Some(stuck) = self.stuck {
                self.memory[stuck] = 0;
            }
            Ok(())
        }

        fn sync(&mut self) -> io::Result<()> {
            self.synced = true;
            Ok(())
        }

        fn read_at(&mut self, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
            assert!(self.synced, "read back before everything had arrived");
            if self.unreadable {
                return Err(io::ErrorKind::NotFound.into());
            }
            bytes.copy_from_slice(&self.memory[offset as usize..][..bytes.len()]);
            Ok(())
        }
    }

    fn image() -> Vec<u8> {
        (0..2 * CHUNK_BYTES + 1000).map(|i| (i * 7 % 251 + 1) as u8).collect()
    }

    #[test]
    fn a_good_card_holds_the_image_and_progress_is_told() {
        let (mut card, image) = (Card::new(16 << 20), image());
        let mut told = Vec::new();
        write_and_verify(&mut card, &image, &mut |phase, bytes| told.push((phase, bytes))).unwrap();
        assert!(card.memory.starts_with(&image));
        assert!(card.memory[image.len()..].iter().all(|&byte| byte == 0), "nothing beyond the image");
        let all = image.len() as u64;
        assert_eq!(told[2..4], [(Phase::Writing, all), (Phase::Verifying, CHUNK_BYTES as u64)]);
        assert_eq!(told.last(), Some(&(Phase::Verifying, all)));
    }

    fn refusal(mut card: Card) -> (String, u8) {
        let error = write_and_verify(&mut card, &image(), &mut |_, _| ()).unwrap_err();
        let text = format!("{error:#}");
        assert!(!text.contains('\n'));
        (text, status_of(&error))
    }

    #[test]
    fn wrong_sizes_are_refused_before_anything_is_written() {
        let (text, status) = refusal(Card::new(1 << 20));
        assert!(text.contains("too small") && text.contains("1 MiB"), "{text}");
        assert_eq!(status, USAGE);
        assert!(format!("{:#}", check_size(3 << 40, 1).unwrap_err()).contains("looks like a disk"));
        assert!(check_size(32 << 30, 64 << 20).is_ok());
    }

    #[test]
    fn a_card_that_fills_up_early_is_named() {
        let mut card = Card::new(16 << 20);
        card.fails_at = Some((CHUNK_BYTES as u64 + 1, io::ErrorKind::StorageFull));
        let (text, status) = refusal(card);
        assert!(text.contains("after 4 MiB") && text.contains("smaller than it says"), "{text}");
        assert_eq!(status, FAILURE);
    }

    #[test]
    fn a_card_that_is_pulled_out_is_named() {
        let mut card = Card::new(16 << 20);
        card.fails_at = Some((0, io::ErrorKind::NotFound));
        assert!(refusal(card).0.contains("pulled out"));
        let mut card = Card::new(16 << 20);
        card.unreadable = true;
        assert!(refusal(card).0.contains("reading back failed after 0 MiB"));
    }

    #[test]
    fn a_card_that_forgets_is_named() {
        let mut card = Card::new(16 << 20);
        card.stuck = Some(CHUNK_BYTES + 17);
        assert!(refusal(card).0.contains(&format!("from byte {}", CHUNK_BYTES + 17)));
    }
}
