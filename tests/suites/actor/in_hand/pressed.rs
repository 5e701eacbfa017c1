//! Mail in hand under pressure: with memory used up, and with more of it than fits into a turn.
//!
//! Each of these was found by attacking mail that follows a batch.

use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use core::sync::atomic::Ordering;

use magpie::actor::{Config, Context, Executor, Receive};
use magpie::arch::CoreId;
use magpie::sched::{self, Spawn};
use magpie::time::Instant;
use magpie_tests::{Changed, Failure, HANGS_AFTER, HeapExhauster, ensure_eq, kernel_test};

use super::node::{Ball, Node, Numbered, Others, Seen, Talk, node, past_two_slices};

kernel_test! {
    /// Mailboxes whose actors were suspended have ten messages each when memory is used up.
    #[machine("preemption")]
    async fn mail_is_handled_with_memory_used_up() -> Outcome {
        const EACH: u64 = 10;
        let seen = Arc::new(Seen::default());
        let executor = Executor::start(&Config::default().workers(1).mailboxes(16))?;
        let mut nodes = Vec::new();
        for _ in 0..16 {
            nodes.push(executor.handle().spawn(Node { expected: vec![0; 2], ..node(&seen) })?);
        }
        // Each is suspended once, and what its envelope lay in is not its mailbox's any more.
        for node in &nodes {
            node.send(Talk { sender: 1, rounds: 1, spins: past_two_slices() })?;
        }
        sched::out_of_work().await;
        let whole = Changed::no_preemption()?;
        let exhauster = HeapExhauster::everything(16);
        let mut exhauster = exhauster;
        exhauster.take_more(16);
        let mut sent = 0;
        for number in 0..EACH {
            for node in &nodes {
                sent += u64::from(node.send(Numbered { sender: 0, number }).is_ok());
            }
        }
        let began = Instant::now();
        while seen.handled() < sent && began.elapsed() < HANGS_AFTER {
            sched::yield_now().await;
        }
        let handled = seen.handled();
        drop(exhauster);
        drop(whole);
        sched::out_of_work().await;
        ensure_eq!(seen.out_of_order(), 0, "out of order");
        ensure_eq!(handled, sent, "handled of those sent, with memory used up");
        ensure_eq!(sent, 160, "sent");
        executor.stop().await;
        Ok(())
    }
}

/// Makes it send itself so many more.
struct Feed(u64);

impl Receive<Feed> for Node {
    type Reply = ();

    fn receive(&mut self, Feed(left): Feed, context: &mut Context<Self>) {
        self.seen.handled.fetch_add(1, Ordering::Relaxed);
        if left > 0 {
            let _ = context.address().send(Feed(left - 1));
        }
    }
}

kernel_test! {
    /// The same, with mail that follows a batch, in segments with room for it.
    #[machine("preemption")]
    async fn what_follows_is_handled_with_memory_used_up() -> Outcome {
        let seen = Arc::new(Seen::default());
        let executor = Executor::start(&Config::default().workers(1).mailboxes(6).segment_bytes(8192))?;
        let mut nodes = Vec::new();
        for _ in 0..6 {
            nodes.push(executor.handle().spawn(Node { expected: vec![0; 2], ..node(&seen) })?);
        }
        for node in &nodes {
            for _ in 0..2 {
                node.send(Talk { sender: 1, rounds: 1, spins: past_two_slices() })?;
                sched::out_of_work().await;
            }
        }
        for node in &nodes {
            node.send(Talk { sender: 1, rounds: 1, spins: past_two_slices() })?;
        }
        sched::out_of_work().await;
        // The worker has a segment to spare from here on.
        nodes[0].send(Feed(0))?;
        sched::out_of_work().await;
        let whole = Changed::no_preemption()?;
        let mut exhauster = HeapExhauster::everything(16);
        exhauster.take_more(16);
        let mut expected = 1;
        for node in &nodes {
            for _ in 0..7 {
                expected += 301 * u64::from(node.send(Feed(300)).is_ok());
            }
        }
        let began = Instant::now();
        while seen.handled() < expected && began.elapsed() < HANGS_AFTER {
            sched::yield_now().await;
        }
        let handled = seen.handled();
        drop(exhauster);
        drop(whole);
        sched::out_of_work().await;
        executor.stop().await;
        ensure_eq!(handled, expected, "handled of those expected, with memory used up");
        Ok(())
    }
}

