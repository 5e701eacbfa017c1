//! The atomics every portable structure uses: the real ones, or those of loom or shuttle when a model checks them. The
//! cell of a lock's data is here as well, because loom checks access to it.

#[cfg(not(any(loom, shuttle)))]
pub use core::sync::atomic::{
    AtomicBool, AtomicI64, AtomicPtr, AtomicU8, AtomicU16, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence,
};

#[cfg(loom)]
pub use loom::sync::atomic::{
    AtomicBool, AtomicI64, AtomicPtr, AtomicU8, AtomicU16, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence,
};

#[cfg(shuttle)]
pub use shuttle::sync::atomic::{
    AtomicBool, AtomicI64, AtomicPtr, AtomicU8, AtomicU16, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence,
};

#[cfg(loom)]
pub(crate) use loom::cell::UnsafeCell;

/// Data that one core at a time may touch.
#[cfg(not(loom))]
pub(crate) struct UnsafeCell<T>(core::cell::UnsafeCell<T>);

#[cfg(not(loom))]
impl<T> UnsafeCell<T> {
    /// Around `data`.
    pub const fn new(data: T) -> Self {
        Self(core::cell::UnsafeCell::new(data))
    }

    /// Hands the data over to be read; loom's cell panics if another thread writes at the same time.
    #[inline(always)]
    pub fn with<R>(&self, read: impl FnOnce(*const T) -> R) -> R {
        read(self.0.get())
    }

    /// Hands the data over to be written; loom's cell panics if another thread accesses it at the same time.
    #[inline(always)]
    pub fn with_mut<R>(&self, write: impl FnOnce(*mut T) -> R) -> R {
        write(self.0.get())
    }
}

/// Null pointers, in a constant where that can be.
#[cfg(not(loom))]
pub(crate) const fn null_pointers<T, const N: usize>() -> [AtomicPtr<T>; N] {
    [const { AtomicPtr::new(core::ptr::null_mut()) }; N]
}

/// Null pointers.
#[cfg(loom)]
pub(crate) fn null_pointers<T, const N: usize>() -> [AtomicPtr<T>; N] {
    core::array::from_fn(|_| AtomicPtr::new(core::ptr::null_mut()))
}

/// A constructor that is a constant function, except under loom, whose atomics can be made only at run time.
macro_rules! const_fn {
    (
        $(#[$attribute:meta])*
        $visibility:vis fn $name:ident($($argument:ident: $type:ty),*) -> $result:ty $body:block
    ) => {
        #[cfg(not(loom))]
        $(#[$attribute])*
        $visibility const fn $name($($argument: $type),*) -> $result $body

        #[cfg(loom)]
        $(#[$attribute])*
        $visibility fn $name($($argument: $type),*) -> $result $body
    };
}

pub(crate) use const_fn;
