//! Lists that the kernel and the host tool both have, because neither is linked into the other: they are the same.

use crate::build::root;
use magpie_xtask::serial::words::{Argument, COMMANDS, SETTINGS, VICTIMS};
use magpie_xtask::trace::Kind;
use magpie_xtask::trace::values::NAMES;
use std::fs;
use syn::{Expr, ImplItem, Item};

fn source(path: &str) -> String {
    fs::read_to_string(root().join(path)).expect("a source of the kernel")
}

/// The texts between quotes in the part of a source from `from` to `to`.
fn quoted<'a>(source: &'a str, from: &str, to: &str) -> Vec<&'a str> {
    let (_, part) = source.split_once(from).unwrap_or_else(|| panic!("no {from}"));
    let (part, _) = part.split_once(to).unwrap_or_else(|| panic!("no {to}"));
    part.split('"').skip(1).step_by(2).collect()
}

#[test]
fn kinds_of_events() {
    let file = syn::parse_file(&source("kernel/src/trace/event.rs")).expect("Rust");
    let mut numbers = Vec::new();
    let mut all = Vec::new();
    for item in file.items {
        match item {
            Item::Enum(kinds) if kinds.ident == "Kind" => {
                for variant in kinds.variants {
                    let Some((_, Expr::Lit(number))) = variant.discriminant else {
                        panic!("it has no number")
                    };
                    let syn::Lit::Int(number) = number.lit else { panic!("no number") };
                    numbers
                        .push((variant.ident.to_string(), number.base10_parse::<usize>().expect("a number")));
                }
            }
            Item::Impl(kinds) => {
                for item in kinds.items {
                    if let ImplItem::Const(list) = item
                        && list.ident == "ALL"
                        && let Expr::Array(array) = list.expr
                    {
                        let name = |element: &Expr| match element {
                            Expr::Path(path) => path.path.segments.last().map(|last| last.ident.to_string()),
                            _ => None,
                        };
                        all.extend(array.elems.iter().filter_map(name));
                    }
                }
            }
            _ => {}
        }
    }
    let known: Vec<_> = Kind::ALL.iter().map(|kind| format!("{kind:?}")).collect();
    assert_eq!(known, all, "the tool's list is another than the kernel's");
    let expected: Vec<_> = known.into_iter().zip(1..).collect();
    assert_eq!(numbers, expected);
}

#[test]
fn commands() {
    let source = source("boot/src/commands/command.rs");
    let heads = |from: &str| -> Vec<String> {
        let text = quoted(&source, from, "\";").len();
        assert_eq!(text, 0, "a list has quotes in it");
        let (_, part) = source.split_once(from).unwrap_or_else(|| panic!("no {from}"));
        let (part, _) = part.split_once("\";").expect("its end");
        part.lines().filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect()
    };
    let mut listed = heads("const HELP: &str = \"\\\n");
    listed.extend(heads("const HELP_TRACED: &str = \"\\\n"));
    let known: Vec<_> = COMMANDS.iter().map(|(name, _)| *name).collect();
    assert_eq!(known, listed);
    // What a script says to the tool would not reach the kernel.
    assert!(!known.iter().any(|name| ["expect", "wait", "end"].contains(name)));
    let after = |name| COMMANDS.iter().find(|(known, _)| *known == name).map(|(_, argument)| *argument);
    assert_eq!(after("set"), Some(Argument::Setting));
    assert_eq!(after("victim"), Some(Argument::OneOf(VICTIMS)));
}

#[test]
fn settings_and_rules() {
    let source_of_settings = source("kernel/src/sched/policy/settings.rs");
    assert_eq!(SETTINGS, quoted(&source_of_settings, "static ROWS", "];"));
    let source_of_rules = source("kernel/src/sched/policy/victim.rs");
    let mut rules = quoted(&source_of_rules, "pub fn name(", "\n    }\n");
    let mut known = VICTIMS.to_vec();
    rules.sort_unstable();
    known.sort_unstable();
    assert_eq!(known, rules);
}

/// By how many they are; their meaning is their place, which a run's own table is compared with (`traces::statistics_are_those_of_the_table`).
#[test]
fn statistics() {
    let source = source("boot/src/trace.rs");
    let (_, part) = source.split_once("fn send_values").expect("what sends them");
    let (_, part) = part.split_once("&[\n").expect("their list");
    let (part, _) = part.split_once("],").expect("its end");
    assert_eq!(part.split(",\n").filter(|value| !value.trim().is_empty()).count(), NAMES.len());
}
