//! Who is told of an end: by which message, how often, and before what.

use alloc::sync::Arc;
use alloc::vec::Vec;

use super::{Verdict, count, counter, ensure, equal, failed, start, start_with_thieves, unsuspended};
use crate::actor::{Actor, Addr, Bound, Config, Context, Executor, MailboxVictim, Receive, WhenFull, stop};
use crate::arch::atomic::{AtomicU64, Ordering};
use crate::channel::ProcessMailbox;
use crate::sched;
use crate::sync::SpinLock;
use crate::watch::{Ended, Exit, Watch, WatchId};

/// What was told, by any number of watchers.
type Told = Arc<SpinLock<Vec<(WatchId, Exit)>>>;

/// One that notes what it is told.
struct Notary(Told);

impl Actor for Notary {}

impl Receive<Ended> for Notary {
    type Reply = ();

    fn receive(&mut self, ended: Ended, _: &mut Context<Self>) {
        // Room was made beforehand.
        self.0.lock().push((ended.watch(), ended.exit()));
    }
}

fn told(room: usize) -> Told {
    Arc::new(SpinLock::new(Vec::with_capacity(room)))
}

/// What was told, in the order of the watches.
fn sorted(told: &Told) -> Vec<(WatchId, Exit)> {
    let mut all = told.lock().clone();
    all.sort_by_key(|(watch, _)| *watch);
    all
}

struct Idle;

impl Actor for Idle {}

pub(super) async fn each_way_to_end_is_told_once(_work: u64) -> Verdict {
    let (executor, other) = (start()?, start()?);
    let all = told(64);
    let notary = executor.handle().spawn(Notary(all.clone())).map_err(failed)?.recipient();
    let mut ends = ProcessMailbox::<Ended>::new(1).map_err(failed)?;
    let spawn = || other.handle().spawn(Idle).map_err(failed);
    let (ended, vacated, retired, left) = (spawn()?, spawn()?, spawn()?, spawn()?);
    let process = sched::spawn(async { sched::yield_now().await }).map_err(failed)?;
    let mut expected = Vec::new();
    for (actor, exit) in
        [(ended, Exit::Normal), (vacated, Exit::Normal), (retired, Exit::Normal), (left, Exit::Stopped)]
    {
        // Twice for one watcher, and once for a mailbox that has room for one.
        expected.push((actor.watch(&notary).map_err(failed)?.id(), exit));
        expected.push((actor.watch(&notary).map_err(failed)?.id(), exit));
        expected.push((actor.watch(&ends.address()).map_err(failed)?.id(), exit));
    }
    // It may have ended by now.
    let watch = process.process().watch(&ends.address()).map_err(failed)?;
    ended.send(stop::End).map_err(failed)?;
    vacated.send(stop::Vacate).map_err(failed)?;
    retired.send(stop::Retire).map_err(failed)?;
    process.await.map_err(failed)?;
    sched::out_of_work().await;
    other.stop().await;
    sched::out_of_work().await;
    let mut received = sorted(&all);
    let mut of_process = None;
    while let Some(ended) = ends.try_receive() {
        if ended.watch() == watch.id() {
            equal(of_process.replace(ended.exit()), None, "told of the process twice")?;
        } else {
            received.push((ended.watch(), ended.exit()));
        }
    }
    received.sort_by_key(|(watch, _)| *watch);
    equal(received, expected, "what was told")?;
    ensure!(matches!(of_process, Some(Exit::Normal | Exit::Gone)), "of the process was told {of_process:?}");
    ensure!(!watch.cancel(), "what was told cannot be cancelled");
    executor.stop().await;
    Ok(())
}

pub(super) async fn who_has_ended_is_told_of_at_once(_work: u64) -> Verdict {
    let executor = start()?;
    let all = told(8);
    let notary = executor.handle().spawn(Notary(all.clone())).map_err(failed)?.recipient();
    let gone = executor.handle().spawn(Idle).map_err(failed)?;
    gone.send(stop::Vacate).map_err(failed)?;
    let process = sched::spawn(async {}).map_err(failed)?;
    let reference = process.process().clone();
    process.await.map_err(failed)?;
    sched::out_of_work().await;
    let successor = executor.handle().respawn(gone, Idle).map_err(failed)?;
    let first = gone.watch(&notary).map_err(failed)?;
    let second = reference.watch(&notary).map_err(failed)?;
    let third = successor.watch(&notary).map_err(failed)?;
    sched::out_of_work().await;
    equal(sorted(&all), [(first.id(), Exit::Gone), (second.id(), Exit::Gone)].to_vec(), "what was told")?;
    ensure!(third.cancel(), "the successor has not ended");
    executor.stop().await;
    Ok(())
}

