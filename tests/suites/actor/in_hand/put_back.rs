//! More mailboxes have mail than may be in hand: what is put back for that may be taken by another worker at once, and must not
//! be in any list of the first one's.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;

use magpie::actor::{Actor, Addr, Config, Context, Executor, Receive};
use magpie::arch::CoreId;
use magpie::sched;
use magpie::time::Instant;
use magpie_tests::{Changed, HANGS_AFTER, ensure_eq, kernel_test};

use super::node::spin;

/// What the players share.
#[derive(Default)]
struct Stage {
    spins: AtomicU64,
    extra_sent: AtomicU64,
    others_begin: AtomicU64,
    handled: AtomicU64,
    went: AtomicU64,
    last: AtomicU64,
    timed_out: AtomicU64,
}

impl Stage {
    fn wait_for(&self, id: u64, flag: &AtomicU64) {
        let began = Instant::now();
        while flag.load(Ordering::Relaxed) == 0 {
            if began.elapsed() > Duration::from_millis(100) {
                self.timed_out.fetch_or(id, Ordering::Relaxed);
                return;
            }
            core::hint::spin_loop();
        }
    }
}

struct Player {
    stage: Arc<Stage>,
    main: Option<Addr<Player>>,
    elsewhere: Option<Addr<Player>>,
    second: Option<Addr<Player>>,
    others: Vec<Addr<Player>>,
}

impl Actor for Player {}

enum Cue {
    Nothing,
    /// To A.
    Begin,
    /// To B.
    SecondMail,
    /// To the one elsewhere.
    Elsewhere,
    Go,
    /// To the main one.
    SpinUntilExtra,
    Overfeed,
    Fed(u64),
    /// To others.
    Other,
    Last,
}

impl Receive<Cue> for Player {
    type Reply = ();

    fn receive(&mut self, cue: Cue, context: &mut Context<Self>) {
        let stage = self.stage.clone();
        let send = |to: &Option<Addr<Player>>, cue| {
            let _ = to.as_ref().map(|to| to.send(cue));
        };
        match cue {
            Cue::Nothing => {}
            Cue::Begin => {
                send(&self.main, Cue::Nothing);
                send(&self.second, Cue::SecondMail);
                send(&self.elsewhere, Cue::Elsewhere);
            }
            Cue::SecondMail => send(&self.main, Cue::SpinUntilExtra),
            Cue::SpinUntilExtra => {
                stage.spins.store(1, Ordering::Relaxed);
                stage.wait_for(1, &stage.extra_sent);
            }
            Cue::Elsewhere => {
                stage.wait_for(2, &stage.spins);
                send(&self.main, Cue::Overfeed);
                stage.extra_sent.store(1, Ordering::Relaxed);
                stage.wait_for(4, &stage.others_begin);
            }
            Cue::Overfeed => {
                for other in &self.others {
                    let _ = other.send(Cue::Other);
                }
                for number in 0..300 {
                    let _ = context.address().send(Cue::Fed(number));
                }
            }
            Cue::Other => {
                if stage.others_begin.fetch_add(1, Ordering::Relaxed) == 0 {
                    stage.wait_for(8, &stage.went);
                    spin(Duration::from_millis(20));
                }
            }
            Cue::Fed(number) => {
                stage.handled.fetch_add(1, Ordering::Relaxed);
                if number == 299 {
                    send(&self.elsewhere, Cue::Go);
                }
            }
            Cue::Go => {
                send(&self.main, Cue::Nothing);
                stage.went.store(1, Ordering::Relaxed);
            }
            Cue::Last => stage.last.store(1, Ordering::Relaxed),
        }
    }
}

kernel_test! {
    /// A mailbox that was put back because too many are in hand is in nobody's list of what rests.
    #[cores(2)]
    async fn what_is_put_back_rests_with_nobody() -> Outcome {
        let _whole_turns = Changed::no_preemption()?;
        for _ in 0..20 {
        let stage = Arc::new(Stage::default());
        let executor = Executor::start(&Config::default().workers(2).mailboxes(300))?;
        let handle = executor.handle();
        let elsewhere = CoreId::new(1).ok_or("no core")?;
        let player = || Player { stage: stage.clone(), main: None, elsewhere: None, second: None, others: Vec::new() };
        let mut others = Vec::new();
        for _ in 0..140 {
            others.push(handle.spawn_on(CoreId::BOOT, player())?);
        }
        let main = handle.spawn_on(CoreId::BOOT, Player { others: others.clone(), ..player() })?;
        // Knows the main one only.
        let far = handle.spawn_pinned(elsewhere, Player { main: Some(main), ..player() })?;
        let second = handle.spawn_on(CoreId::BOOT, Player { main: Some(main), ..player() })?;
        let first = handle.spawn_on(
            CoreId::BOOT,
            Player { main: Some(main), elsewhere: Some(far), second: Some(second), ..player() },
        )?;
        main.send(Tie(far))?;
        for actor in others.iter().chain([&main, &far, &second, &first]) {
            actor.send(Cue::Nothing)?;
        }
        sched::out_of_work().await;
        for actor in others.iter().chain([&main, &second, &first]) {
            actor.send(Cue::Nothing)?;
        }
        sched::out_of_work().await;
        first.send(Cue::Begin)?;
        let began = Instant::now();
        while began.elapsed() < Duration::from_millis(150) {
            sched::yield_now().await;
        }
        let handled = stage.handled.load(Ordering::Relaxed);
        let timed_out = stage.timed_out.load(Ordering::Relaxed);
        main.send(Cue::Last)?;
        let began = Instant::now();
        while stage.last.load(Ordering::Relaxed) == 0 && began.elapsed() < HANGS_AFTER {
            sched::yield_now().await;
        }
        ensure_eq!(
            stage.last.load(Ordering::Relaxed), 1,
            "the last message was handled; {handled} before, {timed_out} timed out, went {}",
            stage.went.load(Ordering::Relaxed)
        );
        executor.stop().await;
        }
        Ok(())
    }
}

struct Tie(Addr<Player>);

impl Receive<Tie> for Player {
    type Reply = ();

    fn receive(&mut self, Tie(elsewhere): Tie, _: &mut Context<Self>) {
        self.elsewhere = Some(elsewhere);
    }
}
