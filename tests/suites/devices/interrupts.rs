//! Interrupts that are claimed: told to a process or an actor, on any core; given back, and taken from who has crashed. The devices are
//! lines that none is connected to: the interrupt controller says for them that they ask.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::hint::black_box;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use magpie::actor::{Actor, Config, Context, Executor, Hook, Receive, Signal};
use magpie::arch::CoreId;
use magpie::internals::arch::gic;
use magpie::interrupt::{self, ClaimError, Interrupt, Line, Revoked, Trigger};
use magpie::sched::{self, ExternalSource, JoinError, Priority, Spawn};
use magpie::{machine, time};
use magpie_tests::{Failure, amount, comes, ensure, ensure_eq, kernel_test};

/// Lines without a device, on every machine that the tests are run on.
const FIRST: u32 = 100;

pub(crate) fn line(index: u32) -> Line {
    Line { number: FIRST + index, trigger: Trigger::Edge }
}

/// Has the line's device ask once.
pub(crate) fn ask(index: u32) {
    gic::set_pending(line(index).number);
}

pub(crate) fn cores() -> impl Iterator<Item = CoreId> {
    (0..machine::cores()).filter_map(CoreId::new)
}

pub(crate) fn claimed(index: u32) -> Option<interrupt::Claimed> {
    interrupt::all().find(|claimed| claimed.line.number == line(index).number)
}

kernel_test! {
    /// Each interrupt is told to the process that waits, whatever core it is on and whatever core has the line.
    async fn each_is_told_to_who_waits() -> Outcome {
        let times = amount("interrupts", 200);
        for to in cores() {
            for on in [cores().next(), cores().last()].into_iter().flatten() {
                let seen = Arc::new(AtomicU64::new(0));
                let counts = seen.clone();
                let mut interrupt = Interrupt::claim(line(0))?;
                interrupt.route(to)?;
                let driver = Spawn::new().pinned(on).start(async move {
                    for _ in 0..times {
                        interrupt.wait().await?;
                        counts.fetch_add(1, Ordering::Release);
                    }
                    Ok::<_, Revoked>(interrupt)
                })?;
                for number in 1..=times {
                    ask(0);
                    comes(|| seen.load(Ordering::Acquire) >= number, "an interrupt was not told").await?;
                    ensure_eq!(seen.load(Ordering::Acquire), number, "interrupts told");
                }
                let _interrupt = driver.await??;
                let known = claimed(0).ok_or("the claim is not listed")?;
                ensure_eq!((known.core, known.taken), (to, times), "the core, and interrupts counted");
            }
        }
        ensure!(claimed(0).is_none(), "a line that was given back is listed");
        Ok(())
    }
}

kernel_test! {
    /// The last one is never missed, though it comes at any moment of who waits, from another core.
    async fn the_last_is_never_missed() -> Outcome {
        /// What the device would have to say.
        static WRITTEN: AtomicU64 = AtomicU64::new(0);
        let times = amount("interrupts", 5000);
        WRITTEN.store(0, Ordering::Relaxed);
        let mut interrupt = Interrupt::claim(line(1))?;
        let driver = sched::spawn(async move {
            while WRITTEN.load(Ordering::Acquire) != times {
                interrupt.wait().await?;
            }
            Ok::<_, Revoked>(())
        })?;
        let device = Spawn::new().pinned(cores().last().ok_or("no core")?).start(async move {
            for number in 1..=times {
                WRITTEN.store(number, Ordering::Release);
                ask(1);
                for _ in 0..number % 61 * 8 {
                    core::hint::spin_loop();
                }
                if number % 16 == 0 {
                    sched::yield_now().await;
                }
            }
        })?;
        device.await?;
        driver.await??;
        Ok(())
    }
}

kernel_test! {
    /// What was not claimed interrupts nobody, nor what is masked; it comes when it is let through.
    async fn what_is_masked_waits() -> Outcome {
        ask(2);
        let mut interrupt = Interrupt::claim(line(2))?;
        ask(2);
        time::sleep(core::time::Duration::from_millis(1)).await;
        ensure_eq!(claimed(2).map(|known| known.taken), Some(0), "interrupts while it is masked");
        interrupt.wait().await?;
        ask(2);
        interrupt.wait().await?;
        ensure_eq!(claimed(2).map(|known| known.taken), Some(2), "interrupts");
        interrupt.unmask()?;
        interrupt.mask()?;
        ask(2);
        time::sleep(core::time::Duration::from_millis(1)).await;
        ensure_eq!(claimed(2).map(|known| known.taken), Some(2), "interrupts, masked again");
        Ok(())
    }
}

