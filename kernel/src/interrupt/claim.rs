//! Claims: who may wait for a line's interrupt, steer it, and give it back.

use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};
use core::time::Duration;

use spin::Once;

use super::slot::{self, Holder, Slot};
use super::{Line, table};
use crate::actor::Signal;
use crate::arch::atomic::{AtomicU32, Ordering};
use crate::arch::{CoreId, gic};
use crate::message::Message;
use crate::sync::{Identity, PreemptGuard, SpinGuard, SpinLock, keep_waker, set_once, watch_crashes};
use crate::{machine, sched, time};

/// No line has this number.
const NONE: u32 = u32::MAX;

/// The kernel's own line. Written once, at boot.
static KEPT: AtomicU32 = AtomicU32::new(NONE);
/// Held by who sets up a line: the controller has fields for several in one register.
static SETTING_UP: SpinLock<()> = SpinLock::new(());
/// Crashes are watched from the first claim on.
static WATCHING: Once<()> = Once::new();

/// The right to a line's interrupt. Dropped, the line is masked, and may be claimed by another.
///
/// For a process there is [`wait`](Self::wait). An actor is sent a message instead:
///
/// ```
/// use magpie::actor::{Actor, Context, Hook, Receive, Signal};
/// use magpie::interrupt::{Interrupt, Line, Trigger};
///
/// /// The device wants something.
/// #[derive(Clone, Copy)]
/// struct Attention;
///
/// static DEVICE: Signal<Attention> = Signal::new();
///
/// struct Driver {
///     interrupt: Option<Interrupt>,
/// }
///
/// impl Actor for Driver {
///     fn started() -> Option<Hook<Self>> {
///         Some(|driver, context| {
///             DEVICE.send_to(context.address().recipient(), Attention);
///             let claimed = Interrupt::claim(Line { number: 79, trigger: Trigger::Edge });
///             // It belongs to this actor, and ends with it.
///             match claimed.map(|interrupt| interrupt.raises(&DEVICE).map(|()| interrupt)) {
///                 Ok(Ok(interrupt)) => driver.interrupt = Some(interrupt),
///                 _ => context.end(),
///             }
///         })
///     }
/// }
///
/// impl Receive<Attention> for Driver {
///     type Reply = ();
///
///     fn receive(&mut self, _: Attention, context: &mut Context<Self>) {
///         // Here it would look at its device, and quieten it. Then the next one may come.
///         if self.interrupt.as_ref().is_none_or(|interrupt| interrupt.unmask().is_err()) {
///             context.end();
///         }
///     }
/// }
/// ```
pub struct Interrupt {
    slot: &'static Slot,
    /// Which claim of the line.
    claim: u64,
}

/// Why a line was not claimed, or not sent to a core.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ClaimError {
    /// The interrupt controller has no line of that number that all cores share. On the host there is none at all.
    NoSuchLine,
    /// No core of that number has started.
    NoSuchCore,
    /// It is the serial port's, which belongs to the kernel.
    Kernels,
    /// Another has claimed it, and lives.
    Taken,
    /// Its owner has crashed, and the claim has ended with it.
    Revoked,
    /// There is no memory for it.
    OutOfMemory,
}

impl fmt::Display for ClaimError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoSuchLine => "the interrupt controller has no such line: they are numbered from 32 on, and the host has none",
            Self::NoSuchCore => "no such core has started",
            Self::Kernels => "the interrupt is the serial port's, which belongs to the kernel",
            Self::Taken => "another has claimed the interrupt: devices that share one have one driver",
            Self::Revoked => "the claim has ended, because its owner crashed or was killed",
            Self::OutOfMemory => "out of memory: give the machine more, or start less",
        })
    }
}

impl core::error::Error for ClaimError {}

/// The claim has ended: its owner has crashed, or was killed, before another took the [`Interrupt`] over. Claim the line anew.
///
/// ```
/// assert!(magpie::interrupt::Revoked.to_string().contains("claim"));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Revoked;

impl fmt::Display for Revoked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        ClaimError::Revoked.fmt(f)
    }
}

impl core::error::Error for Revoked {}