/// One mailbox keeps a worker's turns busy; others have ten messages each.
async fn others_have_turns(reductions: u64, balls: u64) -> Result<(), Failure> {
    let (seen, pair) = (Arc::new(Seen::default()), Arc::new(Seen::default()));
    let config = Config::default().workers(1).mailboxes(4).reductions(reductions);
    let executor = Executor::start(&config)?;
    let handle = executor.handle();
    let busy = handle.spawn(node(&pair))?;
    let mut others = Vec::new();
    for _ in 1..4 {
        others.push(handle.spawn(node(&seen))?);
    }
    busy.send(Others(vec![busy]))?;
    sched::out_of_work().await;
    for _ in 0..balls {
        busy.send(Ball)?;
    }
    while pair.handled() < 2 * balls {
        sched::yield_now().await;
    }
    for number in 0..10 {
        for other in &others {
            other.send(Numbered { sender: 0, number })?;
        }
    }
    // Only now, because how long sending takes is the host's affair.
    let before = pair.handled();
    let most = before + 50 * (balls + reductions);
    while seen.handled() < 30 && pair.handled() < most {
        sched::yield_now().await;
    }
    let (handled, passed) = (seen.handled(), pair.handled() - before);
    pair.gave_up.store(1, Ordering::Relaxed);
    sched::out_of_work().await;
    executor.stop().await;
    ensure_eq!(
        handled,
        30,
        "messages of others handled while {passed} balls came, {balls} at once, {reductions} a turn"
    );
    Ok(())
}

kernel_test! {
    /// A mailbox with more mail than fits into a turn leaves turns to others.
    async fn more_than_a_turns_mail_leaves_turns_to_others() -> Outcome {
        others_have_turns(50, 80).await?;
        others_have_turns(64, 333).await
    }
}

kernel_test! {
    /// The same with the usual reductions.
    async fn much_more_than_a_turns_mail_leaves_turns_to_others() -> Outcome {
        others_have_turns(4000, 7001).await
    }
}

/// Two guests with more mail than fits into a turn, and one message for a mailbox of their host's own that stays where it is. No core
/// is idle, so the guests stay, too.
async fn guests_leave_turns(reductions: u64, balls: u64) -> Result<(), Failure> {
    let (seen, pair, busy) =
        (Arc::new(Seen::default()), Arc::new(Seen::default()), Arc::new(Seen::default()));
    let executor = Executor::start(&Config::default().workers(2).mailboxes(4).reductions(reductions))?;
    let handle = executor.handle();
    let elsewhere = handle.cores().iter().last().unwrap_or(CoreId::BOOT);
    let own = handle.spawn_pinned(CoreId::BOOT, node(&seen))?;
    let guests = [handle.spawn_on(elsewhere, node(&pair))?, handle.spawn_on(elsewhere, node(&pair))?];
    for guest in guests {
        guest.send(Others(vec![guest]))?;
    }
    sched::out_of_work().await;
    let (is_over, handled_by) = (busy.clone(), (seen.clone(), pair.clone()));
    let hog = Spawn::new().pinned(elsewhere).start(async move {
        while is_over.handled() == 0 {
            core::hint::spin_loop();
        }
    })?;
    let sender = Spawn::new().pinned(CoreId::BOOT).start(async move {
        let (seen, pair) = handled_by;
        for _ in 0..balls {
            for guest in guests {
                guest.send(Ball)?;
            }
        }
        while pair.handled() < 10 * balls {
            sched::yield_now().await;
        }
        own.send(Numbered { sender: 0, number: 0 })?;
        let before = pair.handled();
        let most = before + 50 * (2 * balls + reductions);
        while seen.handled() == 0 && pair.handled() < most {
            sched::yield_now().await;
        }
        Ok::<_, Failure>((seen.handled(), pair.handled() - before))
    })?;
    let result = sender.await;
    pair.gave_up.store(1, Ordering::Relaxed);
    busy.handled.store(1, Ordering::Relaxed);
    let _ = hog.await;
    sched::out_of_work().await;
    executor.stop().await;
    let (handled, passed) = result.map_err(|_| Failure("the sender has crashed".into()))??;
    ensure_eq!(
        handled,
        1,
        "messages to the host's own handled while {passed} balls came to its guests, {balls} at once, {reductions} a turn"
    );
    Ok(())
}

kernel_test! {
    /// Guests with more mail than fits into a turn leave turns to their host's own mailboxes.
    #[cores(2)]
    async fn guests_with_much_mail_leave_turns_to_their_host() -> Outcome {
        for (reductions, balls) in [(100, 101), (50, 55), (7, 10), (64, 333)] {
            guests_leave_turns(reductions, balls).await?;
        }
        Ok(())
    }
}
