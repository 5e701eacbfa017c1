//! The files on a card: the kernel, the input, what the firmware is to do with them, and the firmware.

use super::firmware;
use crate::build::{Board, Features, LOADER, Workspace, build_application, build_loader, write_flat};
use crate::failure::usage;
use crate::setup::Install;
use anyhow::{Context, Result};
use std::fs;
use std::path::{Path, PathBuf};

/// The kernel's name on the card.
pub const KERNEL: &str = "kernel8.img";
/// The input's name on the card.
const INPUT: &str = "input";

/// The files of a card, by name.
pub struct Contents(pub Vec<(String, Vec<u8>)>);

impl Contents {
    /// Bytes of all files.
    pub fn bytes(&self) -> u64 {
        self.0.iter().map(|(_, bytes)| bytes.len() as u64).sum()
    }
}

/// Builds `app`, or what the workspace means, for the board, and gathers everything that a card with it needs.
pub fn gather(
    workspace: &Workspace,
    app: Option<&str>,
    input: Option<&Path>,
    firmware_folder: Option<&Path>,
    install: Install,
) -> Result<Contents> {
    // What can be missing is looked for before anything is built.
    let is_loader = app == Some(LOADER);
    let app = if is_loader { LOADER } else { workspace.chosen(app)? };
    let own = if is_loader { PathBuf::new() } else { workspace.application(app)?.join("input.txt") };
    let input = input.or_else(|| own.exists().then_some(own.as_path()));
    let input = input
        .map(|path| {
            fs::read(path).map_err(|error| {
                usage(format!("cannot read the input {} ({error}); give an existing file", path.display()))
            })
        })
        .transpose()?;
    if let Some(bytes) = &input {
        check_input(bytes.len() as u64)?;
    }
    let firmware = firmware::find(workspace, firmware_folder, install)?;
    let elf = if is_loader {
        build_loader()?
    } else {
        build_application(app, Features { board: Board::Rpi4, ..Features::default() })?
    };
    let flat = write_flat(&elf)?.flat;
    let kernel = fs::read(&flat).with_context(|| format!("cannot read {}", flat.display()))?;
    Ok(assemble(kernel, input, firmware))
}

/// The firmware puts kernel and input below the VideoCore's memory, which begins at 948 MiB on every board; 64 MiB are
/// left to the kernel.
const MOST_INPUT_BYTES: u64 = (948 - 64) << 20;

fn check_input(bytes: u64) -> Result<()> {
    if bytes > MOST_INPUT_BYTES {
        return Err(usage(format!(
            "the input has {} MiB, and the board's firmware loads at most {} MiB; give a smaller one",
            bytes >> 20,
            MOST_INPUT_BYTES >> 20
        )));
    }
    Ok(())
}

fn assemble(kernel: Vec<u8>, input: Option<Vec<u8>>, firmware: Vec<(String, Vec<u8>)>) -> Contents {
    // The firmware hands over no file without bytes; that there is one is said in the boot arguments.
    let is_empty = input.as_ref().is_some_and(Vec::is_empty);
    let input = input.filter(|bytes| !bytes.is_empty());
    let mut files = vec![
        (KERNEL.to_owned(), kernel),
        ("config.txt".to_owned(), configuration(input.is_some()).into_bytes()),
    ];
    files.extend(is_empty.then(|| ("cmdline.txt".to_owned(), b"input=empty\n".to_vec())));
    files.extend(input.map(|bytes| (INPUT.to_owned(), bytes)));
    files.extend(firmware);
    Contents(files)
}

/// What the firmware reads first.
fn configuration(with_input: bool) -> String {
    let mut text = String::from(
        "# Written by cargo xtask; see docs/raspberry-pi-4.md.\n\
         arm_64bit=1\n\
         kernel=kernel8.img\n\
         kernel_address=0x200000\n\
         # The serial port on pins 14 and 15: power to it, and a clock that does not change.\n\
         enable_uart=1\n\
         init_uart_clock=48000000\n\
         uart_2ndstage=1\n",
    );
    if with_input {
        // Without a sign of equality: that is how the firmware wants this one.
        text.push_str(&format!("initramfs {INPUT} followkernel\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{MOST_INPUT_BYTES, assemble, check_input, configuration};

    #[test]
    fn an_input_larger_than_the_firmware_loads_is_refused() {
        assert!(check_input(MOST_INPUT_BYTES).is_ok());
        let error = check_input(MOST_INPUT_BYTES + (1 << 20)).unwrap_err();
        assert!(error.to_string().contains("at most 884 MiB"), "{error}");
    }

    #[test]
    fn the_input_is_mentioned_only_if_there_is_one() {
        assert!(configuration(true).contains("\ninitramfs input followkernel\n"));
        assert!(!configuration(false).contains("initramfs"));
        assert!(configuration(false).lines().all(|line| line.len() < 98), "the firmware cuts longer lines");
    }

    #[test]
    fn everything_is_on_the_card_once() {
        let firmware = vec![("start4.elf".to_owned(), vec![1; 10])];
        let contents = assemble(vec![2; 100], Some(vec![3; 7]), firmware);
        let names: Vec<_> = contents.0.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["kernel8.img", "config.txt", "input", "start4.elf"]);
        assert_eq!(contents.bytes(), 100 + 7 + 10 + configuration(true).len() as u64);
    }

    #[test]
    fn an_input_without_bytes_is_said_in_the_boot_arguments() {
        let contents = assemble(vec![2; 100], Some(Vec::new()), Vec::new());
        let names: Vec<_> = contents.0.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["kernel8.img", "config.txt", "cmdline.txt"]);
        assert_eq!(contents.0[2].1, b"input=empty\n");
    }
}