impl Interrupt {
    /// Claims a line, for the caller: the process, or in a behaviour the actor. It goes to the core that the caller runs on, and stays masked until it is waited
    /// for, or [`raises`](Self::raises) a signal.
    ///
    /// # Errors
    /// [`ClaimError`].
    pub fn claim(line: Line) -> Result<Self, ClaimError> {
        if !(gic::FIRST_SHARED..gic::lines()).contains(&line.number) {
            return Err(ClaimError::NoSuchLine);
        }
        // Relaxed: written before any application ran.
        if KEPT.load(Ordering::Relaxed) == line.number {
            return Err(ClaimError::Kernels);
        }
        let slot = table::get_or_make(line).map_err(|_| ClaimError::OutOfMemory)?;
        let slot = slot.ok_or(ClaimError::NoSuchLine)?;
        set_once(&WATCHING, || watch_crashes(on_crash));
        let core = sched::current_core().unwrap_or(CoreId::BOOT);
        let owner = sched::identity_here();
        let setting_up = SETTING_UP.lock();
        let mut claimed = slot.claimed.lock();
        if claimed.holder.is_some() {
            return Err(ClaimError::Taken);
        }
        slot.begin();
        // SAFETY: under the lock one at a time sets up; the number was checked; the caller runs on the core, or it is the one that boots.
        unsafe { gic::prepare(line.number, line.trigger, core) };
        *claimed = slot::Claimed {
            claim: claimed.claim + 1,
            holder: Some(Holder::new(owner)),
            trigger: line.trigger,
            core,
        };
        let claim = claimed.claim;
        drop(claimed);
        drop(setting_up);
        Ok(Self { slot, claim })
    }

    /// Waits for the interrupt. Until then the line is let through; afterwards it is masked, until this is called again. Called before the device is quiet, it is
    /// over at once, if the device asks by a level.
    ///
    /// From now on the claim ends with the process that waits.
    ///
    /// ```
    /// # use magpie::interrupt::{Interrupt, Revoked};
    /// async fn first_of(mut interrupt: Interrupt) -> Result<(), Revoked> {
    ///     interrupt.wait().await
    /// }
    /// ```
    pub fn wait(&mut self) -> Wait<'_> {
        Wait { interrupt: self, is_owned: false }
    }

    /// From now on the signal is raised when the interrupt comes, and the claim ends with the caller: in a behaviour that is the actor. The line
    /// is let through; each time it is masked, until [`unmask`](Self::unmask) is called.
    ///
    /// # Errors
    /// The claim has ended.
    pub fn raises<M: Message + Copy>(&self, signal: &'static Signal<M>) -> Result<(), Revoked> {
        let mut claimed = self.own()?;
        if let Some(holder) = &mut claimed.holder {
            holder.owner = sched::identity_here();
        }
        self.slot.raise(Some(signal.raisable()));
        self.slot.let_through();
        Ok(())
    }

    /// Lets the line through: for an actor that has dealt with what came before.
    ///
    /// # Errors
    /// The claim has ended.
    ///
    /// ```
    /// # use magpie::interrupt::{Interrupt, Revoked};
    /// fn next(interrupt: &Interrupt) -> Result<(), Revoked> {
    ///     interrupt.unmask()
    /// }
    /// ```
    pub fn unmask(&self) -> Result<(), Revoked> {
        // Under the lock, so that it is not let through for who has it next.
        let _claimed = self.own()?;
        self.slot.let_through();
        Ok(())
    }

    /// Lets the line through no more, until it is unmasked or waited for. One that is on its way may arrive still.
    ///
    /// # Errors
    /// The claim has ended.
    ///
    /// ```
    /// # use magpie::interrupt::{Interrupt, Revoked};
    /// fn not_now(interrupt: &Interrupt) -> Result<(), Revoked> {
    ///     interrupt.mask()
    /// }
    /// ```
    pub fn mask(&self) -> Result<(), Revoked> {
        let _claimed = self.own()?;
        gic::mask(self.slot.number);
        Ok(())
    }

    /// Sends the interrupt to a core from now on. Where its driver runs it is handled soonest.
    ///
    /// # Errors
    /// No such core has started, or the claim has ended.
    ///
    /// ```
    /// # use magpie::arch::CoreId;
    /// # use magpie::interrupt::{ClaimError, Interrupt};
    /// fn to_the_first_core(interrupt: &Interrupt) -> Result<(), ClaimError> {
    ///     interrupt.route(CoreId::BOOT)
    /// }
    /// ```
    pub fn route(&self, core: CoreId) -> Result<(), ClaimError> {
        if core.index() >= machine::cores() {
            return Err(ClaimError::NoSuchCore);
        }
        let mut claimed = self.own().map_err(|Revoked| ClaimError::Revoked)?;
        gic::route(self.slot.number, core);
        claimed.core = core;
        Ok(())
    }

    /// The claim, if it has not ended.
    fn own(&self) -> Result<SpinGuard<'_, slot::Claimed>, Revoked> {
        let claimed = self.slot.claimed.lock();
        if claimed.claim == self.claim && claimed.holder.is_some() { Ok(claimed) } else { Err(Revoked) }
    }
}

