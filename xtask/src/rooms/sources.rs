//! The sources of one crate, parsed: the files below its `src`, by their paths there.
//!
//! Says nothing of what they mean; that is `tree`'s.

use anyhow::{Context, Result};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// The crate's root.
pub const ROOT: &str = "lib.rs";

/// One file.
pub struct Source {
    /// Where it is below `src`, with `/` between folders.
    pub path: String,
    /// How many lines it has.
    pub lines: usize,
    /// What is in it.
    pub syntax: syn::File,
}

/// All files, sorted by path.
pub struct Sources {
    /// The files. Elsewhere a file is its place in this list.
    pub files: Vec<Source>,
}

impl Sources {
    /// Reads a folder and what is below it.
    pub fn read(folder: &Path) -> Result<Self> {
        let mut texts = BTreeMap::new();
        read_into(&mut texts, folder, "")?;
        Self::parse(texts)
    }

    /// Takes texts by their paths.
    pub fn parse(texts: BTreeMap<String, String>) -> Result<Self> {
        let parsed = texts.into_iter().map(|(path, text)| {
            let syntax = syn::parse_file(&text).with_context(|| format!("{path} is not Rust"))?;
            Ok(Source { path, lines: text.lines().count(), syntax })
        });
        Ok(Self { files: parsed.collect::<Result<_>>()? })
    }

    /// Which file has this path.
    pub fn find(&self, path: &str) -> Option<usize> {
        self.files.binary_search_by(|file| file.path.as_str().cmp(path)).ok()
    }
}

fn read_into(texts: &mut BTreeMap<String, String>, folder: &Path, prefix: &str) -> Result<()> {
    let unreadable = || format!("{} cannot be read", folder.display());
    for entry in fs::read_dir(folder).with_context(unreadable)? {
        let entry = entry.with_context(unreadable)?;
        let path = format!("{prefix}{}", entry.file_name().to_string_lossy());
        if entry.path().is_dir() {
            read_into(texts, &entry.path(), &format!("{path}/"))?;
        } else if path.ends_with(".rs") {
            let text = fs::read_to_string(entry.path()).with_context(|| format!("{path} cannot be read"))?;
            texts.insert(path, text);
        }
    }
    Ok(())
}
