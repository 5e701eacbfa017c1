//! Functions and lines of the source to an address, those that were inlined there too: from what the compiler tells debuggers in
//! the ELF. It is read when the first address is asked for, because most runs ask for none.

use crate::build::root;
use addr2line::Context;
use gimli::{Dwarf, EndianArcSlice, LittleEndian};
use object::{Object, ObjectSection};
use std::cell::OnceCell;
use std::sync::Arc;

type Slice = EndianArcSlice<LittleEndian>;

/// What is known of an ELF's lines.
pub struct Lines {
    elf: Arc<[u8]>,
    context: OnceCell<Option<Context<Slice>>>,
}

/// One function that an address is in.
#[derive(Debug, PartialEq, Eq)]
pub struct Line {
    /// The function's name.
    pub function: String,
    /// File and line, if they are known.
    pub place: Option<String>,
}

impl Lines {
    /// The lines of this ELF.
    pub fn of_elf(elf: &[u8]) -> Self {
        Self { elf: elf.into(), context: OnceCell::new() }
    }

    /// The functions that the instruction at an address is in: the inmost first, then what that was inlined into. None if nothing
    /// is known of it.
    pub fn at(&self, address: u64) -> Vec<Line> {
        let Some(context) = self.context.get_or_init(|| context(&self.elf)) else { return Vec::new() };
        let Ok(mut frames) = context.find_frames(address).skip_all_loads() else { return Vec::new() };
        let mut lines = Vec::new();
        while let Ok(Some(frame)) = frames.next() {
            let Some(function) = frame.function else { continue };
            let Ok(name) = function.raw_name() else { continue };
            let place = frame
                .location
                .and_then(|location| Some(format!("{}:{}", relative(location.file?), location.line?)));
            lines.push(Line { function: format!("{:#}", rustc_demangle::demangle(&name)), place });
        }
        lines
    }
}

/// What the ELF has of it; `None` if it has nothing, or it is damaged.
fn context(elf: &[u8]) -> Option<Context<Slice>> {
    let file = object::File::parse(elf).ok()?;
    let section = |id: gimli::SectionId| {
        let data = file.section_by_name(id.name()).and_then(|section| section.data().ok());
        Ok::<_, gimli::Error>(Slice::new(data.unwrap_or_default().into(), LittleEndian))
    };
    Context::from_dwarf(Dwarf::load(section).ok()?).ok()
}

/// A file of the project as it is called there.
fn relative(file: &str) -> &str {
    let inside = root().to_str().and_then(|root| file.strip_prefix(root)?.strip_prefix('/'));
    inside.unwrap_or(file)
}
