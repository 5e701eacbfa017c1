//! Which public types may change cores, be shared among cores, and be moved while they are awaited: checked by the
//! compiler, so that a field that is added does not change it unnoticed. Which may stand for another is in
//! `src/variance.rs`.

use std::cell::Cell;
use std::error::Error;
use std::marker::PhantomPinned;
use std::rc::Rc;

use magpie::actor::{
    Addr, Answer, AskError, Context, Executor, ExecutorHandle, NotShared, NotSpawned, Recipient, Reply,
    Request, SendError, SendToAllError, Shared, Signal, StartError, StaticActor, Unwanted,
};
use magpie::channel::{self, ProcessAddr, ProcessMailbox};
use magpie::message::{SendAfter, SendInterval};
use magpie::sched::{ExternalSource, JoinHandle, LoadMonitor, OutOfWork, ProcessRef, YieldNow};
use magpie::time::{Elapsed, Interval, Sleep, Timeout};

/// May change cores and be shared.
type Free = u64;
/// May change cores, but not be shared.
type Own = Cell<u64>;
/// Neither.
type Homebody = Rc<u64>;

/// `is!(Type: Trait)`, or it does not compile.
macro_rules! is {
    ($($type:ty: $trait:path),* $(,)?) => { $(const _: () = {
        const fn is<T: ?Sized + $trait>() {}
        is::<$type>();
    };)* };
}

/// `is_not!(Type: Trait)`, or it does not compile: with both implementations of `Ambiguous` nobody knows which is meant.
macro_rules! is_not {
    ($($type:ty: $trait:path),* $(,)?) => { $(const _: fn() = || {
        trait Ambiguous<A> {
            fn is_meant() {}
        }
        struct Implements;
        impl<T: ?Sized> Ambiguous<()> for T {}
        impl<T: ?Sized + $trait> Ambiguous<Implements> for T {}
        let _ = <$type as Ambiguous<_>>::is_meant;
    };)* };
}

// Addresses, whatever is behind them: nobody reaches it through them but with a message, and whoever takes a state has one
// that can change cores.
is!(Addr<Homebody>: Send, Addr<Homebody>: Sync, Addr<PhantomPinned>: Unpin);
is!(Recipient<Homebody>: Send, Recipient<Homebody>: Sync, Recipient<PhantomPinned>: Unpin);

// What interrupts on all cores raise, with a message that may change cores.
is!(Signal<Own>: Send, Signal<Own>: Sync, Signal<Free>: Unpin);
is_not!(Signal<Homebody>: Sync);

// A behaviour's own.
is_not!(Context<Free>: Send, Context<Free>: Sync);

// Storage that several cores may start actors in.
is!(StaticActor<Own>: Sync, StaticActor<Own>: Send);
is_not!(StaticActor<Homebody>: Sync, StaticActor<Homebody>: Send);

// What everybody reads.
is!(Shared<Free>: Send, Shared<Free>: Sync);
is_not!(Shared<Own>: Send, Shared<Own>: Sync, Shared<Homebody>: Send);

// What carries a value from one core to another. To share it offers no more than a question.
is!(Reply<Own>: Send, Reply<Own>: Sync, Answer<Own>: Send, Answer<Own>: Sync, Answer<PhantomPinned>: Unpin);
is_not!(Reply<Homebody>: Send, Reply<Homebody>: Sync, Answer<Homebody>: Send, Answer<Homebody>: Sync);
is!(Request<Own, Own>: Send);
is_not!(Request<Homebody, Free>: Send, Request<Free, Homebody>: Send, Request<Own, Free>: Sync);
is!(SendAfter<Own>: Send, SendAfter<Own>: Sync);
is_not!(SendAfter<Homebody>: Send, SendAfter<Homebody>: Sync);
is!(SendInterval: Send, SendInterval: Sync);
is!(ProcessAddr<Own>: Send, ProcessAddr<Own>: Sync);
is_not!(ProcessAddr<Homebody>: Send, ProcessAddr<Homebody>: Sync);
is!(ProcessMailbox<Own>: Send, ProcessMailbox<Own>: Sync);
is_not!(ProcessMailbox<Homebody>: Send, ProcessMailbox<Homebody>: Sync);
is!(channel::Receive<'static, Own>: Send);
is_not!(channel::Receive<'static, Homebody>: Send);
is!(channel::ReceiveMatching<'static, Own, fn(&Own) -> bool>: Send);
is_not!(
    channel::ReceiveMatching<'static, Homebody, fn(&Homebody) -> bool>: Send,
    channel::ReceiveMatching<'static, Own, Homebody>: Send,
);

// What comes back.
is!(SendError<Own>: Send, NotSpawned<Own>: Send);
is_not!(SendError<Own>: Sync, SendError<Homebody>: Send, NotSpawned<Own>: Sync, NotSpawned<Homebody>: Send);

// Handles.
is!(Executor: Send, Executor: Sync, ExecutorHandle: Send, ExecutorHandle: Sync);
is!(ProcessRef: Send, ProcessRef: Sync, ExternalSource: Send, LoadMonitor: Send, OutOfWork: Send);
// Its result was made by a process, so it can change cores whatever the type says.
is!(JoinHandle<Own>: Send, JoinHandle<Own>: Sync, JoinHandle<PhantomPinned>: Unpin);

// A timer has an allocation of its own, so what waits for it may move.
is!(Sleep: Send, Sleep: Sync, Sleep: Unpin, Timeout<YieldNow>: Send);
is!(Interval: Send, Interval: Sync, Interval: Unpin);
is_not!(Timeout<std::future::Ready<Homebody>>: Send);

// Errors are errors whatever they carry, and plain ones without it.
is!(SendError<Homebody>: Error, SendToAllError<Homebody>: Error, NotSpawned<Homebody>: Error);
is!(NotShared<Homebody>: Error, Unwanted<Homebody>: Error);
is!(SendError<()>: Copy, SendToAllError<()>: Copy, NotSpawned<()>: Copy, Unwanted<()>: Copy, AskError: Copy);
is!(SendError<()>: Send, SendError<()>: Sync, NotSpawned<()>: Send, NotSpawned<()>: Sync);
is!(AskError: Error, AskError: Send, AskError: Sync, StartError: Error, StartError: Send, StartError: Sync);
is!(Elapsed: Error, Elapsed: Send, Elapsed: Sync);
is_not!(SendError<Own>: Sync, NotSpawned<Own>: Sync, NotShared<Own>: Sync, Unwanted<Own>: Sync);