kernel_test! {
    /// One at a time; none of the kernel's, and none that there is not.
    async fn claims_are_refused_for_a_reason() -> Outcome {
        for number in [0, 15, 27, 30, 31, gic::lines(), 1019, 1020, 1023, u32::MAX] {
            for trigger in [Trigger::Edge, Trigger::Level] {
                let refused = Interrupt::claim(Line { number, trigger });
                ensure!(matches!(refused, Err(ClaimError::NoSuchLine)), "line {number}: {refused:?}");
            }
        }
        // The serial port's, on the Raspberry Pi 4 and on QEMU's `virt`.
        let is_pi = machine::get().is_some_and(|machine| machine.board == "rpi4");
        let serial = Line { number: if is_pi { 153 } else { 33 }, trigger: Trigger::Level };
        ensure!(matches!(Interrupt::claim(serial), Err(ClaimError::Kernels)), "the serial port's is free");
        let first = Interrupt::claim(line(3))?;
        ensure!(matches!(Interrupt::claim(line(3)), Err(ClaimError::Taken)), "two have one line");
        let beyond = CoreId::new(machine::cores()).ok_or("no such number")?;
        ensure!(matches!(first.route(beyond), Err(ClaimError::NoSuchCore)), "a core that there is not");
        drop(first);
        drop(Interrupt::claim(line(3))?);
        Ok(())
    }
}

kernel_test! {
    /// As many as try at once, on all cores: one has it.
    async fn one_of_many_gets_it() -> Outcome {
        static INSIDE: AtomicU64 = AtomicU64::new(0);
        let rounds = amount("work", 2000);
        let mut processes = Vec::new();
        for core in cores() {
            processes.push(Spawn::new().pinned(core).start(async move {
                let mut had = 0;
                for _ in 0..rounds {
                    match Interrupt::claim(line(4)) {
                        Ok(interrupt) => {
                            ensure_eq!(INSIDE.fetch_add(1, Ordering::AcqRel), 0, "others who have it");
                            had += 1;
                            ask(4);
                            INSIDE.fetch_sub(1, Ordering::AcqRel);
                            drop(interrupt);
                        }
                        Err(ClaimError::Taken) => {}
                        Err(other) => return Err(other.into()),
                    }
                    sched::yield_now().await;
                }
                Ok::<u64, Failure>(had)
            })?);
        }
        let mut had = 0;
        for process in processes {
            had += process.await??;
        }
        ensure!(had > 0, "nobody had it");
        ensure!(claimed(4).is_none(), "it was not given back");
        Ok(())
    }
}

/// Crashes with what it has.
fn crash() {
    assert!(!black_box(true), "on purpose");
}

kernel_test! {
    /// A process that crashes or is killed gives its line back, masked: at once, and also when it waits.
    #[machine("crashes")]
    async fn a_claim_ends_with_its_process() -> Outcome {
        for core in cores() {
            let claims = Spawn::new().pinned(core).start(async {
                let interrupt = Interrupt::claim(line(5));
                crash();
                drop(interrupt);
            })?;
            ensure!(matches!(claims.await, Err(JoinError::Crashed)), "it has not crashed");
            let mut interrupt = Interrupt::claim(line(5))?;
            // It ends with who waits, not with who has claimed it.
            let waits = Spawn::new().pinned(core).start(async move {
                while interrupt.wait().await.is_ok() {
                    crash();
                }
            })?;
            ask(5);
            ensure!(matches!(waits.await, Err(JoinError::Crashed)), "it has not crashed");
            let mut interrupt = Interrupt::claim(line(5))?;
            let waits = Spawn::new().pinned(core).start(async move { interrupt.wait().await })?;
            comes(|| waits.process().state() == sched::ProcessState::Waiting, "it does not wait").await?;
            waits.process().kill();
            ensure!(waits.await.is_err(), "it was not killed");
            // A storm for nobody.
            for _ in 0..100 {
                ask(5);
            }
            ensure!(claimed(5).is_none(), "who was killed has it");
            drop(Interrupt::claim(line(5))?);
        }
        Ok(())
    }
}

kernel_test! {
    /// Whoever gets it from one that has crashed is told that the claim has ended, by whatever it calls.
    #[machine("crashes")]
    async fn a_handle_of_who_has_crashed_is_void() -> Outcome {
        static SIGNAL: Signal<u64> = Signal::new();
        let hands_over = Arc::new(magpie::mutex::Mutex::new(None));
        let given = hands_over.clone();
        let claims = sched::spawn(async move {
            if let Ok(mut given) = given.lock().await {
                *given = Interrupt::claim(line(6)).ok();
            }
            crash();
        })?;
        ensure!(claims.await.is_err(), "it has not crashed");
        let mut void = hands_over.lock().await?.take().ok_or("it has claimed nothing")?;
        let next = Interrupt::claim(line(6))?;
        ensure_eq!(void.wait().await, Err(Revoked), "waiting");
        ensure_eq!(void.mask(), Err(Revoked), "masking");
        ensure_eq!(void.unmask(), Err(Revoked), "unmasking");
        ensure_eq!(void.raises(&SIGNAL), Err(Revoked), "raising");
        ensure_eq!(void.route(CoreId::BOOT), Err(ClaimError::Revoked), "routing");
        drop(void);
        ensure!(claimed(6).is_some(), "the next one's was given back");
        drop(next);
        Ok(())
    }
}

