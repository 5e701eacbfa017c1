//! A Magpie node in an Erlang/OTP cluster: actors that were exported are called, sent to, monitored and linked from other nodes, Erlang's or Magpie's; and actors and processes here do
//! the same with what is there.
//!
//! A [`Node`] lives on a [`Network`](magpie_net::Network). It is a *hidden* node: nobody learns of it but who connects to it, as `net_adm:ping` does. It is its own port mapper. What is
//! exported is named in [`Config`]; nothing else can be reached. The cookie keeps nodes apart by accident only: nothing is encrypted, so this is for networks that are trusted.
//!
//! The protocol is in `magpie-dist`, which knows nothing of processes and networks. Here are those: `desk` is the node's own process, `line` that of each connection, `lines` which there are,
//! `exports` what can be reached, `epmd` the port mapper.
#![cfg_attr(target_os = "none", no_std)]
#![forbid(unsafe_code)]

extern crate alloc;

mod config;
mod desk;
mod epmd;
mod error;
mod exports;
mod line;
mod lines;
mod node;
mod reason;
mod remote;
mod shared;
mod watched;

pub use config::Config;
pub use error::Error;
pub use exports::{Arguments, Failed};
pub use line::RemoteDown;
pub use magpie_dist::connection::{Closed, Limits};
pub use magpie_dist::term;
pub use node::Node;
pub use remote::RemoteRecipient;
pub use shared::Statistics;