impl Drop for Interrupt {
    fn drop(&mut self) {
        if let Ok(mut claimed) = self.own() {
            self.slot.release(&mut claimed);
        }
    }
}

impl fmt::Debug for Interrupt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Interrupt({})", self.slot.number)
    }
}

/// Waits for an interrupt: see [`Interrupt::wait`].
///
/// ```
/// # use magpie::interrupt::{Interrupt, Revoked, Wait};
/// async fn wait_for(interrupt: &mut Interrupt) -> Result<(), Revoked> {
///     let waiting: Wait = interrupt.wait();
///     waiting.await
/// }
/// ```
#[must_use = "it does nothing until it is awaited"]
#[derive(Debug)]
pub struct Wait<'a> {
    interrupt: &'a mut Interrupt,
    /// The claim ends with who waits.
    is_owned: bool,
}

impl Future for Wait<'_> {
    type Output = Result<(), Revoked>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let slot = self.interrupt.slot;
        {
            let mut claimed = match self.interrupt.own() {
                Ok(claimed) => claimed,
                Err(revoked) => return Poll::Ready(Err(revoked)),
            };
            if !self.is_owned
                && let Some(holder) = &mut claimed.holder
            {
                holder.owner = sched::identity_here();
            }
        }
        self.is_owned = true;
        if slot.arrival.take() {
            return Poll::Ready(Ok(()));
        }
        match keep_waker(context.waker()) {
            Some(waker) => {
                // Who is ended in the middle of it would leave the cell to nobody.
                let _whole = PreemptGuard::new();
                slot.arrival.leave(&waker);
            }
            // Without memory it is polled again and again, so nothing is lost.
            None => context.waker().wake_by_ref(),
        }
        if slot.arrival.take() {
            return Poll::Ready(Ok(()));
        }
        match self.interrupt.unmask() {
            Ok(()) => Poll::Pending,
            Err(revoked) => Poll::Ready(Err(revoked)),
        }
    }
}

/// A line that somebody has claimed.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Claimed {
    /// Which.
    pub line: Line,
    /// The core that has its interrupts.
    pub core: CoreId,
    /// How often it has interrupted since it was claimed.
    pub taken: u64,
    /// The longest that it was masked after an interrupt, until its driver had dealt with that.
    pub longest: Duration,
}

impl fmt::Display for Claimed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { line, core, taken, longest } = self;
        let longest = longest.as_micros();
        write!(
            f,
            "{:>6} {:<5} core {:>2} {taken:>10} {longest:>8} us",
            line.number,
            trigger(line),
            core.index()
        )
    }
}

fn trigger(line: &Line) -> &'static str {
    match line.trigger {
        super::Trigger::Level => "level",
        super::Trigger::Edge => "edge",
    }
}

/// The lines that are claimed now.
///
/// ```
/// use magpie::interrupt;
///
/// // None on the host.
/// assert_eq!(interrupt::all().count(), 0);
/// ```
pub fn all() -> impl Iterator<Item = Claimed> {
    table::all().filter_map(|slot| {
        let claimed = slot.claimed.lock();
        claimed.holder.as_ref()?;
        let line = Line { number: slot.number, trigger: claimed.trigger };
        let core = claimed.core;
        drop(claimed);
        let (taken, longest) = slot.counted();
        Some(Claimed { line, core, taken, longest: time::of_ticks(longest) })
    })
}

/// In a crash: what the crashed one had claimed is masked, and nobody's.
fn on_crash(crashed: Identity) {
    for slot in table::all() {
        let mut claimed = slot.claimed.lock();
        if claimed.holder.as_ref().is_some_and(|holder| holder.owner == Some(crashed)) {
            slot.release(&mut claimed);
        }
    }
}

/// At boot: that line is the kernel's own, and nobody can claim it. Sets it up, masked, for the core that boots.
///
/// # Safety
/// The device is there and was found in the tree; called once, before any application runs.
#[cfg(target_os = "none")]
pub(crate) unsafe fn keep(line: Line) {
    KEPT.store(line.number, Ordering::Relaxed);
    // SAFETY: nobody else sets up anything yet; the core that boots has started.
    unsafe { gic::prepare(line.number, line.trigger, CoreId::BOOT) };
}

/// A device's interrupt, in its handler. Whether it was ever claimed.
#[cfg(target_os = "none")]
#[inline(always)]
pub(crate) fn on_interrupt(number: u32) -> bool {
    let slot = table::get(number);
    if let Some(slot) = slot {
        slot.on_interrupt();
    }
    slot.is_some()
}
