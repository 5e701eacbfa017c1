//! An address that survives restarts is a name: what becomes of messages that are sent by it while its holder crashes and is started anew.
//!
//! Each is in one of three cases: nobody is found, and the sender has it still; it was accepted by one life and handled there, once and in
//! order; or that life ended before, and it is lost, which whoever asked is told. None goes to another life than the one that was found.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use core::time::Duration;

use magpie::actor::{Actor, Addr, Config, Context, Executor, Hook, Receive, stop};
use magpie::registry::{self, NotFound};
use magpie::supervise::{Backoff, Child, Supervisor};
use magpie::{machine, sched, time};
use magpie_tests::{Failure, HANGS_AFTER, Outcome, ensure, ensure_eq, kernel_test};

use crate::ways::Way;

const NAME: &str = "by name";
const LIVES: u64 = 40;
const HOUR: Duration = Duration::from_secs(3600);

/// What was handled, whatever life did it.
struct Ledger {
    lives: AtomicU64,
    handled: AtomicU64,
    /// The last number of each sender.
    last: Vec<AtomicU64>,
    /// Messages that came twice, or after a later one, or to another life than they were sent to.
    wrong: AtomicU64,
}

struct Clerk {
    ledger: Arc<Ledger>,
    life: u64,
}

impl Actor for Clerk {
    fn started() -> Option<Hook<Self>> {
        Some(|_, context| {
            // Who does not get it is not found, and the test says so.
            let _ = registry::register(NAME, context.address());
        })
    }
}

#[derive(Clone, Copy)]
struct Form {
    sender: usize,
    number: u64,
}

impl Receive<Form> for Clerk {
    type Reply = ();

    fn receive(&mut self, form: Form, _: &mut Context<Self>) {
        // One behaviour runs at a time, but not always on the same core.
        let before = self.ledger.last[form.sender].swap(form.number, Ordering::Relaxed);
        if before >= form.number {
            self.ledger.wrong.fetch_add(1, Ordering::Relaxed);
        }
        self.ledger.handled.fetch_add(1, Ordering::Relaxed);
    }
}

struct WhichLife;

impl Receive<WhichLife> for Clerk {
    type Reply = u64;

    fn receive(&mut self, _: WhichLife, _: &mut Context<Self>) -> u64 {
        self.life
    }
}

/// For that life alone.
struct ForLife(u64);

impl Receive<ForLife> for Clerk {
    type Reply = ();

