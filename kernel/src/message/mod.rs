//! Messages, whoever receives them: what may be one, how one is shared, what an ask is, how one waits for its moment,
//! and why one was not sent.
//!
//! Nothing here knows who receives. How a message reaches an actor is in `actor`, how it reaches a process in `channel`.

pub(crate) mod ask;
mod send_after;
mod send_error;
mod send_interval;
mod shared;

pub use send_after::SendAfter;
pub use send_error::{SendError, SendToAllError};
pub use send_interval::SendInterval;
pub(crate) use send_interval::outcome;
pub use shared::{NotShared, Shared};

/// A message: anything that may be moved to another core.
///
/// What must stay where it is, such as a reference count without atomics, is no message; neither is what
/// borrows:
///
/// ```
/// use magpie::actor::{Actor, Addr, Context, Receive};
/// use std::sync::Arc;
/// struct Reader;
/// impl Actor for Reader {}
/// impl Receive<Arc<u32>> for Reader {
///     type Reply = ();
///
///     fn receive(&mut self, _: Arc<u32>, _: &mut Context<Self>) {}
/// }
/// fn tell(reader: Addr<Reader>) { let _ = reader.send(Arc::new(1)); }
/// ```
///
/// ```compile_fail,E0277
/// use magpie::actor::{Actor, Addr, Context, Receive};
/// use std::rc::Rc;
/// struct Reader;
/// impl Actor for Reader {}
/// impl Receive<Rc<u32>> for Reader {
///     type Reply = ();
///
///     fn receive(&mut self, _: Rc<u32>, _: &mut Context<Self>) {}
/// }
/// ```
///
/// ```compile_fail,E0478
/// use magpie::actor::{Actor, Addr, Context, Receive};
/// struct Reader;
/// impl Actor for Reader {}
/// impl<'a> Receive<&'a u32> for Reader {
///     type Reply = ();
///
///     fn receive(&mut self, _: &'a u32, _: &mut Context<Self>) {}
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no message, because it cannot be sent to another core",
    label = "cannot be sent to another core",
    note = "a message is `Send` and borrows nothing: use `Arc` in place of `Rc`, an atomic or a `Mutex` in place of a `Cell`"
)]
pub trait Message: Send + 'static {}

#[diagnostic::do_not_recommend]
impl<M: Send + 'static> Message for M {}