/// The device asks.
#[derive(Clone, Copy)]
struct Attention;

static ATTENTION: Signal<Attention> = Signal::new();

/// An actor that drives a device.
struct Driver {
    interrupt: Option<Interrupt>,
    seen: Arc<AtomicU64>,
    crashes_at: u64,
}

impl Actor for Driver {
    fn started() -> Option<Hook<Self>> {
        Some(|driver, context| {
            ATTENTION.send_to(context.address().recipient(), Attention);
            match Interrupt::claim(line(7)) {
                Ok(interrupt) if interrupt.raises(&ATTENTION).is_ok() => driver.interrupt = Some(interrupt),
                _ => context.end(),
            }
        })
    }
}

impl Receive<Attention> for Driver {
    type Reply = ();

    fn receive(&mut self, _: Attention, context: &mut Context<Self>) {
        if self.seen.fetch_add(1, Ordering::AcqRel) + 1 == self.crashes_at {
            crash();
        }
        if self.interrupt.as_ref().is_none_or(|interrupt| interrupt.unmask().is_err()) {
            context.end();
        }
    }
}

kernel_test! {
    /// An actor gets a message for each, urgent or not; its line is free when it has crashed, and for the next one.
    #[machine("crashes")]
    async fn an_actor_drives_a_device() -> Outcome {
        for priority in [Priority::Normal, Priority::High] {
            let executor = Executor::start(&Config::default().priority(priority))?;
            for round in 0..10 {
                let seen = Arc::new(AtomicU64::new(0));
                let crashes_at = 20 + round;
                executor.handle().spawn(Driver { interrupt: None, seen: seen.clone(), crashes_at })?;
                comes(|| claimed(7).is_some(), "it does not claim its line").await?;
                for number in 1..=crashes_at {
                    ask(7);
                    comes(|| seen.load(Ordering::Acquire) == number, "an interrupt was not told").await?;
                }
                comes(|| claimed(7).is_none(), "a crashed actor's line is not free").await?;
                ask(7);
            }
            executor.stop().await;
        }
        ATTENTION.send_to_nobody();
        Ok(())
    }
}

kernel_test! {
    /// Where a line is claimed the system has not run out of work; where its owner has crashed it has.
    #[machine("crashes")]
    async fn a_claim_may_bring_work() -> Outcome {
        static OVER: AtomicBool = AtomicBool::new(false);
        OVER.store(false, Ordering::Relaxed);
        let interrupt = Interrupt::claim(line(8))?;
        let waits = sched::spawn(async {
            sched::out_of_work().await;
            OVER.store(true, Ordering::Release);
        })?;
        time::sleep(core::time::Duration::from_millis(5)).await;
        ensure!(!OVER.load(Ordering::Acquire), "out of work beside a claim");
        drop(interrupt);
        let claims = sched::spawn(async {
            let _interrupt = Interrupt::claim(line(8));
            crash();
        })?;
        ensure!(claims.await.is_err(), "it has not crashed");
        // This waits for something that is no work.
        waits.await?;
        let _still = ExternalSource::new();
        Ok(())
    }
}

kernel_test! {
    /// Many lines at once, each with its process, sent from core to core meanwhile.
    async fn lines_are_sent_from_core_to_core() -> Outcome {
        const LINES: u32 = 8;
        let times = amount("interrupts", 500);
        let mut drivers = Vec::new();
        let seen: Arc<[AtomicU64; LINES as usize]> = Arc::new([const { AtomicU64::new(0) }; LINES as usize]);
        for index in 0..LINES {
            let mut interrupt = Interrupt::claim(line(index))?;
            let seen = seen.clone();
            drivers.push(sched::spawn(async move {
                for round in 0..times {
                    interrupt.wait().await.map_err(|Revoked| ClaimError::Revoked)?;
                    seen[index as usize].fetch_add(1, Ordering::Release);
                    let to = (round as usize + index as usize) % machine::cores();
                    if let Some(core) = CoreId::new(to) {
                        interrupt.route(core)?;
                    }
                }
                Ok::<_, ClaimError>(())
            })?);
        }
        for number in 1..=times {
            (0..LINES).for_each(ask);
            for seen in seen.iter() {
                comes(|| seen.load(Ordering::Acquire) >= number, "an interrupt was not told").await?;
            }
        }
        for driver in drivers {
            driver.await??;
        }
        Ok(())
    }
}
