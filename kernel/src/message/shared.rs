//! One message for many receivers, without copying it.
//!
//! Each receiver gets a counted reference; the last one drops the message. Making one may fail for lack of
//! memory.

use core::fmt;
use core::ops::Deref;
use core::ptr::NonNull;

use crate::mem::{Counted, OutOfMemory};

/// A reference to a message that several actors receive. A behaviour for it is `Receive<Shared<M>>`.
///
/// ```
/// use magpie::actor::{Recipient, SendError, Shared};
/// /// Sends a picture to both, without copying it.
/// fn show(
///     left: Recipient<Shared<Vec<u8>>>,
///     right: Recipient<Shared<Vec<u8>>>,
///     picture: Vec<u8>,
/// ) -> Result<(), SendError<Shared<Vec<u8>>>> {
///     match Shared::new(picture) {
///         Ok(picture) => {
///             left.send(picture.clone())?;
///             right.send(picture)?;
///         }
///         Err(error) => drop(error.into_message()),
///     }
///     Ok(())
/// }
/// assert_eq!(Shared::new(7).map(|number| *number), Ok(7));
/// ```
pub struct Shared<M>(Counted<M>);

impl<M> Shared<M> {
    /// Puts a message where it can be shared.
    ///
    /// # Errors
    /// The message comes back when there is no memory.
    pub fn new(message: M) -> Result<Self, NotShared<M>> {
        Counted::new(message).map(Self).map_err(|(OutOfMemory, message)| NotShared(message))
    }

    /// Where the message lies; for all of it, because it is not made from a reference.
    pub(crate) fn pointer(&self) -> NonNull<M> {
        self.0.pointer()
    }
}

/// There was no memory to share a message; it comes back.
///
/// ```
/// use magpie::actor::{NotShared, Shared};
/// use magpie::mem::OutOfMemory;
/// /// The picture, shared; or its first half alone, which may fit.
/// fn share(picture: Vec<u8>) -> Result<Shared<Vec<u8>>, OutOfMemory> {
///     Shared::new(picture).or_else(|error: NotShared<_>| {
///         let mut picture = error.into_message();
///         picture.truncate(picture.len() / 2);
///         picture.shrink_to_fit();
///         Shared::new(picture).map_err(|error| error.without_message())
///     })
/// }
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct NotShared<M>(M);

impl<M> NotShared<M> {
    /// The message.
    pub fn into_message(self) -> M {
        self.0
    }

    /// The same error without the message, to be kept or passed on whatever that was.
    pub const fn without_message(&self) -> OutOfMemory {
        OutOfMemory
    }
}

impl<M> fmt::Debug for NotShared<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl<M> fmt::Display for NotShared<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("out of memory: the message is not shared")
    }
}

impl<M> core::error::Error for NotShared<M> {}

impl<M> Deref for Shared<M> {
    type Target = M;

    #[inline(always)]
    fn deref(&self) -> &M {
        &self.0
    }
}

impl<M> Clone for Shared<M> {
    #[inline(always)]
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<M: fmt::Debug> fmt::Debug for Shared<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
