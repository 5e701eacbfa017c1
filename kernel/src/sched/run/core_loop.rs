//! The core loop: pick a process, give it a turn, deal with how the turn ended.
//!
//! The loop runs with preemption disabled and calls a turn with preemption enabled. While a turn runs the
//! stack may be lent to it (see `run/preempt.rs`), so the code after the turn may be on another core, and the
//! process that ended its turn may be a detached piece of the one that began it. Hence after the turn
//! everything is read afresh: the core from its register, the process from the stack block.
//!
//! From a turn that only yields to the next there is a short way ([`go_on`]), and behind one that ended or waits ([`go_on_without`]). It is open while one word of the core's
//! says that nothing but the deque of `Normal` processes wants a look (`cores/ready_mask.rs`, `run/attention.rs`), and does
//! what the long way would do then.

use core::ptr::NonNull;

use crate::arch::clock;
use crate::mem::stack::StackBlock;
use crate::sched::cores::{Core, ThisCore, population, roll_call};
use crate::sched::place::{enqueue, pick};
use crate::sched::policy::settings::{self, Setting};
use crate::sched::process::{Header, PieceNow, ProcessRef, Runnable, Step};
use crate::sched::run::attention::First;
use crate::sched::run::{
    aside, attention, beneath, due, ending, give_back, idle, remains, reserve, resume, slice, steal,
};
use crate::sched::spawn::telling;
use crate::time;
use crate::trace::Kind;
use crate::watch::Exit;

/// Runs processes until the scheduler is stopped.
///
/// # Safety
/// Called on a core whose block and stack block are set, with preemption disabled once. Its time counts as running.
pub(crate) unsafe fn run() {
    // Whatever was interrupted, or crashed, on this stack.
    StackBlock::current().account().set(0);
    // What an interrupt has chosen while the core was idle.
    let mut woken = None;
    loop {
        // SAFETY: by contract; made afresh in every round, because a turn may end on another core.
        let core = unsafe { ThisCore::of_loop() };
        let next = match woken.take() {
            Some(process) => Next::Turn(process),
            None => {
                // What asked so far is seen below; what asks later is for the turn that is chosen there.
                StackBlock::current().preempt().clear_request();
                attention::notice_timer(&core);
                // SAFETY: this is the core's own loop, between two turns.
                let Some(next) = (unsafe { next(&core) }) else { return };
                next
            }
        };
        match next {
            Next::Turn(process) => turn(core, process),
            Next::Idle => {
                core.turn_ended_at.set(0);
                woken = idle::idle(&core);
            }
            Next::Look => {}
        }
    }
}

/// Gives something urgent its turn for which another was left, which lies beneath it: see `run/beneath.rs`. It was woken just now, and not suspended in a
/// turn.
///
/// # Safety
/// The caller is the core's loop, which begins on this stack.
#[inline(always)]
pub(super) unsafe fn run_above(core: &ThisCore<'_>, process: Runnable) {
    // As in `run`.
    StackBlock::current().account().set(0);
    core.passed_over.set(0);
    if let Some(process) = begin_turn(core, process) {
        // SAFETY: its turn has begun, so it is alive.
        let (ended, step) = match take_turn(process, unsafe { process.as_ref() }.vtable().step) {
            Ended::Yields(ended) => {
                note_charged(ended);
                (ended, Step::Yield)
            }
            Ended::Otherwise(ended, step) => (ended, step),
        };
        // SAFETY: this is the core's loop, right after the turn.
        unsafe { finish_turn(ended, step) };
    }
    // SAFETY: as above; the turn may have moved to another core. Where it was suspended, what lay beneath it is in a queue.
    beneath::put_into_queue(&unsafe { ThisCore::of_loop() });
}

/// What a core's loop does next.
enum Next {
    /// A process has a turn.
    Turn(Runnable),
    /// There is nothing to run.
    Idle,
    /// It looks again.
    Look,
}

