//! Names for the addresses in a register dump or a backtrace: the kernel prints numbers, for its image holds no names; the
//! ELF that it was made from does.

use super::lines::{Line, Lines};
use object::{Object, ObjectSymbol, SymbolKind};

/// The registers of a dump that hold addresses of code: where it stopped, and where it was called from.
const CODE_REGISTERS: [&str; 2] = ["pc", "x30"];

/// What a line with a backtrace begins with: an instruction follows, then return addresses.
const BACKTRACE: &str = "  backtrace ";

/// The functions of an ELF.
pub struct Symbols {
    /// Address, bytes and name, by address.
    functions: Vec<(u64, u64, String)>,
    lines: Lines,
}

impl Symbols {
    /// The functions of this ELF; none if it has no symbol table.
    pub fn from_elf(elf: &[u8]) -> Self {
        let mut functions: Vec<_> = object::File::parse(elf)
            .iter()
            .flat_map(|file| file.symbols())
            .filter(|symbol| symbol.kind() == SymbolKind::Text && symbol.size() > 0)
            .filter_map(|symbol| {
                let name = format!("{:#}", rustc_demangle::demangle(symbol.name().ok()?));
                Some((symbol.address(), symbol.size(), name))
            })
            .collect();
        functions.sort();
        Self { functions, lines: Lines::of_elf(elf) }
    }

    /// Functions and lines to the addresses of a backtrace, those that were inlined too.
    fn backtrace(&self, addresses: &str) -> Vec<String> {
        let mut said = Vec::new();
        for (index, word) in addresses.split_ascii_whitespace().enumerate() {
            let Ok(address) = u64::from_str_radix(word, 16) else { return said };
            // What follows a call may belong to another line, or another function.
            let instruction = if index == 0 { address } else { address.wrapping_sub(1) };
            let mut before = word;
            for Line { function, place } in self.lines.at(instruction) {
                let place = place.map_or(String::new(), |place| format!(" at {place}"));
                said.push(format!("    {before:16} {function}{place}"));
                before = "    inlined into";
            }
            if before == word
                && let Some(name) = self.name_of(address)
            {
                said.push(format!("    {word:16} {name}"));
            }
        }
        said
    }

    fn find(&self, address: u64) -> Option<&(u64, u64, String)> {
        let after = self.functions.partition_point(|(start, ..)| *start <= address);
        self.functions.get(after.checked_sub(1)?).filter(|(start, bytes, _)| address - start < *bytes)
    }

    /// The function that an address is in.
    pub fn function(&self, address: u64) -> Option<&str> {
        self.find(address).map(|(.., name)| name.as_str())
    }

    /// The function that an address is in, and how far.
    fn name_of(&self, address: u64) -> Option<String> {
        self.find(address).map(|(start, _, name)| format!("{name} + {:#x}", address - start))
    }

    /// What a line of a register dump says about code, one line for each register, or a backtrace; nothing for other lines.
    pub fn explain(&self, line: &[u8]) -> Vec<String> {
        let Ok(line) = std::str::from_utf8(line) else { return Vec::new() };
        if let Some(addresses) = line.strip_prefix(BACKTRACE) {
            return self.backtrace(addresses);
        }
        if !line.starts_with("  ") {
            return Vec::new();
        }
        let words: Vec<_> = line.split_ascii_whitespace().collect();
        let mut said = Vec::new();
        for pair in words.windows(2) {
            if CODE_REGISTERS.contains(&pair[0])
                && pair[1].len() == 16
                && let Ok(address) = u64::from_str_radix(pair[1], 16)
                && let Some(name) = self.name_of(address)
            {
                said.push(format!("  {} is in {name}", pair[0]));
            }
        }
        said
    }
}

#[cfg(test)]
mod tests {
    use super::{Lines, Symbols};

    fn symbols() -> Symbols {
        let functions = vec![(0x1000, 0x20, "first".into()), (0x1020, 0x8, "second".into())];
        Symbols { functions, lines: Lines::of_elf(b"no ELF") }
    }

    #[test]
    fn code_registers_of_a_dump_get_names() {
        let line = b"  pc  0000000000001004  sp  0000000000001020  pstate 00000005";
        assert_eq!(symbols().explain(line), ["  pc is in first + 0x4"]);
        let line = b"  x28 0000000000001000  x29 0000000000001000  x30 0000000000001024";
        assert_eq!(symbols().explain(line), ["  x30 is in second + 0x4"]);
    }

    #[test]
    fn a_backtrace_without_lines_gets_names() {
        let line = b"  backtrace 0000000000001004 0000000000001024 0000000000009999 000000000000100c";
        let names = [
            "    0000000000001004 first + 0x4",
            "    0000000000001024 second + 0x4",
            "    000000000000100c first + 0xc",
        ];
        assert_eq!(symbols().explain(line), names);
        assert!(symbols().explain(b"  backtrace nowhere").is_empty());
    }

    #[test]
    fn other_lines_and_addresses_outside_get_none() {
        for line in
            ["pc  0000000000001004", "  pc  0000000000001028", "  pc  1004", "  pc", "  the pc is here"]
        {
            assert!(symbols().explain(line.as_bytes()).is_empty(), "{line}");
        }
        assert!(symbols().explain(b"  pc  \xff").is_empty());
        assert!(Symbols::from_elf(b"no ELF").explain(b"  pc  0000000000001004").is_empty());
    }
}
