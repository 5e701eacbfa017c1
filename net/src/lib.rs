//! TCP/IP: smoltcp owned by one process, and async sockets that any process or actor holds.
//!
//! A [`Network`] is one interface: its process alone touches smoltcp, and is asked by message. Its sockets ([`TcpStream`],
//! [`TcpListener`], [`UdpSocket`]) are `Send`, and their buffers are allocated by who opens them, and charged to that one. Below is
//! a [`Link`]: whatever carries frames, by message too, so that a driver may crash and come again while connections live on. A
//! [`Cable`] between two networks is the link of tests, with faults on demand.
//!
//! ```
//! use core::net::{Ipv4Addr, SocketAddrV4};
//! use magpie_net::{Cable, Config, Faults, Network};
//! # magpie::sched::run_on_threads(2, 1, async {
//!
//! let here = Network::start(Config::fixed(Ipv4Addr::new(10, 0, 0, 1), 24))?;
//! let there = Network::start(Config::fixed(Ipv4Addr::new(10, 0, 0, 2), 24))?;
//! Cable::connect(&here, &there, Faults::none())?;
//!
//! let mut listener = there.listen(7, 4).await?;
//! magpie::sched::spawn(async move {
//!     let mut stream = listener.accept().await?;
//!     let mut bytes = [0; 64];
//!     loop {
//!         let count = stream.read(&mut bytes).await?;
//!         if count == 0 {
//!             return stream.close().await;
//!         }
//!         stream.write_all(&bytes[..count]).await?;
//!     }
//! })?;
//!
//! let mut stream = here.connect(SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 2), 7)).await?;
//! stream.write_all(b"hello").await?;
//! let mut answer = [0; 5];
//! stream.read_exact(&mut answer).await?;
//! assert_eq!(&answer, b"hello");
//! stream.close().await?;
//! # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
//! # }).unwrap().unwrap();
//! ```
#![cfg_attr(target_os = "none", no_std)]
#![forbid(unsafe_code)]

extern crate alloc;

mod buffers;
mod cable;
mod command;
mod config;
mod error;
mod frame;
mod holder;
mod link;
mod network;
mod pending;
mod stack;
mod tcp_listener;
mod tcp_stream;
mod udp_socket;

pub use cable::{Cable, Carried, Faults};
pub use command::Statistics;
pub use config::{Addressing, Config};
pub use error::Error;
pub use frame::{FRAME_BYTES, Frame};
pub use link::{Link, LinkEvent};
pub use network::Network;
pub use tcp_listener::TcpListener;
pub use tcp_stream::{ReadHalf, TcpStream, WriteHalf};
pub use udp_socket::UdpSocket;
