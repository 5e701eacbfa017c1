//! Decodes one log frame with the strings that the ELF keeps for the host.
//!
//! A damaged frame must not end the host tool: defmt-decoder returns an error for most, but can panic on
//! some (an argument that no longer fits its format), so a panic inside it is caught and counts as damage.

use anyhow::{Context, Result};
use defmt_decoder::{Locations, Table};
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;

thread_local! {
    /// Set while defmt-decoder runs on this thread: a panic in it is expected and not reported.
    static DECODING: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

/// The log strings of one ELF.
pub struct LogDecoder {
    table: Table,
    /// Where each format is, if the ELF says so.
    locations: Option<Locations>,
}

/// How a kernel begins to say that it dropped a frame which is too long, and what stands before its format's number.
const DROPPED: (&str, &str) = ("a log frame of ", "; its format is number ");

impl LogDecoder {
    /// Reads the strings from an ELF's bytes. `None` when the image logs nothing.
    pub fn from_elf(elf: &[u8]) -> Result<Option<Self>> {
        let table = Table::parse(elf).context("the ELF's log strings cannot be read")?;
        Ok(table.map(|table| {
            // Without them only the place of a frame that was dropped is not known.
            let locations = table.get_locations(elf).ok();
            Self { table, locations }
        }))
    }

    /// Where the log statement is whose frame was dropped, if this line of text is about that.
    pub fn explain(&self, line: &[u8]) -> Option<String> {
        let line = std::str::from_utf8(line).ok()?.trim_end();
        let (_, number) = line.strip_prefix(DROPPED.0)?.split_once(DROPPED.1)?;
        let location = self.locations.as_ref()?.get(&number.parse().ok()?)?;
        Some(format!("  it is from {}:{}", location.file.display(), location.line))
    }

    /// Decodes one frame (without its zero bytes) to `<time> c<core> LEVEL message`. `None` for a damaged
    /// frame.
    pub fn decode(&self, frame: &[u8]) -> Option<String> {
        quiet_panics();
        DECODING.set(true);
        let decoded = panic::catch_unwind(AssertUnwindSafe(|| self.decode_unguarded(frame)));
        DECODING.set(false);
        decoded.ok().flatten()
    }

    fn decode_unguarded(&self, frame: &[u8]) -> Option<String> {
        let mut stream = self.table.new_stream_decoder();
        stream.received(frame);
        stream.received(&[0]);
        let frame = stream.decode().ok()?;
        let level = frame.level().map_or("PRINT".to_owned(), |level| level.as_str().to_uppercase());
        let message = frame.display_message();
        Some(match frame.display_timestamp() {
            Some(time) => format!("{time} {level:<5} {message}"),
            None => format!("{level:<5} {message}"),
        })
    }
}

/// Keeps the panic hook silent for panics that [`LogDecoder::decode`] catches.
fn quiet_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let previous = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if !DECODING.get() {
                previous(info);
            }
        }));
    });
}
