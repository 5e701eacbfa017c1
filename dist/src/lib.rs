//! Erlang's distribution protocol, without I/O: what a node says and hears on its connections to others.
//!
//! Bytes go in and events come out, commands go in and bytes come out: who reads and writes them, over which network, and what the
//! clock says, is the matter of the node above.
//!
//! The cookie of a cluster keeps nodes apart by accident only. Nothing here is encrypted or protected from being changed on the way: it is for
//! networks that are trusted.
//!
//! ```
//! use magpie_dist::term::TermBuf;
//!
//! #[derive(Debug, PartialEq)]
//! struct Reading { sensor: u32, celsius: f64 }
//! magpie_dist::term! { struct Reading as "reading" { sensor, celsius } }
//!
//! let term = TermBuf::of(&Reading { sensor: 7, celsius: 21.5 }, 1000)?;
//! assert_eq!(term.as_term().to_string(), "{reading,7,21.5}");
//! assert_eq!(term.as_term().decode::<Reading>()?.sensor, 7);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod connection;
pub mod epmd;
mod flags;
mod handshake;
mod signal;
pub mod term;
