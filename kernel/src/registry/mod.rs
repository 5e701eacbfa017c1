//! The registry: names for addresses, so that those who need one another find one another without being introduced.
//!
//! A name belongs to one who lives: it is gone with the actor, or with the mailbox of the process, and may then be given to
//! another. Whoever looks up says which type of address is expected.
//!
//! ```
//! # use magpie::sched;
//! use magpie::channel::{ProcessAddr, ProcessMailbox};
//! use magpie::registry::{self, NotFound, RegisterError};
//!
//! # sched::run_on_threads(2, 1, async {
//! let mut orders = ProcessMailbox::<u32>::new(10)?;
//! registry::register("doc/orders", orders.address())?;
//! registry::find::<ProcessAddr<u32>>("doc/orders")?.send(7)?;
//! assert_eq!(orders.receive().await, Some(7));
//!
//! let another = ProcessMailbox::<u32>::new(10)?;
//! match registry::register("doc/orders", another.address()) {
//!     Err(RegisterError::Taken { by, holder }) => {
//!         let own = sched::current_process().map(|own| own.id());
//!         assert!(by.contains("ProcessAddr") && holder == own);
//!     }
//!     other => return Err(format!("{other:?}").into()),
//! }
//! assert!(matches!(registry::find::<ProcessAddr<char>>("doc/orders"), Err(NotFound::OtherType { .. })));
//! assert!(registry::names().any(|name| &*name == "doc/orders" && name.type_name().contains("u32")));
//!
//! drop(orders);
//! assert!(matches!(registry::find::<ProcessAddr<u32>>("doc/orders"), Err(NotFound::Nobody)));
//! registry::register("doc/orders", another.address())?;
//! assert!(registry::unregister("doc/orders"));
//! # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
//! # }).unwrap().unwrap();
//! ```
//!
//! What is named is in `named.rs`, the entries and their lists in `table.rs`.

mod name;
mod named;
mod table;

pub use name::Name;
pub use named::Named;
pub(crate) use named::sealed::{Holder, Sealed};
pub use table::{NotFound, NotKilled, RegisterError, find, kill, name_of, names, register, unregister};
