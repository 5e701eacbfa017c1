//! The table of rooms: which floor each is on, from the ground up, and what is excepted.
//!
//! A line each, and `#` begins a comment:
//!
//! ```text
//! facade lib.rs                         files that only hand on what is in the rooms: they may import anything
//! floor  arch                           the ground floor's rooms; the next such line is the floor above
//! except time -> sched/waker.rs: why    an import, from a room or file to a room or file, that is let pass
//! ```
//!
//! A room is a folder or a file below the crate's `src`, or `.` for all that is in no other. The longest name wins.

use anyhow::{Context, Result, bail};

/// One room.
#[derive(Debug, PartialEq, Eq)]
pub struct Room {
    /// Its folder or file.
    pub name: String,
    /// Its floor; the ground's is 1.
    pub floor: usize,
}

/// One exception.
#[derive(Debug, PartialEq, Eq)]
pub struct Exception {
    /// What imports.
    pub from: String,
    /// What is imported from.
    pub to: String,
    /// The table's line.
    pub line: usize,
}

/// The table.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Table {
    /// The rooms, ground floor first.
    pub rooms: Vec<Room>,
    /// The files that only hand on.
    pub facades: Vec<String>,
    /// What is let pass.
    pub exceptions: Vec<Exception>,
}

impl Table {
    /// Reads the table.
    pub fn parse(text: &str) -> Result<Self> {
        let mut table = Self::default();
        let mut floor = 0;
        for (index, line) in text.lines().enumerate() {
            let number = index + 1;
            let line = line.split('#').next().unwrap_or_default().trim();
            let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
            match word {
                "" => {}
                "floor" => {
                    floor += 1;
                    table.add_floor(floor, rest).with_context(|| format!("line {number}"))?;
                }
                "facade" => table.facades.extend(rest.split_whitespace().map(str::to_owned)),
                "except" => {
                    let exception = exception(rest, number);
                    table.exceptions.push(exception.with_context(|| {
                        format!("line {number}: an exception is 'except FROM -> TO: REASON'")
                    })?);
                }
                word => bail!("line {number}: '{word}' is none of floor, facade and except"),
            }
        }
        Ok(table)
    }

    fn add_floor(&mut self, floor: usize, names: &str) -> Result<()> {
        let rooms = self.rooms.len();
        for name in names.split_whitespace() {
            if self.rooms.iter().any(|room| room.name == name) {
                bail!("room '{name}' has a floor already");
            }
            self.rooms.push(Room { name: name.to_owned(), floor });
        }
        if self.rooms.len() == rooms {
            bail!("a floor without rooms");
        }
        Ok(())
    }

    /// The room of a file: a place in the list of rooms.
    pub fn room_of(&self, file: &str) -> Option<usize> {
        let rooms = self.rooms.iter().enumerate().filter(|(_, room)| is_in(file, &room.name));
        rooms.max_by_key(|(_, room)| if room.name == "." { 0 } else { room.name.len() }).map(|(at, _)| at)
    }

    /// Whether a file only hands on.
    pub fn is_facade(&self, file: &str) -> bool {
        self.facades.iter().any(|facade| facade == file)
    }
}

impl Exception {
    /// Whether it lets an import pass.
    pub fn covers(&self, from: &str, to: &str) -> bool {
        is_in(from, &self.from) && is_in(to, &self.to)
    }
}

fn exception(text: &str, line: usize) -> Option<Exception> {
    let (ends, reason) = text.split_once(':')?;
    let (from, to) = ends.split_once("->")?;
    let (from, to) = (from.trim().to_owned(), to.trim().to_owned());
    (!reason.trim().is_empty()).then_some(Exception { from, to, line })
}

/// Whether a file is of this name, or in a folder of this name.
pub fn is_in(file: &str, name: &str) -> bool {
    name == "."
        || file == name
        || file.strip_suffix(".rs") == Some(name)
        || file.strip_prefix(name).is_some_and(|rest| rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::{Exception, Table, is_in};

    const TEXT: &str = "# the house\nfacade lib.rs\nfloor arch a.rs # ground\n\nfloor arch/deep\n\
                        except arch -> arch/deep: the way: down\n";

    #[test]
    fn floors_are_counted_from_the_ground() {
        let table = Table::parse(TEXT).unwrap();
        let rooms: Vec<_> = table.rooms.iter().map(|room| (room.name.as_str(), room.floor)).collect();
        assert_eq!(rooms, [("arch", 1), ("a.rs", 1), ("arch/deep", 2)]);
        assert!(table.is_facade("lib.rs") && !table.is_facade("a.rs"));
        let (from, to) = ("arch".to_owned(), "arch/deep".to_owned());
        assert_eq!(table.exceptions, [Exception { from, to, line: 6 }]);
    }

    #[test]
    fn the_longest_name_wins() {
        let table = Table::parse(&format!("{TEXT}floor .")).unwrap();
        let room = |file| table.room_of(file).map(|room| table.rooms[room].name.as_str());
        assert_eq!(room("arch/deep/x.rs"), Some("arch/deep"));
        assert_eq!(room("arch/deep.rs"), Some("arch/deep"));
        assert_eq!(room("arch/deeper.rs"), Some("arch"));
        assert_eq!(room("archive.rs"), Some("."));
        assert!(!is_in("archive.rs", "arch"));
    }

    #[test]
    fn a_line_that_makes_no_sense_is_named() {
        let complaint = |text: &str| format!("{:#}", Table::parse(text).unwrap_err());
        assert_eq!(complaint("floor a\n\nroof b"), "line 3: 'roof' is none of floor, facade and except");
        assert_eq!(complaint("floor a b a"), "line 1: room 'a' has a floor already");
        assert_eq!(complaint("floor #"), "line 1: a floor without rooms");
        let form = "line 1: an exception is 'except FROM -> TO: REASON'";
        assert_eq!(complaint("except a -> b"), form);
        assert_eq!(complaint("except a -> b: "), form);
    }
}
