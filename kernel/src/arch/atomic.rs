//! The atomics every portable structure uses: the real ones, or those of loom or shuttle when a model checks them.

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

/// A constructor that is a constant function, but for loom, whose atomics are made at run time only.
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