/// What the loop does next; `None` if it is to end.
///
/// # Safety
/// The caller is the core's own loop, between two turns.
#[inline(always)]
unsafe fn next(core: &ThisCore<'_>) -> Option<Next> {
    if core.queue.wants_attention() {
        match attention::first(core) {
            First::Turn(process) => return Some(turn_of(core, process)),
            First::Queues => {}
            First::Nothing => {
                // SAFETY: by contract.
                if unsafe { !attention::attend(core) } {
                    return None;
                }
            }
        }
    }
    // What is given back comes before a turn of who gives it back.
    if ending::is_wanted(core)
        && !give_back::is_wanted(core)
        && let Some(process) = ending::look(core)
    {
        return Some(turn_of(core, process));
    }
    let Some(process) = pick::next(core) else {
        // What was to go before it may be elsewhere by now.
        return Some(if remains::is_wanted(core) { Next::Look } else { Next::Idle });
    };
    Some(if reserve::is_kept_waiting(core, &process) {
        pass_over(core, process)
    } else {
        turn_of(core, process)
    })
}

/// A process gets a turn.
#[inline(always)]
fn turn_of(core: &Core, process: Runnable) -> Next {
    core.passed_over.set(0);
    Next::Turn(process)
}

/// A process gets no turn, because no stack is free.
#[cold]
#[inline(never)]
fn pass_over(core: &ThisCore<'_>, process: Runnable) -> Next {
    enqueue::requeue(core, process);
    let passed_over = core.passed_over.get() + 1;
    core.passed_over.set(passed_over);
    if passed_over <= core.load() {
        return Next::Look;
    }
    core.passed_over.set(0);
    if remains::is_wanted(core) { Next::Look } else { Next::Idle }
}

/// Gives a process its turn, and then others as long as each is due for one at once; or resumes it on the stack it was
/// suspended on. Gives up the core, too: after a turn it may be another.
fn turn(core: ThisCore<'_>, process: Runnable) {
    let Some(mut process) = begin_turn(&core, process) else { return };
    loop {
        let next = loop {
            // SAFETY: its turn has begun, so it is alive.
            match after(take_turn(process, unsafe { process.as_ref() }.vtable().step)) {
                Some(Follows::AtOnce(following)) => process = following,
                Some(Follows::Begins(following)) => break following,
                None => return,
            }
        };
        // SAFETY: preemption is disabled; the turn may have moved to another core.
        let Some(begun) = begin_turn(&unsafe { ThisCore::of_loop() }, next) else { return };
        process = begun;
    }
}

/// Deals with how a turn ended, and goes on by the short way if that is open.
#[inline(always)]
fn after(ended: Ended) -> Option<Follows> {
    let (ended, step) = match ended {
        Ended::Yields(ended) => {
            // SAFETY: preemption is disabled; the turn may have moved to another core.
            let core = unsafe { ThisCore::of_loop() };
            attention::notice_timer(&core);
            note_charged(ended);
            if core.is_ordinary() && is_ordinary(&core, ended) {
                // SAFETY: its turn is over, and it stays marked as running while it is queued.
                return Some(go_on(&core, unsafe { Runnable::new(ended) }));
            }
            (ended, Step::Yield)
        }
        Ended::Otherwise(ended, step) => (ended, step),
    };
    // SAFETY: this is the core's loop, right after the turn, and then between two turns.
    unsafe {
        finish_turn(ended, step);
        go_on_without(&ThisCore::of_loop())
    }
}

/// What follows a turn by the short way.
enum Follows {
    /// Its turn has begun.
    AtOnce(NonNull<Header>),
    /// Its turn is to begin as one that was taken from a queue.
    Begins(Runnable),
}

/// Whose turn has ended, and how.
enum Ended {
    /// It has noted on its stack that it has more to do. What it was charged is not noted yet.
    Yields(NonNull<Header>),
    /// As its step says.
    Otherwise(NonNull<Header>, Step),
}

