//! What hangs on a machine besides what it always has: on `virt` devices of virtio, by memory-mapped registers; on `raspi4b` a card.

use super::lossy::Lossy;
use crate::failure::usage;
use anyhow::Result;
use std::fs::OpenOptions;
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener};
use std::path::{Path, PathBuf};

/// A disk, and whether what is written stays.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Disk {
    /// The file that it is.
    pub file: PathBuf,
    /// Whether the file is changed. Otherwise what is written is forgotten when the machine ends.
    pub is_kept: bool,
}

/// The devices.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Attached {
    /// A disk.
    pub disk: Option<Disk>,
    /// A source of random numbers.
    pub has_random: bool,
    /// A network card, whose other end is QEMU's own network.
    pub net: Option<Net>,
    /// A second serial port, with the network on it, whose other end is this tool.
    pub line: Option<Net>,
    /// A console.
    pub console: Option<Console>,
    /// The card in the slot of `raspi4b`.
    pub card: Option<Disk>,
    /// What hangs on the I2C bus of `raspi4b`'s header: QEMU's names of devices, and their addresses.
    pub i2c: Vec<(&'static str, u8)>,
    /// They are of the legacy kind, as before virtio 1.0.
    pub is_legacy: bool,
}

/// QEMU's own network, or what this tool has in its place on a serial line. Neither needs rights: the guest reaches the host and beyond, and is reached at the ports that are forwarded.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Net {
    /// What comes to the first port of this machine, at that address of it, goes to the second of the guest.
    pub forwards: Vec<(SocketAddrV4, u16)>,
    /// What lies between a card and that network, if it is to be a bad one.
    lossy: Option<Lossy>,
}

/// The other end of a console.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Console {
    /// Whoever connects to this TCP port of this machine, one at a time. What the guest says while nobody does is lost.
    Port(u16),
    /// Nobody.
    Nobody,
}

impl Console {
    /// This port, which is tried: one that is taken is refused.
    pub fn checked(port: u16) -> Result<Self> {
        if port == 0 {
            return Err(usage("--console 0: give a port of this machine, like --console 7000"));
        }
        TcpListener::bind((Ipv4Addr::LOCALHOST, port)).map_err(|error| {
            usage(format!("--console {port}: the port cannot be taken ({error}); give another"))
        })?;
        Ok(Self::Port(port))
    }

    fn arguments(&self) -> [String; 2] {
        let end = match self {
            Self::Port(port) => format!("socket,id=console,host=127.0.0.1,port={port},server=on,wait=off"),
            Self::Nobody => "null,id=console".to_owned(),
        };
        ["-chardev".into(), end]
    }
}

impl Net {
    /// With these forwards, of the form `[ADDRESS:]HOST:GUEST`. A host's port is tried: one that is taken is refused.
    pub fn checked(forwards: &[String]) -> Result<Self> {
        let mut net = Self::default();
        for forward in forwards {
            let Some((host, guest)) = ports(forward) else {
                return Err(usage(format!(
                    "--forward {forward}: give two ports, of this machine and of the guest, like --forward 7777:7, or 127.0.0.2:7777:7"
                )));
            };
            TcpListener::bind(host).map_err(|error| {
                let shown = match *host.ip() {
                    Ipv4Addr::LOCALHOST => format!("port {} of this machine", host.port()),
                    _ => host.to_string(),
                };
                usage(format!("--forward {forward}: {shown} cannot be taken ({error}); give another"))
            })?;
            net.forwards.push((host, guest));
        }
        Ok(net)
    }

    /// The same, where of a hundred frames so many are lost, as many doubled, and as many overtaken by the next.
    pub fn with_loss(self, percent: u8) -> Result<Self> {
        Ok(Self { lossy: Some(Lossy::start(percent)?), ..self })
    }

