//! The loop: waits for the line and for this machine's connections at once, and never for one alone.

use super::gateway::Gateway;
use super::notice::Notice;
use super::open::Ends;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use smoltcp::time::Instant;
use std::io::{self, ErrorKind};

/// How often it is looked whether to stop.
const GLANCE_MS: u16 = 50;
/// So much is read from the line at a time.
const PIECE_BYTES: usize = 4096;

/// How it ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ending {
    /// As it was told to.
    Stopped,
    /// The line is gone: unplugged, or the emulator has ended.
    Gone,
}

/// Carries what goes over the line, until `stop` says so or it is gone.
pub fn run(
    line: &mut dyn Ends,
    gateway: &mut Gateway,
    mut say: impl FnMut(Notice),
    stop: impl Fn() -> bool,
) -> io::Result<Ending> {
    let mut piece = vec![0; PIECE_BYTES];
    while !stop() {
        gateway.turn(Instant::now());
        gateway.notice().into_iter().for_each(&mut say);
        if !write(line, gateway) {
            return Ok(Ending::Gone);
        }
        let delay = gateway.delay(Instant::now());
        let mut flags = PollFlags::POLLIN;
        flags.set(PollFlags::POLLOUT, !gateway.out().is_empty());
        let mut waits = vec![PollFd::new(line.as_fd(), flags)];
        waits.extend(gateway.waits().into_iter().map(|(end, flags)| PollFd::new(end, flags)));
        // Up to the next millisecond, or it would be waited for by looking.
        let delay = delay.map_or(GLANCE_MS.into(), |delay| delay.total_micros().div_ceil(1000));
        let delay = PollTimeout::from(delay.min(GLANCE_MS.into()) as u16);
        match poll(&mut waits, delay) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(error) => return Err(error.into()),
        }
        let has_come = waits[0].any().unwrap_or(true);
        drop(waits);
        if has_come && !read(line, gateway, &mut piece) {
            return Ok(Ending::Gone);
        }
    }
    Ok(Ending::Stopped)
}

fn is_nothing(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}

/// Takes what has come. Whether the line is still there.
fn read(line: &mut dyn Ends, gateway: &mut Gateway, piece: &mut [u8]) -> bool {
    match line.read(piece) {
        Ok(0) => false,
        Ok(count) => {
            gateway.hear(&piece[..count], Instant::now());
            true
        }
        Err(error) => is_nothing(&error),
    }
}

/// Writes what there is room for. Whether the line is still there.
fn write(line: &mut dyn Ends, gateway: &mut Gateway) -> bool {
    while !gateway.out().is_empty() {
        match line.write(gateway.out().as_slices().0) {
            Ok(count) => drop(gateway.out().drain(..count)),
            Err(error) => return is_nothing(&error),
        }
    }
    true
}
