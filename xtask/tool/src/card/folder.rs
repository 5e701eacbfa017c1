//! Copying the files onto a card that is mounted.

use super::Contents;
use crate::failure::usage;
use anyhow::{Result, anyhow};
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;

/// Whether a card may be there.
pub fn check(folder: &Path) -> Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    Err(usage(format!("{} is no folder; give the place where the card is mounted", folder.display())))
}

/// Copies every file into `folder`, and reads it back. Other files there stay. What a file replaces stays until the new one is
/// whole, so a card that is full or pulled out boots as before.
pub fn copy(contents: &Contents, folder: &Path) -> Result<()> {
    check(folder)?;
    for (name, content) in &contents.0 {
        let (path, part) = (folder.join(name), folder.join(format!("{name}.part")));
        let written = write_back(content, &part, &path);
        if written.is_err() {
            // It may not have come into being.
            let _ = fs::remove_file(&part);
        }
        written?;
        eprintln!("xtask: {} ({} bytes)", path.display(), content.len());
    }
    Ok(())
}

/// Writes `part`, reads it back, and puts it in the place of `path`.
fn write_back(content: &[u8], part: &Path, path: &Path) -> Result<()> {
    let cannot = |error| {
        anyhow!("cannot write {} ({error}): is the card full, write-protected or gone?", path.display())
    };
    let mut file = File::create(part).map_err(cannot)?;
    file.write_all(content).and_then(|()| file.sync_all()).map_err(cannot)?;
    drop(file);
    let back = fs::read(part).map_err(|error| anyhow!("cannot read {} back ({error})", path.display()))?;
    if back != content {
        return Err(anyhow!("{} does not hold what was written: use another card", path.display()));
    }
    fs::rename(part, path).map_err(cannot)
}

#[cfg(test)]
mod tests {
    use super::{Contents, copy};
    use std::fs;

    #[test]
    fn files_arrive_and_others_stay() {
        let folder = std::env::temp_dir().join(format!("magpie-folder-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("mine"), "kept").unwrap();
        let contents = Contents(vec![("kernel8.img".into(), vec![7; 5000])]);
        copy(&contents, &folder).unwrap();
        assert_eq!(fs::read(folder.join("kernel8.img")).unwrap(), vec![7; 5000]);
        assert_eq!(fs::read(folder.join("mine")).unwrap(), b"kept");
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 2, "nothing else is left");
        // What cannot be written leaves what was there.
        fs::create_dir(folder.join("config.txt.part")).unwrap();
        let more = Contents(vec![("config.txt".into(), vec![1])]);
        fs::write(folder.join("config.txt"), "old").unwrap();
        assert!(copy(&more, &folder).is_err());
        assert_eq!(fs::read(folder.join("config.txt")).unwrap(), b"old");
        fs::remove_dir_all(&folder).unwrap();
        assert!(copy(&contents, &folder).unwrap_err().to_string().contains("no folder"));
    }
}
