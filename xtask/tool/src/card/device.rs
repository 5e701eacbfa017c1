//! What may be written to: a whole, removable block device that nothing uses. Linux; elsewhere a tool of the
//! system writes the image.

use super::flash::Target;
use crate::failure::usage;
use anyhow::{Context, Result};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Reads and writes past the page cache, so that what is read back comes from the card.
#[cfg(target_arch = "x86_64")]
const O_DIRECT: i32 = 0o40000;
/// The same.
#[cfg(not(target_arch = "x86_64"))]
const O_DIRECT: i32 = 0o200000;
/// What memory and offsets must be aligned to for that.
const BLOCK_BYTES: usize = 4096;

/// What Linux says about a device. The folders are those of the running system, or stand-ins for tests.
pub struct System {
    /// `/sys/class/block`.
    pub blocks: PathBuf,
    /// `/proc/self/mountinfo`.
    pub mounts: PathBuf,
    /// `/proc/swaps`.
    pub swaps: PathBuf,
}

impl Default for System {
    fn default() -> Self {
        Self {
            blocks: "/sys/class/block".into(),
            mounts: "/proc/self/mountinfo".into(),
            swaps: "/proc/swaps".into(),
        }
    }
}

/// A card that may be written to.
#[derive(Debug, PartialEq, Eq)]
pub struct Card {
    /// The device.
    pub path: PathBuf,
    /// What it calls itself.
    pub model: String,
    /// How long it is.
    pub bytes: u64,
}

impl System {
    /// Looks at the device called `name`, and refuses what is no card or in use.
    pub fn card(&self, path: &Path) -> Result<Card> {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let shown = path.display();
        let folder = self.blocks.join(&name);
        let read = |file: &str| fs::read_to_string(folder.join(file)).ok().map(|text| text.trim().to_owned());
        if !folder.exists() {
            return Err(usage(format!(
                "{shown} is no block device of this system; give the card's, like /dev/sdb"
            )));
        }
        if folder.join("partition").exists() {
            return Err(usage(format!("{shown} is a partition; give the whole card's device")));
        }
        // A reader on USB says that its medium is removable; one on the board calls the card SD.
        let removable =
            read("removable").as_deref() == Some("1") || read("device/type").as_deref() == Some("SD");
        if !removable {
            return Err(usage(format!("{shown} is not removable: it is no card; nothing was written")));
        }
        self.refuse_used(&name, &folder, path)?;
        let sectors: u64 = read("size").and_then(|text| text.parse().ok()).unwrap_or(0);
        if sectors == 0 {
            return Err(usage(format!("there is no card in {shown}; put one in")));
        }
        let model = read("device/model").or_else(|| read("device/name")).unwrap_or_else(|| "unnamed".into());
        // The kernel counts in these units whatever the device's sectors are.
        Ok(Card { path: path.to_owned(), model, bytes: sectors * 512 })
    }

    fn refuse_used(&self, name: &str, folder: &Path, path: &Path) -> Result<()> {
        let mut numbers = vec![fs::read_to_string(folder.join("dev")).unwrap_or_default()];
        let entries =
            fs::read_dir(folder).with_context(|| format!("cannot look into {}", folder.display()))?;
        for entry in entries.flatten().filter(|entry| entry.path().join("partition").exists()) {
            numbers.push(fs::read_to_string(entry.path().join("dev")).unwrap_or_default());
        }
        let mounts = fs::read_to_string(&self.mounts).context("cannot see what is mounted")?;
        for line in mounts.lines() {
            // Number, parent, major:minor, root, mount point.
            let mut fields = line.split(' ').skip(2);
            let (number, place) = (fields.next().unwrap_or_default(), fields.nth(1).unwrap_or_default());
            if numbers.iter().any(|known| known.trim() == number) {
                return Err(usage(format!("{} is mounted at {place}; run: umount {place}", path.display())));
            }
        }
        let swaps = fs::read_to_string(&self.swaps).unwrap_or_default();
        if swaps.lines().any(|line| line.starts_with(&format!("/dev/{name}"))) {
            return Err(usage(format!("{} is used as swap space; it is no card", path.display())));
        }
        Ok(())
    }
}

/// Refuses anything but a block device.
pub fn check_is_device(path: &Path) -> Result<()> {
    let shown = path.display();
    let metadata = fs::metadata(path).map_err(|error| {
        usage(format!("there is no {shown} ({error}); give the card's device, like /dev/sdb"))
    })?;
    if !metadata.file_type().is_block_device() {
        return Err(usage(format!(
            "{shown} is no block device; to make a file, use: cargo xtask image --output FILE"
        )));
    }
    Ok(())
}

/// A card, open for writing.
pub struct OpenCard {
    file: File,
    path: PathBuf,
    bytes: u64,
    /// Once everything was written: opened anew, past the cache if the device allows that.
    reader: Option<File>,
    buffer: Vec<u8>,
}

impl OpenCard {
    /// Opens it. From here on nobody else can mount it.
    pub fn open(card: &Card) -> Result<Self> {
        // For a block device this means: not while it is mounted.
        const O_EXCL: i32 = 0o200;
        let file = OpenOptions::new().write(true).custom_flags(O_EXCL).open(&card.path);
        let file = file.map_err(|error| {
            let advice = match error.kind() {
                io::ErrorKind::PermissionDenied => {
                    "run the command as root, or as a member of the device's group"
                }
                io::ErrorKind::ResourceBusy => "it is in use; unmount it",
                _ => "is the card still there?",
            };
            usage(format!("{} cannot be opened ({error}): {advice}", card.path.display()))
        })?;
        Ok(Self { file, path: card.path.clone(), bytes: card.bytes, reader: None, buffer: Vec::new() })
    }
}

