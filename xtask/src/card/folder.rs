//! Copying the files onto a card that is mounted.

use super::Contents;
use crate::failure::usage;
use anyhow::{Result, anyhow};
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;

/// Copies every file into `folder`, and reads it back. Other files there stay.
pub fn copy(contents: &Contents, folder: &Path) -> Result<()> {
    if !folder.is_dir() {
        return Err(usage(format!(
            "{} is no folder; give the place where the card is mounted",
            folder.display()
        )));
    }
    for (name, content) in &contents.0 {
        let path = folder.join(name);
        let written = File::create(&path).and_then(|mut file| {
            file.write_all(content)?;
            file.sync_all()
        });
        written.map_err(|error| {
            anyhow!("cannot write {} ({error}): is the card full, write-protected or gone?", path.display())
        })?;
        let back =
            fs::read(&path).map_err(|error| anyhow!("cannot read {} back ({error})", path.display()))?;
        if back != *content {
            return Err(anyhow!("{} does not hold what was written: use another card", path.display()));
        }
        eprintln!("xtask: {} ({} bytes)", path.display(), content.len());
    }
    Ok(())
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
        fs::remove_dir_all(&folder).unwrap();
        assert!(copy(&contents, &folder).unwrap_err().to_string().contains("no folder"));
    }
}