    fn receive(&mut self, ForLife(life): ForLife, _: &mut Context<Self>) {
        if life != self.life {
            self.ledger.wrong.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Receive<Way> for Clerk {
    type Reply = u64;

    fn receive(&mut self, way: Way, _: &mut Context<Self>) -> u64 {
        way.crash()
    }
}

/// What one sender has seen.
#[derive(Default)]
struct Seen {
    answered: u64,
    accepted: u64,
    refused: u64,
    nobody: u64,
    lost: u64,
}

/// Sends, and asks, until there were lives enough. What it asks it asks again until it is answered; what it tells it does not.
async fn sender(ledger: Arc<Ledger>, sender: usize, over: Arc<AtomicBool>) -> Result<Seen, Failure> {
    let mut seen = Seen::default();
    let mut number = 0;
    while !over.load(Ordering::Acquire) {
        number += 1;
        let form = Form { sender, number };
        let is_told = number % 3 == 0;
        loop {
            let clerk = match registry::find::<Addr<Clerk>>(NAME) {
                Ok(clerk) => clerk,
                Err(NotFound::Nobody) => {
                    seen.nobody += 1;
                    sched::yield_now().await;
                    continue;
                }
                Err(other) => return Err(Failure(alloc::format!("{other}"))),
            };
            if is_told {
                match clerk.send(form) {
                    Ok(_) => seen.accepted += 1,
                    Err(_) => seen.refused += 1,
                }
                break;
            }
            match clerk.ask(form).await {
                Ok(()) => {
                    seen.answered += 1;
                    break;
                }
                Err(_) => seen.lost += 1,
            }
        }
        if number % 50 == 0
            && let Ok(clerk) = registry::find::<Addr<Clerk>>(NAME)
            && let Ok(life) = clerk.ask(WhichLife).await
        {
            // The address stays that of this life, whoever has the name by then.
            while clerk.is_alive() && !over.load(Ordering::Acquire) {
                sched::yield_now().await;
            }
            ensure!(
                over.load(Ordering::Acquire) || clerk.send(ForLife(life)).is_err(),
                "an ended life accepts"
            );
        }
    }
    let _ = ledger;
    Ok(seen)
}

/// Ends one life after the other, in all ways.
async fn end_lives(ledger: Arc<Ledger>) -> Outcome {
    for life in 1..=LIVES {
        let began = async {
            loop {
                if ledger.lives.load(Ordering::Acquire) >= life
                    && let Ok(clerk) = registry::find::<Addr<Clerk>>(NAME)
                {
                    return clerk;
                }
                sched::yield_now().await;
            }
        };
        let clerk = time::background_timeout(HANGS_AFTER, began).await.map_err(|_| "no next life")?;
        time::sleep(Duration::from_micros(200 * (life % 4))).await;
        let is_told = match life % 4 {
            0 => clerk.send(stop::End).is_ok(),
            way => clerk.send(Way::ALL[way as usize % Way::ALL.len()]).is_ok(),
        };
        ensure!(is_told, "a life that goes on does not accept");
        while clerk.is_alive() {
            sched::yield_now().await;
        }
    }
    Ok(())
}

kernel_test! {
    #[machine("isolation")]
    async fn what_is_sent_by_name_is_handled_by_one_life_or_lost() -> Outcome {
        let senders = (2 * machine::cores()).min(8);
        let ledger = Arc::new(Ledger {
            lives: AtomicU64::new(0),
            handled: AtomicU64::new(0),
            last: (0..senders).map(|_| AtomicU64::new(0)).collect(),
            wrong: AtomicU64::new(0),
        });
        let executor = Executor::start(&Config::default())?;
        let of_each_life = ledger.clone();
        let child = Child::actor("clerk", executor.handle(), move || {
            let life = of_each_life.lives.fetch_add(1, Ordering::AcqRel) + 1;
            Clerk { ledger: of_each_life.clone(), life }
        });
        let soon = Backoff::new(Duration::from_millis(1), Duration::from_millis(2));
        let supervisor = Supervisor::one_for_one().restarts(2 * LIVES as usize, HOUR).backoff(soon).child(child).start()?;
        let over = Arc::new(AtomicBool::new(false));
        let running = (0..senders)
            .map(|number| sched::spawn(sender(ledger.clone(), number, over.clone())))
            .collect::<Result<Vec<_>, _>>()?;
        end_lives(ledger.clone()).await?;
        // The last ones are answered by the next life.
        over.store(true, Ordering::Release);
        let mut all = Seen::default();
        for sender in running {
            let seen = sender.await??;
            all.answered += seen.answered;
            all.accepted += seen.accepted;
            all.refused += seen.refused;
            all.nobody += seen.nobody;
            all.lost += seen.lost;
        }
        sched::out_of_work().await;
        let handled = ledger.handled.load(Ordering::Relaxed);
        magpie::log::text!(
            "{} answered, {} accepted, {} refused, {} times nobody, {} told that theirs were lost; {} of those accepted were lost",
            all.answered, all.accepted, all.refused, all.nobody, all.lost, all.answered + all.accepted - handled
        );
        ensure_eq!(ledger.wrong.load(Ordering::Relaxed), 0, "messages that came twice, late, or to another life");
        ensure!((all.answered..=all.answered + all.accepted).contains(&handled), "{handled} were handled");
        ensure!(all.nobody > 0, "somebody was always found, so nothing was sent between two lives");
        ensure!(all.answered > LIVES, "next to nothing was answered");
        ensure_eq!(ledger.lives.load(Ordering::Relaxed), LIVES + 1, "lives");
        supervisor.stop().await?;
        executor.stop().await;
        Ok(())
    }
}