impl Target for OpenCard {
    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.file.seek(SeekFrom::Start(offset))?;
        self.file.write_all(bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.file.sync_all()?;
        let direct = OpenOptions::new().read(true).custom_flags(O_DIRECT).open(&self.path);
        self.reader = Some(direct.or_else(|_| File::open(&self.path))?);
        Ok(())
    }

    fn read_at(&mut self, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
        let reader = self.reader.as_mut().ok_or(io::ErrorKind::NotConnected)?;
        // Whole blocks into aligned memory, as reading past the cache demands.
        let length = bytes.len().next_multiple_of(BLOCK_BYTES);
        self.buffer.resize(length + BLOCK_BYTES, 0);
        let skip = self.buffer.as_ptr().align_offset(BLOCK_BYTES);
        let aligned = &mut self.buffer[skip..skip + length];
        reader.seek(SeekFrom::Start(offset))?;
        let mut have = 0;
        while have < bytes.len() {
            match reader.read(&mut aligned[have..])? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                more => have += more,
            }
        }
        bytes.copy_from_slice(&aligned[..bytes.len()]);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{Card, OpenCard, System, Target, check_is_device};
    use crate::failure::{USAGE, status_of};
    use std::fs;
    use std::path::{Path, PathBuf};

    /// A system of files in a folder of its own.
    struct Stage(PathBuf);

    impl Stage {
        fn new(name: &str) -> Self {
            let folder = std::env::temp_dir().join(format!("magpie-card-{}-{name}", std::process::id()));
            fs::create_dir_all(folder.join("block/sdx/device")).unwrap();
            let stage = Self(folder);
            stage.write("mounts", "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n");
            stage.write("swaps", "Filename Type\n/dev/sda2 partition\n");
            stage.write("block/sdx/removable", "1\n");
            stage.write("block/sdx/dev", "8:48\n");
            stage.write("block/sdx/size", "62333952\n");
            stage.write("block/sdx/device/model", "SD Reader  \n");
            stage
        }

        fn write(&self, file: &str, text: &str) {
            let path = self.0.join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }

        fn card(&self) -> anyhow::Result<Card> {
            self.named("/dev/sdx")
        }

        fn named(&self, path: &str) -> anyhow::Result<Card> {
            let system = System {
                blocks: self.0.join("block"),
                mounts: self.0.join("mounts"),
                swaps: self.0.join("swaps"),
            };
            system.card(Path::new(path))
        }

        fn refusal(&self) -> String {
            let error = self.card().unwrap_err();
            assert_eq!(status_of(&error), USAGE);
            format!("{error:#}")
        }
    }

    impl Drop for Stage {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn a_card_in_a_reader_is_accepted() {
        let card = Stage::new("good").card().unwrap();
        assert_eq!(
            card,
            Card { path: "/dev/sdx".into(), model: "SD Reader".into(), bytes: 62_333_952 * 512 }
        );
    }

    #[test]
    fn a_card_in_the_boards_own_slot_is_accepted() {
        let stage = Stage::new("slot");
        stage.write("block/sdx/removable", "0\n");
        assert!(stage.refusal().contains("not removable"));
        stage.write("block/sdx/device/type", "SD\n");
        assert!(stage.card().is_ok());
    }

    #[test]
    fn what_is_mounted_is_refused_with_the_command_that_helps() {
        let stage = Stage::new("mounted");
        stage.write("block/sdx/sdx1/partition", "1\n");
        stage.write("block/sdx/sdx1/dev", "8:49\n");
        assert!(stage.card().is_ok());
        stage.write("mounts", "30 1 8:49 / /media/card rw - vfat /dev/sdx1 rw\n");
        assert!(stage.refusal().ends_with("run: umount /media/card"));
        stage.write("mounts", "30 1 8:48 / /mnt rw - vfat /dev/sdx rw\n");
        assert!(stage.refusal().contains("mounted at /mnt"));
    }

    #[test]
    fn swap_partitions_and_empty_readers_are_refused() {
        let stage = Stage::new("others");
        stage.write("swaps", "Filename Type\n/dev/sdx2 partition\n");
        assert!(stage.refusal().contains("swap"));
        stage.write("swaps", "");
        stage.write("block/sdx/size", "0\n");
        assert!(stage.refusal().contains("no card in"));
        stage.write("block/sdx/partition", "1\n");
        assert!(stage.refusal().contains("whole card"));
        assert!(stage.named("/dev/sdy").unwrap_err().to_string().contains("no block device"));
    }

    #[test]
    fn files_are_no_devices() {
        let stage = Stage::new("file");
        let error = check_is_device(&stage.0.join("mounts")).unwrap_err();
        assert!(error.to_string().contains("cargo xtask image"));
        assert!(check_is_device(&stage.0.join("nonesuch")).unwrap_err().to_string().contains("there is no"));
    }

    #[test]
    fn an_open_card_is_written_and_read_back() {
        let stage = Stage::new("open");
        let path = stage.0.join("standing-in");
        fs::write(&path, vec![0; 1 << 20]).unwrap();
        let card = Card { path: path.clone(), model: String::new(), bytes: 1 << 20 };
        let mut open = OpenCard::open(&card).unwrap();
        let bytes: Vec<u8> = (0..10_000).map(|i| i as u8).collect();
        open.write_at(8192, &bytes).unwrap();
        open.sync().unwrap();
        let mut back = vec![0; bytes.len()];
        open.read_at(8192, &mut back).unwrap();
        assert!(back == bytes);
        assert!(open.read_at((1 << 20) - 4096, &mut back).is_err(), "past the end");
    }
}