/// Runs a turn.
#[inline(always)]
fn take_turn(process: NonNull<Header>, run: unsafe fn(NonNull<Header>) -> Step) -> Ended {
    let block = StackBlock::current();
    // Relaxed: the block is touched by code on this stack and by interrupts on it.
    block.set_process(process.as_ptr().cast());
    block.preempt().enable();
    // SAFETY: the process is running, and this core alone runs it; the function is of its table.
    let step = unsafe { run(process) };
    block.preempt().disable();
    let [ended, yields] = block.end_turn();
    if ended == yields {
        // SAFETY: before the turn, the process was written there; and nobody but it writes down that it yields.
        return Ended::Yields(unsafe { NonNull::new_unchecked(ended.cast::<Header>()) });
    }
    let Some(ended) = NonNull::new(ended.cast::<Header>()) else {
        panic!(
            "the stack block of core {} names no process after a turn: it was overwritten",
            // SAFETY: preemption is disabled again; the turn may have moved to another core.
            unsafe { ThisCore::of_loop() }.number()
        );
    };
    note_charged(ended);
    Ended::Otherwise(ended, step)
}

/// Notes what the turn of this process was charged that has ended.
#[inline(always)]
fn note_charged(ended: NonNull<Header>) {
    if let Some(charged) = StackBlock::current().take_charged() {
        // SAFETY: this is the core's loop, right after the turn, whose process the scheduler's reference has kept alive.
        unsafe { count_charged(&ThisCore::of_loop(), ended.as_ref(), charged) };
    }
}

/// A turn of `process` on this core was charged so much. In that turn with preemption disabled, or right after it.
#[inline(always)]
pub(super) fn count_charged(core: &Core, process: &Header, charged: u64) {
    core.statistics.reductions.add(charged);
    process.note_charged(charged);
}

/// What comes before the turn of a process that was taken from a queue. `None` if it was put aside, or killed: then it has had the turn in which it
/// ends, after which the core may be another.
#[inline(always)]
fn begin_turn(core: &ThisCore<'_>, process: Runnable) -> Option<NonNull<Header>> {
    check(core, &process);
    let process = if process.share().is_some() {
        let admitted = aside::admit(core, process);
        // As in `preempt::finish`: a turn begins, during which nothing is chosen.
        enqueue::queue_chosen(core);
        admitted?
    } else {
        process
    };
    let header: &Header = &process;
    let now = match core.turn_ended_at.replace(0) {
        0 => clock::now(),
        ended => ended,
    };
    core.statistics.note_waited(header.take_enqueued_at(), now);
    header.set_home(core.id());
    core.begin_turn(now);
    core.in_turn.begin(header.priority().is_urgent());
    core.looks.set(0);
    slice::ensure_slice_timer(core, now);
    if let Some(stack) = NonNull::new(header.take_stack()) {
        if core.is_swept.replace(false) {
            // It has had its time: for its end, too.
            core.in_turn.note_slice_end();
            core.in_turn.note_slice_end();
            StackBlock::current().preempt().request();
        }
        if header.run_state().is_killed() {
            // It ends at the first interrupt, which comes at once.
            StackBlock::current().preempt().request();
        }
        debug_assert!(!core.beneath.is_some(), "a suspended turn goes on above another");
        // SAFETY: this is the core's own loop; the process was taken from a queue, suspended on that stack. Does not return.
        unsafe { resume::resume(core.core(), stack) }
    }
    let is_killed = header.run_state().begin();
    let block = StackBlock::current();
    block.grant(settings::get(Setting::Reductions));
    block.account().set(header.account());
    let process = process.into_pointer();
    if is_killed {
        cancel(process);
        return None;
    }
    if core.held.is_some() {
        // SAFETY: its turn has begun, so it is alive.
        hold(core, unsafe { process.as_ref() });
    }
    Some(process)
}

