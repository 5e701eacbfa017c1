//! Processes that talk: mailboxes of their own, asking actors, timers as messages.
#![cfg_attr(target_os = "none", no_std, no_main)]

extern crate alloc;

mod asking;
mod crash;
mod everywhere;
mod executors;
mod failing;
mod lead;
mod listing;
mod naming;
mod seeing;
mod timers;

magpie_tests::suite!();