    fn arguments(&self) -> Vec<String> {
        let forwards = self.forwards.iter().map(|(host, guest)| format!(",hostfwd=tcp:{host}-:{guest}"));
        let name = if self.lossy.is_some() { "host" } else { "net" };
        let user = format!("user,id={name}{}", forwards.collect::<String>());
        let lossy = self.lossy.iter().flat_map(|lossy| lossy.arguments(name));
        ["-netdev".into(), user].into_iter().chain(lossy).collect()
    }
}

/// What a forward says; no port is zero.
fn ports(forward: &str) -> Option<(SocketAddrV4, u16)> {
    let (host, guest) = forward.rsplit_once(':')?;
    let host = match host.parse() {
        Ok(port) => SocketAddrV4::new(Ipv4Addr::LOCALHOST, port),
        Err(_) => host.parse().ok()?,
    };
    let guest = guest.parse().ok()?;
    (host.port() != 0 && guest != 0).then_some((host, guest))
}

impl Disk {
    /// This file, which has to be there, in whole sectors.
    pub fn checked(file: &Path) -> Result<Self> {
        let shown = file.display();
        let opened = OpenOptions::new().read(true).write(true).open(file);
        let opened = opened.map_err(|error| {
            usage(format!(
                "cannot write to the disk {shown} ({error}): 'truncate -s 16M {shown}' makes an empty one"
            ))
        })?;
        let found =
            opened.metadata().map_err(|error| usage(format!("cannot read the disk {shown}: {error}")))?;
        if !found.is_file() || found.len() == 0 || found.len() % 512 != 0 {
            return Err(usage(format!(
                "the disk {shown} is no file of whole sectors: 'truncate -s 16M {shown}' makes an empty one"
            )));
        }
        Ok(Self { file: file.to_owned(), is_kept: true })
    }

    /// This file as a card, which has to have a size that is a power of two: QEMU takes no other.
    pub fn checked_card(file: &Path) -> Result<Self> {
        let disk = Self::checked(file)?;
        let shown = file.display();
        let bytes = std::fs::metadata(file)
            .map_err(|error| usage(format!("cannot read the card {shown}: {error}")))?
            .len();
        if !bytes.is_power_of_two() {
            return Err(usage(format!(
                "the card {shown} has {bytes} bytes, and QEMU wants a power of two: 'truncate -s {} {shown}' adds what is missing",
                bytes.next_power_of_two()
            )));
        }
        Ok(disk)
    }

    fn arguments(&self, kind: &str) -> [String; 2] {
        // A comma in a name is written twice.
        let file = self.file.to_string_lossy().replace(',', ",,");
        let snapshot = if self.is_kept { "" } else { ",snapshot=on" };
        ["-drive".into(), format!("{kind},format=raw,file={file}{snapshot}")]
    }
}

impl Attached {
    /// QEMU's words for them.
    pub fn arguments(&self) -> Vec<String> {
        let mut words = Vec::new();
        let mut device = |name: &str| words.extend(["-device".to_owned(), name.to_owned()]);
        if self.has_random {
            device("virtio-rng-device");
        }
        if let Some(disk) = &self.disk {
            device("virtio-blk-device,drive=disk");
            words.extend(disk.arguments("if=none,id=disk"));
        }
        if let Some(net) = &self.net {
            words.extend(["-device".into(), "virtio-net-device,netdev=net".into()]);
            words.extend(net.arguments());
        }
        if let Some(console) = &self.console {
            words.extend(console.arguments());
            for name in ["virtio-serial-device", "virtconsole,chardev=console"] {
                words.extend(["-device".into(), name.into()]);
            }
        }
        if !words.is_empty() && !self.is_legacy {
            words.extend(["-global".into(), "virtio-mmio.force-legacy=false".into()]);
        }
        for (name, address) in &self.i2c {
            words.extend(["-device".into(), format!("{name},bus=i2c-bus.1,address={address}")]);
        }
        words.extend(self.card.iter().flat_map(|card| card.arguments("if=sd")));
        words
    }
}

#[cfg(test)]
mod tests {
    use super::{Attached, Console, Disk, Net};
    use std::fs;

