//! A context for a behaviour that a test calls itself.

use core::mem;
use core::ops::{Deref, DerefMut};

use crate::actor::{Actor, Addr, Context, ExecutorHandle, NotSpawned, Outcome};

/// What a behaviour has said of its actor's future: the last of [`Context::end`], [`Context::vacate`] and [`Context::retire`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Said {
    /// Nothing: it goes on.
    Nothing,
    /// It ends, with its storage.
    End,
    /// It ends, and its storage stays for a successor.
    Vacate,
    /// It ends, and its state stays to be taken.
    Retire,
}

/// A [`Context`] that a test hands to a behaviour: see [`context()`].
///
/// ```no_run
/// # use magpie::actor::{Actor, Config, Context, Executor, Receive};
/// use magpie::testing::{Options, Said, context, run};
/// # struct Lamp;
/// # impl Actor for Lamp {}
/// # struct Off;
/// # impl Receive<Off> for Lamp {
/// #     type Reply = ();
/// #     fn receive(&mut self, _: Off, context: &mut Context<Self>) { context.end() }
/// # }
/// run(&Options::default(), || async {
///     let executor = Executor::start(&Config::default()).expect("there is memory");
///     let mut context = context(executor.handle(), Lamp).expect("there is memory");
///     Lamp.receive(Off, &mut context);
///     assert_eq!(context.said(), Said::End);
///     context.forget_said();
///     executor.stop().await;
/// });
/// ```
pub struct TestContext<A: Actor> {
    context: Context<A>,
    address: Addr<A>,
    executor: ExecutorHandle,
}

// SAFETY: it consists of what an address consists of, which may be used on any core. A plain context stays with its behaviour because
// its executor may end with that; this one's executor never does.
unsafe impl<A: Actor> Send for TestContext<A> {}

/// A context for calling behaviours directly, in a [run](super::run()). The state under test is the test's own, so it can be looked
/// at after each call. In its place `stand_in` is started on the executor: who sends to the context's
/// [`address`](Context::address), or is given it, reaches the stand-in, and so does the answer to what a behaviour
/// [asks](Context::ask). What a behaviour starts is started. What it says of its end is done to nobody, and can be [read](TestContext::said).
///
/// ```no_run
/// use magpie::actor::{Actor, Config, Context, Executor, Receive};
/// use magpie::testing::{Options, Said, TestContext, context, run};
///
/// #[derive(Default)]
/// struct Candle { hours: u32, messages: u32 }
/// impl Actor for Candle {}
/// struct Burn;
/// impl Receive<Burn> for Candle {
///     type Reply = ();
///
///     fn receive(&mut self, _: Burn, context: &mut Context<Self>) {
///         self.messages += 1;
///         match self.hours.checked_sub(1) {
///             Some(left) => {
///                 self.hours = left;
///                 let _ = context.address().send(Burn);
///             }
///             None => context.end(),
///         }
///     }
/// }
///
/// // In a test's module: #[test]
/// fn it_burns_down() {
///     run(&Options::default(), || async {
///         let executor = Executor::start(&Config::default()).expect("there is memory");
///         let stand_in = context(executor.handle(), Candle::default());
///         let mut context: TestContext<Candle> = stand_in.expect("there is memory");
///         let mut candle = Candle { hours: 1, messages: 0 };
///
///         candle.receive(Burn, &mut context);
///         assert_eq!((candle.hours, context.said()), (0, Said::Nothing));
///         candle.receive(Burn, &mut context);
///         assert_eq!(context.said(), Said::End);
///         context.forget_said();
///         assert_eq!(context.said(), Said::Nothing);
///
///         // What it has sent to itself: the stand-in had no hours left, and ended.
///         executor.all_ended().await;
///         executor.stop().await;
///     });
/// }
/// ```
///
/// # Errors
/// As [`ExecutorHandle::spawn`], with the stand-in.
pub fn context<A: Actor>(executor: &ExecutorHandle, stand_in: A) -> Result<TestContext<A>, NotSpawned<A>> {
    let address = executor.spawn(stand_in)?;
    // A context relies on its executor, and a behaviour may put it where nobody knows when it is used: the executor lives as long
    // as the test's process.
    mem::forget(executor.clone());
    // SAFETY: the actor was just spawned there, and it lives for ever.
    let context = unsafe { Context::for_test(address, executor) };
    Ok(TestContext { context, address, executor: executor.clone() })
}

impl<A: Actor> TestContext<A> {
    /// What the behaviours that were called have said last.
    ///
    /// # Panics
    /// If a behaviour has swapped it for another one.
    pub fn said(&self) -> Said {
        self.check();
        match self.context.outcome() {
            Outcome::Continue => Said::Nothing,
            Outcome::End => Said::End,
            Outcome::Vacate => Said::Vacate,
            Outcome::Retire => Said::Retire,
        }
    }

    /// It is forgotten what they have said.
    ///
    /// # Panics
    /// If a behaviour has swapped it for another one.
    pub fn forget_said(&mut self) {
        self.check();
        // SAFETY: as it was made.
        self.context = unsafe { Context::for_test(self.address, &self.executor) };
    }

    fn check(&self) {
        // Another's may be of an executor that ends.
        assert!(
            self.context.address() == self.address,
            "a behaviour has put another context in the place of the test's"
        );
    }
}

impl<A: Actor> Deref for TestContext<A> {
    type Target = Context<A>;

    fn deref(&self) -> &Context<A> {
        self.check();
        &self.context
    }
}

impl<A: Actor> DerefMut for TestContext<A> {
    /// # Panics
    /// If a behaviour has swapped it for another one.
    fn deref_mut(&mut self) -> &mut Context<A> {
        self.check();
        &mut self.context
    }
}
