//! Reads the files of `kernel/mutants`; `kernel/mutants/mutant.rs` says what is in them.

use anyhow::{Context, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};
use toml::{Table, Value};

/// One thing that is broken.
#[derive(Debug, PartialEq, Eq)]
pub struct Mutant {
    /// As in `MAGPIE_MUTANT`.
    pub name: String,
    /// The function that it breaks; `None`: the text is looked for in the whole file.
    pub function: Option<String>,
    /// The code that it breaks.
    pub find: String,
    /// What stands there instead, in one line.
    pub put: String,
}

/// The mutants of one source file.
#[derive(Debug, PartialEq, Eq)]
pub struct Subject {
    /// Where the mutants are listed.
    pub list: PathBuf,
    /// The source file, from the kernel's folder on.
    pub file: String,
    /// In the order of the list.
    pub mutants: Vec<Mutant>,
}

/// Reads every list in a folder.
pub fn read_lists(folder: &Path) -> Result<Vec<Subject>> {
    let files = fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let mut lists: Vec<PathBuf> = files.filter_map(|file| Some(file.ok()?.path())).collect();
    lists.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
    lists.sort();
    let subjects: Vec<Subject> = lists.into_iter().map(read_list).collect::<Result<_>>()?;
    let mut names: Vec<&str> = subjects.iter().flat_map(Subject::names).collect();
    names.sort_unstable();
    if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1]) {
        bail!("two mutants have the name {}", pair[0]);
    }
    Ok(subjects)
}

fn read_list(list: PathBuf) -> Result<Subject> {
    let text = fs::read_to_string(&list).with_context(|| format!("cannot read {}", list.display()))?;
    Subject::parse(list.clone(), &text).with_context(|| list.display().to_string())
}

impl Subject {
    /// The mutants' names.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.mutants.iter().map(|mutant| mutant.name.as_str())
    }

    fn parse(list: PathBuf, text: &str) -> Result<Self> {
        let mut table: Table = text.parse()?;
        let file = take(&mut table, "file")?;
        let Some(Value::Array(entries)) = table.remove("mutant") else { bail!("no [[mutant]]") };
        no_other_key(&table)?;
        let mutants = entries.into_iter().map(Mutant::parse).collect::<Result<_>>()?;
        Ok(Self { list, file, mutants })
    }
}

impl Mutant {
    fn parse(entry: Value) -> Result<Self> {
        let Value::Table(mut entry) = entry else { bail!("a mutant is a table, [[mutant]]") };
        let name = take(&mut entry, "name")?;
        Self::of(name.clone(), entry).with_context(|| format!("mutant {name}"))
    }

    fn of(name: String, mut entry: Table) -> Result<Self> {
        let (breaks, find, put) =
            (take(&mut entry, "breaks")?, take(&mut entry, "find")?, take(&mut entry, "put")?);
        let function = entry.contains_key("in").then(|| take(&mut entry, "in")).transpose()?;
        no_other_key(&entry)?;
        if breaks.trim().is_empty() || find.trim().is_empty() {
            bail!("'breaks' or 'find' is empty");
        }
        if put.contains("//") {
            bail!("'put' becomes one line, so it cannot have a comment");
        }
        // One line, so that the lines below keep their numbers in a panic's message.
        let put = put.split_whitespace().collect::<Vec<_>>().join(" ");
        Ok(Self { name, function, find: find.trim().to_owned(), put })
    }
}

fn take(table: &mut Table, key: &str) -> Result<String> {
    match table.remove(key) {
        Some(Value::String(text)) => Ok(text),
        Some(_) => bail!("'{key}' is not a text"),
        None => bail!("'{key}' is missing"),
    }
}

fn no_other_key(table: &Table) -> Result<()> {
    match table.keys().next() {
        Some(key) => bail!("'{key}' is not a key"),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::{Mutant, Subject};

    fn parse(text: &str) -> Result<Subject, String> {
        Subject::parse("list.toml".into(), text).map_err(|error| format!("{error:#}"))
    }

    const HEAD: &str = "file = 'src/a.rs'\n[[mutant]]\nname = 'a-b'\nbreaks = 'It.'\n";

    #[test]
    fn reads_a_list() {
        let subject = parse(&format!("{HEAD}find = 'x;'\nput = '''\ny;\n  z;\n'''\nin = 'f'\n")).unwrap();
        assert_eq!(subject.file, "src/a.rs");
        let (name, function) = ("a-b".to_owned(), Some("f".to_owned()));
        assert_eq!(subject.mutants, [Mutant { name, function, find: "x;".into(), put: "y; z;".into() }]);
    }

    #[test]
    fn says_which_entry_is_wrong_and_why() {
        let wrong = |rest: &str| parse(&format!("{HEAD}{rest}")).unwrap_err();
        assert_eq!(wrong("find = 'x'"), "mutant a-b: 'put' is missing");
        assert_eq!(wrong("find = 'x'\nput = 1"), "mutant a-b: 'put' is not a text");
        assert_eq!(wrong("find = ''\nput = ''"), "mutant a-b: 'breaks' or 'find' is empty");
        assert_eq!(wrong("find = 'x'\nput = ''\nfn = 'f'"), "mutant a-b: 'fn' is not a key");
        assert!(wrong("find = 'x'\nput = 'y // z'").contains("comment"));
        assert_eq!(parse("file = 'a'").unwrap_err(), "no [[mutant]]");
    }
}