pub(super) async fn what_is_cancelled_is_never_told(_work: u64) -> Verdict {
    let executor = start()?;
    let all = told(8);
    let notary = executor.handle().spawn(Notary(all.clone())).map_err(failed)?.recipient();
    let mut ends = ProcessMailbox::<Ended>::new(4).map_err(failed)?;
    let actor = executor.handle().spawn(Idle).map_err(failed)?;
    let watches = [actor.watch(&notary), actor.watch(&ends.address()), actor.watch(&notary)];
    let mut ids = Vec::new();
    for (index, watch) in watches.into_iter().enumerate() {
        let watch = watch.map_err(failed)?;
        ids.push(watch.id());
        if index < 2 {
            ensure!(watch.cancel(), "a watch of one that lives was not cancelled");
            ensure!(!watch.cancel(), "a watch was cancelled twice");
        }
    }
    actor.send(stop::End).map_err(failed)?;
    sched::out_of_work().await;
    equal(sorted(&all), [(ids[2], Exit::Normal)].to_vec(), "what was told")?;
    // With the watch its address has gone: nothing can come any more.
    equal(ends.receive().await, None, "what came to a mailbox whose watch was cancelled")?;
    executor.stop().await;
    Ok(())
}

/// Notes in which order ends and numbers come. On `Begin` it sees to it that both wait.
struct Busy {
    order: Arc<SpinLock<Vec<u64>>>,
    watched: Vec<Addr<Idle>>,
}

impl Actor for Busy {}

struct Begin;

impl Receive<Begin> for Busy {
    type Reply = ();

    fn receive(&mut self, _: Begin, context: &mut Context<Self>) {
        let me = context.address();
        for number in 1..=8 {
            // What a bound refuses, or forgets, is asked about below.
            let _ = me.send(number);
        }
        for actor in self.watched.drain(..) {
            // Ended before this: it is told in this very call, behind numbers that wait.
            if context.watch(actor).is_err() {
                context.end();
            }
        }
        for number in 9..=16 {
            let _ = me.send(number);
        }
    }
}

impl Receive<u64> for Busy {
    type Reply = ();

    fn receive(&mut self, number: u64, _: &mut Context<Self>) {
        self.order.lock().push(number);
    }
}

impl Receive<Ended> for Busy {
    type Reply = ();

    fn receive(&mut self, ended: Ended, _: &mut Context<Self>) {
        self.order.lock().push(if ended.exit() == Exit::Gone { 0 } else { 100 });
    }
}

/// The order in which two ends and sixteen numbers come, to an actor whose mailbox has this bound.
async fn order(bound: Option<Bound>) -> Result<Vec<u64>, alloc::string::String> {
    let config = match bound {
        Some(bound) => Config::default().bound(bound),
        None => Config::default(),
    };
    let bounded = Executor::start(&config).map_err(failed)?;
    let other = start()?;
    let mut watched = Vec::with_capacity(2);
    for _ in 0..2 {
        let actor = other.handle().spawn(Idle).map_err(failed)?;
        actor.send(stop::End).map_err(failed)?;
        watched.push(actor);
    }
    sched::out_of_work().await;
    let order = Arc::new(SpinLock::new(Vec::with_capacity(32)));
    let busy = Busy { order: order.clone(), watched };
    bounded.handle().spawn(busy).map_err(failed)?.send(Begin).map_err(failed)?;
    sched::out_of_work().await;
    bounded.stop().await;
    other.stop().await;
    let order = order.lock().clone();
    Ok(order)
}

