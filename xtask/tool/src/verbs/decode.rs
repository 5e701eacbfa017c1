//! `cargo xtask decode`: decodes a recorded serial stream.

use crate::failure::{SUCCESS, usage};
use crate::stream::{Decoder, show};
use anyhow::{Context, Result};
use clap::Args;
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::PathBuf;

/// What `cargo xtask decode` accepts.
#[derive(Args)]
pub struct Options {
    /// The ELF of the image that wrote the stream
    #[arg(long)]
    elf: PathBuf,
    /// The recorded stream [default: standard input]
    file: Option<PathBuf>,
}

/// Runs the verb.
pub fn execute(options: &Options) -> Result<u8> {
    if !options.elf.is_file() {
        return Err(usage(format!(
            "there is no ELF {}; give the one the image was made from",
            options.elf.display()
        )));
    }
    let mut decoder = Decoder::for_elf(&options.elf)?;
    let mut source: Box<dyn Read> = match &options.file {
        Some(path) => Box::new(
            File::open(path).map_err(|error| usage(format!("cannot read {} ({error})", path.display())))?,
        ),
        None => Box::new(io::stdin().lock()),
    };
    let mut out = io::stdout().lock();
    let mut written = Ok(());
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let count = match source.read(&mut buffer) {
            Ok(count) => count,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Err(error).context("the stream cannot be read"),
        };
        let mut sink = |output| {
            if written.is_ok() {
                written = show(&output, &mut out);
            }
        };
        if count == 0 {
            decoder.finish(&mut sink);
            break;
        }
        decoder.push(&buffer[..count], &mut sink);
    }
    match written {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(error).context("cannot write the output"),
        _ => Ok(SUCCESS),
    }
}