/// Residents have been sent something whose moment has not quite come: see `spawn/early.rs`.
#[cold]
#[inline(never)]
fn hold(core: &Core, begins: &Header) {
    time::hold_until(core.held.take(begins.vtable().detach.is_some()));
}

/// Gives a process that was killed the turn in which it drops what it owns.
#[cold]
#[inline(never)]
fn cancel(process: NonNull<Header>) {
    // SAFETY: its turn has begun, so it is alive.
    let table = unsafe { process.as_ref() }.vtable();
    // Who has none is never marked as killed.
    if let Ended::Otherwise(ended, step) = take_turn(process, table.cancel.unwrap_or(table.step)) {
        // SAFETY: this is the core's loop, right after the turn.
        unsafe { finish_turn(ended, step) }
    }
}

#[inline(always)]
fn check(core: &Core, header: &Header) {
    debug_assert!(
        header.is_dispatchable(),
        "corrupted queue: core {} took {header:p} from its queue {:?}, and it is not runnable",
        core.number(),
        header.priority()
    );
}

/// The short way: queues a process whose turn is over, and begins the turn of the one that is next, which may be the same.
///
/// What [`begin_turn`] does besides was done for a turn before this one and still holds:
/// - the slice's end is armed, by the interrupt that ends one;
/// - the core counts as in a turn, in which no slice has ended, or the bit for attention would be set. One that ends just
///   now counts as the first of the coming turn;
/// - nothing was stolen or looked for, and the reductions are as many as were granted. A setting that changes is read at
///   the end of a slice;
/// - an idle core was called, if this one has more than it will reach soon: that is looked at when a process comes into a queue, and at the end of a
///   slice;
/// - nobody pays for what is allocated: one for whom somebody does begins no turn here (`finish_turn` sees to that);
/// - the core is the home of what has had a turn and waits in its deque: see `enqueue::deliver` and `move_process`.
///
/// An interrupt may have chosen somebody urgent at the very end of the turn. It has requested a preemption then, so the turn that begins is left at once.
#[inline(always)]
fn go_on(core: &ThisCore<'_>, ended: Runnable) -> Follows {
    let now = clock::now();
    core.note_turn(&ended, now, Kind::Yielded, || ended.vtable().name);
    ended.set_enqueued_at(now);
    let next = core.rotate(ended);
    if !next.run_state().goes_on() {
        core.turn_ended_at.set(now);
        return Follows::Begins(next);
    }
    check(core, &next);
    core.begin_next_turn(now);
    core.statistics.note_waited(next.enqueued_until_now(), now);
    Follows::AtOnce(next.into_pointer())
}

/// The short way behind a turn whose process is dealt with ([`finish_turn`]): begins the turn of the one that is next, if there is one.
///
/// As in [`go_on`]; and what was ended there begins again, with what is granted. It may have woken something urgent, which is chosen then.
#[inline(always)]
fn go_on_without(core: &ThisCore<'_>) -> Option<Follows> {
    attention::notice_timer(core);
    if !core.is_ordinary() || core.chosen.is_some() {
        return None;
    }
    let next = core.take_ordinary()?;
    if !next.run_state().goes_on() {
        return Some(Follows::Begins(next));
    }
    check(core, &next);
    // What the loop was charged meanwhile is nobody's.
    let block = StackBlock::current();
    let _ = block.take_charged();
    if block.is_asked_to_end() {
        grant_anew(block);
    }
    let now = core.turn_ended_at.replace(0);
    core.in_turn.begin(false);
    core.begin_next_turn(now);
    core.statistics.note_waited(next.enqueued_until_now(), now);
    Some(Follows::AtOnce(next.into_pointer()))
}

/// What has ended on this stack had been asked to end, by taking back what it was granted.
#[cold]
#[inline(never)]
fn grant_anew(block: &StackBlock) {
    block.grant(settings::get(Setting::Reductions));
}