pub(super) async fn no_bound_holds_an_end_back(_work: u64) -> Verdict {
    for when_full in [WhenFull::Refuse, WhenFull::DropNewest, WhenFull::DropOldest] {
        let order = unsuspended(|| order(Some(Bound::new(4, when_full)))).await?;
        let ends = order.iter().filter(|number| **number == 0).count();
        equal(ends, 2, "ends that were told to one whose mailbox is full")?;
        equal(&order[..2], &[0, 0], "what came first")?;
        ensure!(order.len() <= 6, "more than the bound came: {order:?}");
    }
    Ok(())
}

pub(super) async fn an_end_comes_before_mail(_work: u64) -> Verdict {
    let order = unsuspended(|| order(None)).await?;
    let numbers: Vec<u64> = order.iter().copied().filter(|number| *number != 0).collect();
    equal(numbers, (1..=16).collect(), "the numbers")?;
    equal(order.len(), 18, "how many messages came")
}

/// One of many that end when they are told to, and send numbers around before.
struct Mortal {
    others: Arc<SpinLock<Vec<Addr<Mortal>>>>,
    handled: &'static AtomicU64,
}

impl Actor for Mortal {}

/// A number of hops that are left.
struct Hop(u32);

impl Receive<Hop> for Mortal {
    type Reply = ();

    fn receive(&mut self, hop: Hop, context: &mut Context<Self>) {
        let handled = self.handled.fetch_add(1, Ordering::Relaxed);
        if hop.0 == 0 {
            return context.end();
        }
        let next = {
            let others = self.others.lock();
            others.get((handled.wrapping_mul(0x9e37_79b9) >> 8) as usize % others.len().max(1)).copied()
        };
        // Who has ended gives the hop back; then this one ends in its place.
        if next.is_none_or(|next| next.send(Hop(hop.0 - 1)).is_err()) {
            context.end();
        }
    }
}

pub(super) async fn ends_are_told_once_while_mailboxes_are_stolen(work: u64) -> Verdict {
    const MORTALS: usize = 64;
    const NOTARIES: usize = 4;
    let rounds = (work / 10_000).clamp(1, 10);
    let executor = start_with_thieves(MailboxVictim::Random).map_err(failed)?;
    let handled = counter();
    for _ in 0..rounds {
        let all = told(MORTALS * (NOTARIES + 1));
        let mut notaries = Vec::new();
        for _ in 0..NOTARIES {
            notaries.push(executor.handle().spawn(Notary(all.clone())).map_err(failed)?);
        }
        let mut ends = ProcessMailbox::<Ended>::new(1).map_err(failed)?;
        let others = Arc::new(SpinLock::new(Vec::with_capacity(MORTALS)));
        let mut watches: Vec<Watch> = Vec::new();
        for _ in 0..MORTALS {
            let mortal = Mortal { others: others.clone(), handled };
            let mortal = executor.handle().spawn(mortal).map_err(failed)?;
            others.lock().push(mortal);
        }
        let mortals = others.lock().clone();
        let mut cancelled = Vec::new();
        for (index, mortal) in mortals.iter().enumerate() {
            // Some end while they are being watched.
            let _ = mortal.send(Hop(index as u32 % 30));
            for notary in &notaries {
                watches.push(mortal.watch(&notary.recipient()).map_err(failed)?);
            }
            watches.push(mortal.watch(&ends.address()).map_err(failed)?);
            if index % 5 == 0
                && let Some(watch) = watches.pop()
            {
                match watch.cancel() {
                    true => cancelled.push(watch.id()),
                    false => watches.push(watch),
                }
            }
        }
        for mortal in &mortals {
            // It may have ended.
            let _ = mortal.send(stop::End);
        }
        sched::out_of_work().await;
        let mut ids: Vec<WatchId> = all.lock().iter().map(|(watch, _)| *watch).collect();
        while let Some(ended) = ends.try_receive() {
            ids.push(ended.watch());
        }
        ids.sort();
        let mut expected: Vec<WatchId> = watches.iter().map(Watch::id).collect();
        expected.sort();
        equal(ids.len(), expected.len(), "how many ends were told")?;
        ensure!(ids == expected, "an end was told twice, and another never");
        ensure!(cancelled.iter().all(|id| !ids.contains(id)), "a watch that was cancelled was told");
        for notary in notaries {
            notary.send(stop::End).map_err(failed)?;
        }
    }
    executor.stop().await;
    ensure!(count(handled) > 0, "nobody did anything");
    Ok(())
}
