//! Every sample of the pages is what is compiled and run elsewhere, line for line; and every command that they show is one that the
//! tool takes.

use crate::CommandLine;
use crate::build::root;
use clap::error::ErrorKind;
use clap::{CommandFactory, Parser};
use std::fs;
use std::path::Path;

/// Where what the pages show in Rust is compiled and run: on the host, in the booted kernel, as examples, as a project.
const SOURCES: [&str; 13] = [
    "kernel/tests/guide",
    "magpie/tests",
    "tests/suites/process",
    "tests/suites/libraries",
    "examples/blink/src",
    "examples/clock/src",
    "examples/cluster/src",
    "examples/echo/src",
    "examples/first/src",
    "examples/http/src",
    "examples/journal/src",
    "examples/notes/src",
    "xtask/src/project",
];

/// The pages of the guide, by name, with their texts.
fn pages() -> Vec<(String, String)> {
    let mut found = Vec::new();
    for folder in ["", "docs", "docs/decisions"] {
        for (name, text) in files(&root().join(folder)) {
            if name.ends_with(".md") {
                found.push((Path::new(folder).join(name).display().to_string(), text));
            }
        }
    }
    found
}

fn files(folder: &Path) -> Vec<(String, String)> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    let texts = entries.filter_map(|entry| {
        Some((entry.file_name().into_string().ok()?, fs::read_to_string(entry.path()).ok()?))
    });
    texts.collect()
}

/// The lines of a text without indentation, which is another in a suite, and without empty ones.
fn lines(text: &str) -> Vec<&str> {
    text.lines().map(str::trim).filter(|line| !line.is_empty()).collect()
}

/// The blocks between fences that begin so, and blocks of any beginning where none is given.
fn blocks<'a>(text: &'a str, wanted: Option<&str>) -> Vec<Vec<&'a str>> {
    let mut found = Vec::new();
    let mut open: Option<(&str, Vec<&str>)> = None;
    for line in text.lines().map(str::trim) {
        match (&mut open, line.strip_prefix("```")) {
            (None, Some(language)) => open = Some((language, Vec::new())),
            (Some(_), Some(_)) => {
                let closed =
                    open.take().filter(|(language, _)| wanted.is_none_or(|wanted| *language == wanted));
                found.extend(closed.map(|(_, lines)| lines));
            }
            (Some((_, block)), None) if !line.is_empty() => block.push(line),
            _ => {}
        }
    }
    found
}

#[test]
fn every_sample_was_compiled() {
    let sources: Vec<_> = SOURCES.iter().flat_map(|folder| files(&root().join(folder))).collect();
    let sources: Vec<_> = sources.iter().map(|(_, text)| lines(text)).collect();
    let mut found = 0;
    for (page, text) in pages() {
        assert!(!text.contains("```rust,"), "{page} has a block of Rust that is not compiled");
        for block in blocks(&text, Some("rust")) {
            found += 1;
            let compiled = sources
                .iter()
                .any(|source| source.windows(block.len()).any(|lines| lines == block.as_slice()));
            assert!(compiled, "in {page}, in none of {SOURCES:?}:\n{}", block.join("\n"));
        }
    }
    assert!(found > 70, "only {found} blocks were found");
}

/// `FILE:LINE: MESSAGE` in what a page shows of an example's panic.
fn panic_shown(line: &str) -> Option<(&str, usize, &str)> {
    let (_, place) = line.strip_prefix("panic on core ")?.split_once(" at examples/")?;
    let (place, message) = place.split_once(": ")?;
    let (file, number) = place.split_once(':')?;
    Some((file, number.parse().ok()?, message))
}

/// The end-to-end tests find that, too, but much later.
#[test]
fn every_panic_is_where_the_page_has_it() {
    let mut found = 0;
    for (page, text) in pages() {
        for (file, number, message) in text.lines().map(str::trim).filter_map(panic_shown) {
            let source = fs::read_to_string(root().join("examples").join(file)).unwrap_or_default();
            let line = source.lines().nth(number - 1).unwrap_or_default();
            assert!(
                line.contains(message),
                "{page}: '{message}' is not in line {number} of examples/{file}: {line}"
            );
            found += 1;
        }
    }
    assert!(found >= 3, "only {found} were found");
}

/// The commands in a text, without what is said about them.
fn commands(text: &str) -> Vec<String> {
    let indented = text.lines().filter_map(|line| line.strip_prefix("    "));
    let fenced: Vec<&str> = blocks(text, None).concat();
    let inline = text.lines().flat_map(|line| line.split('`').skip(1).step_by(2));
    let all = indented.chain(fenced).chain(inline);
    let commands = all.filter_map(|line| line.trim_start_matches("$ ").strip_prefix("cargo xtask "));
    // With more blanks it is the first column of something.
    let commands = commands.filter(|command| !command.starts_with(' '));
    commands.map(|command| command.split(" # ").next().unwrap_or_default().trim().to_owned()).collect()
}

#[test]
fn every_verb_is_in_the_table_of_verbs() {
    let page = fs::read_to_string(root().join("docs/host-tool.md")).unwrap();
    let table =
        page.lines().skip_while(|line| !line.starts_with("| verb |")).take_while(|line| !line.is_empty());
    let names: Vec<&str> =
        table.filter_map(|line| line.split('|').nth(1)).flat_map(|cell| cell.split('`')).collect();
    let line = CommandLine::command();
    for verb in line.get_subcommands() {
        let name = verb.get_name();
        let is_there = names.iter().any(|found| found.split(' ').next() == Some(name));
        assert!(is_there, "docs/host-tool.md has no row for {name}");
    }
}

/// What may be put in for a word of a command that stands for something.
fn filled(word: &str) -> String {
    let word = word.trim_matches(['[', ']']);
    let (option, value) = word.split_once('=').map_or((None, word), |(option, value)| (Some(option), value));
    let value = match value {
        "N" | "SECONDS" | "PORT" => "1",
        "VERB" => "qemu",
        other => other,
    };
    option.map_or_else(|| value.to_owned(), |option| format!("{option}={value}"))
}

fn words(command: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut is_quoted = false;
    for c in command.chars() {
        match c {
            '"' => is_quoted = !is_quoted,
            ' ' if !is_quoted => words.push(String::new()),
            c => words.last_mut().unwrap().push(c),
        }
    }
    words.into_iter().filter(|word| !word.is_empty()).map(|word| filled(&word)).collect()
}

#[test]
fn every_command_is_one_that_the_tool_takes() {
    let (mut refused, mut found) = (Vec::new(), 0);
    for (page, text) in pages() {
        for command in commands(&text) {
            found += 1;
            let words = words(&command);
            let is_name = words.len() == 1;
            let Err(error) = CommandLine::try_parse_from([vec!["cargo xtask".to_owned()], words].concat())
            else {
                continue;
            };
            match error.kind() {
                ErrorKind::DisplayHelp => {}
                // A verb that is spoken of.
                ErrorKind::MissingRequiredArgument if is_name => {}
                _ => refused.push(format!("{page}: cargo xtask {command}: {error}")),
            }
        }
    }
    assert!(found > 100, "only {found} commands were found");
    assert!(refused.is_empty(), "{}", refused.join("\n"));
}