/// Whether a process may be queued by the short way. By the core's loop, right after its turn.
#[inline(always)]
fn is_ordinary(core: &ThisCore<'_>, ended: NonNull<Header>) -> bool {
    // SAFETY: the scheduler's reference has kept the process alive during its turn.
    let header = unsafe { ended.as_ref() };
    // SAFETY: likewise; its turn is over, and the loop has it in hand.
    header.is_ordinary() || unsafe { is_ordinary_from_now(core, ended) }
}

/// The same of one that is not on a roll, because it yields for the first time: then it is entered, which nobody pays for.
///
/// # Safety
/// It is alive, and the caller, which has it in hand, is the core's loop right after its turn.
#[cold]
#[inline(never)]
unsafe fn is_ordinary_from_now(core: &ThisCore<'_>, process: NonNull<Header>) -> bool {
    // SAFETY: by contract.
    unsafe {
        // Without room on the roll it is not: the long way makes some, or tries to.
        process.as_ref().is_ordinary_if_listed() && {
            roll_call::enter(core.core(), process, false);
            process.as_ref().is_listed()
        }
    }
}

/// The turn that ran on this stack has ended, wherever it began.
///
/// # Safety
/// Called by a core loop, right after the turn of `process`, with preemption disabled.
#[inline(never)]
unsafe fn finish_turn(process: NonNull<Header>, step: Step) {
    // SAFETY: by contract.
    let core = &unsafe { ThisCore::of_loop() };
    // What is freed and made between two turns is the kernel's.
    StackBlock::current().account().set(0);
    core.in_turn.end();
    if core.taken_from.get().is_some() {
        steal::judge_theft(core);
    }
    // SAFETY: the scheduler's reference has kept the process alive during its turn.
    let header = unsafe { process.as_ref() };
    let now = clock::now();
    let how = match step {
        Step::Yield => Kind::Yielded,
        Step::Pending => Kind::Waits,
        Step::Done => Kind::Done,
    };
    core.note_turn(header, now, how, || header.vtable().name);
    let has_share = aside::charge(core, header, now);
    core.turn_ended_at.set(now);
    match step {
        Step::Pending => {
            if !header.has_waited() {
                // From here on it is seen among the others.
                header.note_yielded();
                // SAFETY: the process is alive, and in hand.
                unsafe { roll_call::enter(core.core(), process, true) };
            }
            due::note_done(core, header, now);
            if has_share {
                // SAFETY: as below.
                return unsafe { aside::end_pending(core, process, now) };
            }
            if header.run_state().end_pending() {
                // SAFETY: `end_pending` says that it is to be queued, by its last turn and nobody else.
                enqueue::requeue_at(core, unsafe { Runnable::new(process) }, now);
            }
        }
        Step::Yield => {
            if !header.is_listed() {
                // SAFETY: the process is alive, and in hand.
                unsafe { roll_call::enter(core.core(), process, true) };
            }
            due::note_more_to_do(core, header, || now);
            if header.is_limited() {
                // As if it were woken: so its next turn does not follow another by the short way, which does not look at limits.
                header.run_state().notify();
                if has_share {
                    // SAFETY: as below.
                    return aside::take_turns(core, unsafe { Runnable::new(process) }, now);
                }
            }
            // SAFETY: its turn is over, and it stays marked as running while it is queued.
            enqueue::requeue_at(core, unsafe { Runnable::new(process) }, now);
        }
        Step::Done => {
            due::note_done(core, header, now);
            let exit = if header.run_state().is_ending() { Exit::Killed } else { Exit::Normal };
            if header.run_state().finish() {
                ending::note_end(header);
            }
            telling::tell_of_process(header, exit);
            if let Some(piece) = header.vtable().piece {
                // SAFETY: this is the core's loop, right after the turn.
                unsafe { piece(process, PieceNow::Ends) };
            }
            population::note_end(header);
            core.pace.note_event();
            if has_share {
                aside::make_way(core, header, now);
            }
            // SAFETY: the scheduler's reference, which ends with the process.
            drop(unsafe { ProcessRef::from_counted(process) });
        }
    }
}
