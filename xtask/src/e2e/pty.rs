//! A pseudo-terminal between the tool and an emulator's socket: the tool opens it as it opens a serial adapter. What goes
//! through it can be damaged, so that it is as bad as a bad cable.

use crate::random::Random;
use anyhow::{Context, Result};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::pty::openpty;
use nix::sys::termios::{SetArg, cfmakeraw, tcgetattr, tcsetattr};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

/// What happens to bytes on their way, in both directions.
#[derive(Clone, Copy)]
pub struct Damage {
    /// One of so many is lost, and one of so many changed.
    pub one_of: usize,
    /// Whether any is changed.
    pub changes: bool,
    /// Only so many of those from the tool pass before it ends: what the kernel says later arrives whole.
    pub until: usize,
}

/// Makes a pseudo-terminal whose other end is the socket, and returns what the tool opens. It ends with the socket.
pub fn to(socket: &Path, damage: Option<Damage>) -> Result<PathBuf> {
    let ends = openpty(None, None).context("cannot make a pseudo-terminal")?;
    // Copies, for these are closed in programs that are started: the tool must not hold the end that hangs up.
    let master = ends.master.try_clone().context("cannot copy the terminal")?;
    let slave = ends.slave.try_clone().context("cannot copy the terminal")?;
    drop(ends);
    // Bytes as they are: no echo, no change of line ends.
    let mut settings = tcgetattr(&slave).context("cannot read the terminal's settings")?;
    cfmakeraw(&mut settings);
    tcsetattr(&slave, SetArg::TCSANOW, &settings).context("cannot set the terminal raw")?;
    let path = nix::unistd::ttyname(&slave).context("the terminal has no name")?;
    let board = UnixStream::connect(socket).context("cannot connect to the socket")?;
    let bridge =
        Bridge { tool: File::from(master), board, held: slave, damage, random: Random::new(1), passed: 0 };
    // It ends with the emulator, which the case ends.
    thread::spawn(move || bridge.run());
    Ok(path)
}

struct Bridge {
    tool: File,
    board: UnixStream,
    /// Without a holder the terminal would hang up whenever the tool is not there.
    held: OwnedFd,
    damage: Option<Damage>,
    random: Random,
    /// Bytes from the tool.
    passed: usize,
}

impl Bridge {
    /// Copies until either side ends.
    fn run(mut self) -> io::Result<()> {
        loop {
            let mut ready = [
                PollFd::new(self.tool.as_fd(), PollFlags::POLLIN),
                PollFd::new(self.board.as_fd(), PollFlags::POLLIN),
            ];
            poll(&mut ready, PollTimeout::NONE)?;
            let [from_tool, from_board] = ready.map(|one| one.any().unwrap_or_default());
            let mut buffer = [0; 256];
            if from_tool {
                let count = self.tool.read(&mut buffer)?;
                self.passed += count;
                let bytes = self.on_the_way(&buffer[..count]);
                self.board.write_all(&bytes)?;
            }
            if from_board {
                let count = self.board.read(&mut buffer)?;
                if count == 0 {
                    return self.wait_until_read();
                }
                let bytes = self.on_the_way(&buffer[..count]);
                self.tool.write_all(&bytes)?;
            }
        }
    }

    /// The board has ended. What the tool has not read when the terminal hangs up would be lost.
    fn wait_until_read(&self) -> io::Result<()> {
        for _ in 0..600 {
            // First, for what was written gets to the other end a little later.
            thread::sleep(Duration::from_millis(100));
            let mut unread = [PollFd::new(self.held.as_fd(), PollFlags::POLLIN)];
            if poll(&mut unread, PollTimeout::ZERO)? == 0 {
                break;
            }
        }
        Ok(())
    }

    fn on_the_way(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut bytes = bytes.to_vec();
        if let Some(Damage { one_of, changes, until }) = self.damage
            && self.passed < until
        {
            bytes.retain(|_| self.random.below(one_of) != 0);
            for byte in &mut bytes {
                if changes && self.random.below(one_of) == 0 {
                    *byte ^= 1 << self.random.below(8);
                }
            }
        }
        bytes
    }
}