    #[test]
    fn what_hangs_on_a_machine_is_named() {
        assert!(Attached::default().arguments().is_empty());
        let disk = Some(Disk { file: "a,b".into(), is_kept: false });
        let attached = Attached { disk, has_random: true, is_legacy: true, ..Attached::default() };
        assert_eq!(
            attached.arguments().join(" "),
            "-device virtio-rng-device -device virtio-blk-device,drive=disk \
             -drive if=none,id=disk,format=raw,file=a,,b,snapshot=on"
        );
        assert!(
            Attached { is_legacy: false, ..attached }.arguments().join(" ").ends_with("force-legacy=false")
        );
    }

    #[test]
    fn what_hangs_on_raspi4b_is_named_and_a_card_is_a_power_of_two() {
        let card = Some(Disk { file: "c".into(), is_kept: true });
        let attached = Attached { card, i2c: vec![("tmp105", 0x48)], ..Attached::default() };
        assert_eq!(
            attached.arguments().join(" "),
            "-device tmp105,bus=i2c-bus.1,address=72 -drive if=sd,format=raw,file=c"
        );
        let file = std::env::temp_dir().join(format!("magpie-card-{}", std::process::id()));
        for (bytes, is_one) in [(512, true), (1536, false), (1 << 20, true)] {
            fs::write(&file, vec![0; bytes]).unwrap();
            assert_eq!(Disk::checked_card(&file).is_ok(), is_one, "{bytes}");
        }
        fs::write(&file, [0; 1536]).unwrap();
        assert!(Disk::checked_card(&file).unwrap_err().to_string().contains("truncate -s 2048"));
        fs::remove_file(&file).unwrap();
    }

    #[test]
    fn a_console_is_a_port() {
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = free.local_addr().unwrap().port();
        assert!(Console::checked(port).unwrap_err().to_string().contains("cannot be taken"));
        drop(free);
        assert!(Console::checked(0).unwrap_err().to_string().contains("give a port"));
        let console = Some(Console::checked(port).unwrap());
        let attached = Attached { console, is_legacy: true, ..Attached::default() };
        let words = format!(
            "-chardev socket,id=console,host=127.0.0.1,port={port},server=on,wait=off \
             -device virtio-serial-device -device virtconsole,chardev=console"
        );
        assert_eq!(attached.arguments().join(" "), words);
    }

    #[test]
    fn ports_are_forwarded() {
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let net = Net::checked(&[format!("{free}:7")]).unwrap();
        let attached = Attached { net: Some(net), is_legacy: true, ..Attached::default() };
        let words = format!(
            "-device virtio-net-device,netdev=net -netdev user,id=net,hostfwd=tcp:127.0.0.1:{free}-:7"
        );
        assert_eq!(attached.arguments().join(" "), words);
        for wrong in
            ["", "7", "7:", ":7", "a:7", "7:70000", "0:7", "7:0", "1:2:3", "127.0.0.1:0:1", "localhost:7:7"]
        {
            assert!(Net::checked(&[wrong.into()]).unwrap_err().to_string().contains("two ports"), "{wrong}");
        }
        let elsewhere = Net::checked(&[format!("127.0.0.2:{free}:7")]).unwrap();
        assert!(elsewhere.arguments()[1].ends_with(&format!("hostfwd=tcp:127.0.0.2:{free}-:7")));
        let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let forward = format!("{}:7", taken.local_addr().unwrap().port());
        assert!(Net::checked(&[forward]).unwrap_err().to_string().contains("cannot be taken"));
    }

    #[test]
    fn a_disk_is_a_file_of_whole_sectors() {
        let file = std::env::temp_dir().join(format!("magpie-disk-{}", std::process::id()));
        assert!(Disk::checked(&file).unwrap_err().to_string().contains("truncate"));
        for (bytes, is_one) in [(0, false), (511, false), (512, true), (1024, true)] {
            fs::write(&file, vec![0; bytes]).unwrap();
            assert_eq!(Disk::checked(&file).is_ok(), is_one, "{bytes}");
        }
        fs::remove_file(&file).unwrap();
        assert!(Disk::checked(&std::env::temp_dir()).is_err());
    }
}
