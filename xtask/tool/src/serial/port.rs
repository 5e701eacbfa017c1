//! Opening a serial port: a device, or the socket of an emulator (`unix:PATH`).

use crate::failure::usage;
use anyhow::{Result, anyhow};
use std::io::{self, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// How long a read or a write waits: short, so that Ctrl-C is heard.
const GLANCE: Duration = Duration::from_millis(100);
/// The prefix of a socket's path.
pub const SOCKET: &str = "unix:";

/// A serial port.
pub trait Port: Read + Write + Send {}

impl<T: Read + Write + Send> Port for T {}

/// Opens a port at a speed in bits per second. A read that gets nothing for a moment, or a write that
/// nobody takes, fails with `TimedOut` or `WouldBlock`.
pub fn open(name: &str, baud: u32) -> io::Result<Box<dyn Port>> {
    if let Some(path) = name.strip_prefix(SOCKET) {
        let stream = UnixStream::connect(path)?;
        stream.set_read_timeout(Some(GLANCE))?;
        stream.set_write_timeout(Some(GLANCE))?;
        return Ok(Box::new(stream));
    }
    let port = serialport::new(name, baud).timeout(GLANCE).open()?;
    Ok(Box::new(port))
}

/// Why a port cannot be opened, and what to do.
pub fn explain(name: &str, error: &io::Error) -> anyhow::Error {
    match error.kind() {
        io::ErrorKind::PermissionDenied => usage(format!(
            "{name} may not be opened by you: it belongs to the group {}; run: sudo usermod -aG {0} $USER, and log \
             in again",
            group_of(Path::new(name)).unwrap_or_else(|| "dialout".into())
        )),
        io::ErrorKind::NotFound => usage(format!(
            "there is no {name}: plug the adapter in, and look for its name with: ls /dev/tty*"
        )),
        _ => anyhow!("{name} cannot be opened ({error}): does another program use it?"),
    }
}

/// The name of the group that a file belongs to.
fn group_of(path: &Path) -> Option<String> {
    let number = std::fs::metadata(path).ok()?.gid().to_string();
    let groups = std::fs::read_to_string("/etc/group").ok()?;
    groups.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)? == number).then(|| name.to_owned())
    })
}

/// For callers that must have it now.
pub fn open_now(name: &str, baud: u32) -> Result<Box<dyn Port>> {
    open(name, baud).map_err(|error| explain(name, &error))
}

#[cfg(test)]
mod tests {
    use super::{explain, group_of};
    use crate::failure::{USAGE, status_of};
    use std::io;
    use std::path::Path;

    #[test]
    fn errors_say_what_to_do() {
        let missing = explain("/dev/ttyUSB9", &io::ErrorKind::NotFound.into());
        assert!(missing.to_string().contains("plug the adapter in"));
        assert_eq!(status_of(&missing), USAGE);
        let denied = explain("/dev/null", &io::ErrorKind::PermissionDenied.into());
        assert!(denied.to_string().contains("usermod -aG"), "{denied}");
    }

    #[test]
    fn groups_have_names() {
        assert_eq!(group_of(Path::new("/dev/null")).as_deref(), Some("root"));
        assert_eq!(group_of(Path::new("/no/such/file")), None);
    }
}
