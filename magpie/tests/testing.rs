//! `magpie::testing`, tried as its user has it: an ordinary program of tests. That failures are reported as they should be is seen
//! by running some of these tests, which are ignored otherwise, in processes of their own (`a_failure_keeps_its_message`).

use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use magpie::actor::stop::End;
use magpie::actor::{Actor, Addr, AskError, Config, Context, Executor, Receive};
use magpie::arch::CoreId;
use magpie::sched::Spawn;
use magpie::testing::{Options, Said, context, run};
use magpie::{machine, sched, time};

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Adds up, and refuses odd numbers.
#[derive(Default)]
struct Even {
    sum: u64,
}

impl Actor for Even {}

impl Receive<u64> for Even {
    type Reply = u64;

    fn receive(&mut self, number: u64, _: &mut Context<Self>) -> u64 {
        assert!(number.is_multiple_of(2), "{number} is odd");
        self.sum += number;
        self.sum
    }
}

async fn adds_up() -> Result<(), Failure> {
    let executor = Executor::start(&Config::default())?;
    let even = executor.handle().spawn(Even::default())?;
    for number in (0..100).step_by(2) {
        even.send(number)?;
    }
    assert_eq!(even.ask(2).await?, 2452);
    even.send(End)?;
    executor.all_ended().await;
    assert_eq!(executor.stop().await, 0);
    Ok(())
}

/// Tests of one program, each of which has a kernel of its own.
macro_rules! many {
    ($($name:ident $cores:literal $body:expr;)*) => {
        $(
            #[test]
            fn $name() {
                run(&Options::default().cores($cores).seed($cores), $body);
            }
        )*
    };
}

mod many {
    use super::{Options, adds_up, run};

    many! {
        a00 1 adds_up; a01 2 adds_up; a02 4 adds_up; a03 8 adds_up; a04 1 adds_up; a05 2 adds_up; a06 4 adds_up; a07 8 adds_up;
        a08 1 adds_up; a09 2 adds_up; a10 4 adds_up; a11 8 adds_up; a12 1 adds_up; a13 2 adds_up; a14 4 adds_up; a15 8 adds_up;
        a16 1 adds_up; a17 2 adds_up; a18 4 adds_up; a19 8 adds_up; a20 1 adds_up; a21 2 adds_up; a22 4 adds_up; a23 8 adds_up;
        a24 1 adds_up; a25 2 adds_up; a26 4 adds_up; a27 8 adds_up; a28 1 adds_up; a29 2 adds_up; a30 4 adds_up; a31 8 adds_up;
        a32 1 adds_up; a33 2 adds_up; a34 4 adds_up; a35 8 adds_up; a36 1 adds_up; a37 2 adds_up; a38 4 adds_up; a39 8 adds_up;
        a40 1 adds_up; a41 2 adds_up; a42 4 adds_up; a43 8 adds_up; a44 1 adds_up; a45 2 adds_up; a46 4 adds_up; a47 8 adds_up;
        a48 1 adds_up; a49 2 adds_up; a50 4 adds_up; a51 8 adds_up; a52 1 adds_up; a53 2 adds_up; a54 4 adds_up; a55 8 adds_up;
        a56 1 adds_up; a57 2 adds_up; a58 4 adds_up; a59 8 adds_up;
    }
}

async fn an_actor_panics() {
    let executor = Executor::start(&Config::default()).expect("there is memory");
    let even = executor.handle().spawn(Even::default()).expect("there is memory");
    let _ = even.ask(3).await;
    panic!("the run went on after a crash");
}

/// The harness itself compares the messages of these.
mod panicking {
    use super::{Options, an_actor_panics, run};

    macro_rules! panicking {
        ($($name:ident $cores:literal)*) => {
            $(
                #[test]
                #[should_panic(expected = "3 is odd")]
                fn $name() {
                    run(&Options::default().cores($cores), an_actor_panics);
                }
            )*
        };
    }

    panicking! {
        p00 1 p01 2 p02 4 p03 8 p04 1 p05 2 p06 4 p07 8 p08 1 p09 2 p10 4 p11 8 p12 1 p13 2 p14 4 p15 8 p16 1 p17 2 p18 4 p19 8
        p20 1 p21 2 p22 4 p23 8 p24 1 p25 2 p26 4 p27 8 p28 1 p29 2 p30 4 p31 8 p32 1 p33 2 p34 4 p35 8 p36 1 p37 2 p38 4 p39 8
    }
}

#[test]
#[should_panic(expected = "assertion `left == right` failed: in what is run\n  left: 1\n right: 2")]
fn a_failed_assertion_of_the_body_is_the_tests() {
    run(&Options::default(), || async { assert_eq!(1, 2, "in what is run") });
}

#[test]
#[should_panic(expected = "a process has a bug")]
fn a_failed_assertion_of_a_process_is_the_tests() {
    run(&Options::default().cores(4), || async {
        let process = sched::spawn(async {
            time::sleep(Duration::from_millis(1)).await;
            panic!("a process has a bug");
        });
        let _ = process.expect("there is memory").await;
    });
}

#[test]
#[should_panic(expected = "the test returned an error: \"no luck\"")]
fn an_error_of_the_body_is_the_tests() {
    run(&Options::default(), || async { Err::<(), _>("no luck") });
}

#[test]
#[should_panic(expected = "every process waits, and nothing will ever wake one")]
fn a_standstill_is_noticed() {
    run(&Options::default(), std::future::pending::<()>);
}

#[test]
#[should_panic(expected = "no end within 1 s")]
fn what_hangs_is_ended() {
    run(&Options::default().hangs_after(Duration::from_secs(1)), || async {
        while machine::cores() > 0 {
            sched::yield_now().await;
        }
    });
}

#[test]
#[should_panic(expected = "there is one scheduler in a program, and the caller runs in it")]
fn a_run_in_a_run_is_refused() {
    run(&Options::default(), || async {
        let _ = sched::run_on_threads(1, 1, async {});
    });
}

#[test]
#[should_panic(expected = "did not come to the run")]
fn a_wrong_name_is_noticed() {
    run(&Options::default().name("no_such_test"), || async {});
}

/// Each run begins with statics as they are in the program.
#[test]
fn several_runs_of_one_test_share_nothing() {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    for _ in 0..3 {
        run(&Options::default(), || async {
            assert_eq!(COUNT.fetch_add(1, Ordering::Relaxed), 0);
        });
    }
    assert_eq!(COUNT.load(Ordering::Relaxed), 0, "what was counted was counted elsewhere");
}

#[test]
fn options_reach_the_kernel() {
    let options = Options::default().cores(3).arguments("sched.slice_us=500 word");
    run(&options, || async {
        assert_eq!((machine::cores(), machine::argument("word")), (3, Some("")));
        assert_eq!(sched::setting(sched::Setting::SliceMicroseconds), 500);
    });
}

#[test]
#[should_panic(expected = "the argument sched.slice_us=1")]
fn a_setting_out_of_range_is_refused() {
    run(&Options::default().arguments("sched.slice_us=1"), || async {});
}

/// Days pass, and every moment is met exactly but for the looks at the clock.
#[test]
fn virtual_time_takes_no_time() {
    run(&Options::default().cores(4).virtual_time(), || async {
        let begin = time::Instant::now();
        for hours in [1, 24, 1000] {
            let before = time::Instant::now();
            let slept = Duration::from_secs(3600 * hours);
            time::sleep(slept).await;
            let over = before.elapsed() - slept;
            assert!(over < Duration::from_millis(1), "{over:?} too long");
        }
        assert_eq!(begin.elapsed().as_secs(), 1025 * 3600);
    });
}

/// However many, on whatever core, and however close.
/// Who looks at the clock moves it on, past the moment that another core sleeps until: that one wakes, although no timer's deadline is reached.
#[test]
fn a_moment_may_pass_while_somebody_looks_at_the_clock() {
    run(&Options::default().cores(2).virtual_time(), || async {
        let other = CoreId::new(1).ok_or("there is no core 1")?;
        let sleeps = Spawn::new().pinned(other).start(time::sleep(Duration::from_micros(20)))?;
        let looks = Spawn::new().pinned(CoreId::BOOT).start(async {
            // Until the other core sleeps; in real time, for the other stands still.
            std::thread::sleep(Duration::from_millis(50));
            let begin = time::Instant::now();
            while begin.elapsed() < Duration::from_micros(100) {}
        })?;
        looks.await?;
        sleeps.await?;
        Ok::<(), Failure>(())
    });
}

#[test]
fn virtual_timers_fire_in_order() {
    static FIRED: AtomicU32 = AtomicU32::new(0);
    for seed in 1..=5 {
        run(&Options::default().cores(4).seed(seed).virtual_time(), || async {
            let mut sleepers = Vec::new();
            // From the last to the first.
            for number in (0..200_u32).rev() {
                sleepers.push(sched::spawn(async move {
                    time::sleep(Duration::from_secs(60) + Duration::from_millis(10) * number).await;
                    assert_eq!(FIRED.fetch_add(1, Ordering::Relaxed), number, "who is woken");
                })?);
            }
            for sleeper in sleepers {
                sleeper.await.expect("it ends");
            }
            Ok::<(), sched::SpawnError>(())
        });
    }
}

/// A limit does not pass because the host is slow: here for longer than the limit is.
#[test]
fn no_virtual_limit_passes_while_something_runs() {
    run(&Options::default().virtual_time(), || async {
        let slow = sched::spawn(async {
            std::thread::sleep(Duration::from_millis(50));
            sched::yield_now().await;
        });
        let slow = slow.expect("there is memory");
        assert_eq!(time::timeout(Duration::from_millis(20), slow).await, Ok(Ok(())));
    });
}

struct Silent;
impl Actor for Silent {}

#[test]
fn an_ask_that_nobody_answers_times_out_virtually() {
    use magpie::actor::Request;
    struct Keeps(Vec<magpie::actor::Reply<u8>>);
    impl Actor for Keeps {}
    impl Receive<Request<u8, u8>> for Keeps {
        type Reply = ();

        fn receive(&mut self, request: Request<u8, u8>, _: &mut Context<Self>) {
            self.0.push(request.reply);
        }
    }
    run(&Options::default().virtual_time(), || async {
        let executor = Executor::start(&Config::default())?;
        let keeps = executor.handle().spawn(Keeps(Vec::new()))?;
        assert_eq!(keeps.ask_within(Duration::from_secs(86_400), 1u8).await, Err(AskError::TimedOut));
        executor.stop().await;
        Ok::<(), Failure>(())
    });
}

/// Counts down, tells a friend, and ends in the way it is told to.
struct Countdown {
    left: u32,
    friend: Addr<Even>,
}

struct Tick;
enum Leave {
    Vacate,
    Retire,
}

impl Actor for Countdown {}

impl Receive<Tick> for Countdown {
    type Reply = bool;

    fn receive(&mut self, _: Tick, context: &mut Context<Self>) -> bool {
        self.left -= 1;
        if self.left == 0 {
            context.end();
        } else {
            let _ = (self.friend.send(2), context.address().send(Tick));
        }
        self.left == 0
    }
}

impl Receive<Leave> for Countdown {
    type Reply = ();

    fn receive(&mut self, how: Leave, context: &mut Context<Self>) {
        match how {
            Leave::Vacate => context.vacate(),
            Leave::Retire => context.retire(),
        }
    }
}

#[test]
fn a_behaviour_is_called_directly() {
    run(&Options::default(), || async {
        let executor = Executor::start(&Config::default())?;
        let friend = executor.handle().spawn(Even::default())?;
        let stand_in = Countdown { left: 3, friend };
        let mut context = context(executor.handle(), stand_in).map_err(|error| error.without_actor())?;
        let mut countdown = Countdown { left: 2, friend };

        assert!(!countdown.receive(Tick, &mut context));
        assert_eq!((countdown.left, context.said()), (1, Said::Nothing));
        assert!(countdown.receive(Tick, &mut context));
        assert_eq!(context.said(), Said::End);
        countdown.receive(Leave::Vacate, &mut context);
        assert_eq!(context.said(), Said::Vacate);
        countdown.receive(Leave::Retire, &mut context);
        assert_eq!(context.said(), Said::Retire);
        context.forget_said();
        assert_eq!(context.said(), Said::Nothing);

        // One message of the state's under test to the stand-in, which has told the friend, and itself again, twice.
        sched::out_of_work().await;
        assert!(!context.address().is_alive(), "the stand-in has counted down");
        assert_eq!(friend.ask(0).await?, 6);
        // It stays usable when its executor has stopped, and says so.
        executor.stop().await;
        assert!(context.spawn(Silent).is_err() && context.address().send(Tick).is_err());
        Ok::<(), Failure>(())
    });
}

#[test]
#[should_panic(expected = "a behaviour has put another context in the place of the test's")]
fn a_context_that_was_swapped_is_refused() {
    run(&Options::default(), || async {
        let executor = Executor::start(&Config::default()).expect("there is memory");
        let mut one = context(executor.handle(), Even::default()).expect("there is memory");
        let mut other = context(executor.handle(), Even::default()).expect("there is memory");
        std::mem::swap::<Context<Even>>(&mut one, &mut other);
        one.said();
    });
}

/// What the next test runs.
mod ignored {
    use super::{Options, an_actor_panics, run};

    #[test]
    #[ignore = "it fails: see `a_failure_keeps_its_message`"]
    fn fails() {
        run(&Options::default(), an_actor_panics);
    }

    #[test]
    #[ignore = "it prints: see `a_failure_keeps_its_message`"]
    fn prints() {
        run(&Options::default(), || async {
            magpie::text!("a line of the kernel's");
            println!("a line of the test's");
            assert!(magpie::machine::cores() > 2, "so that it is shown");
        });
    }
}

/// What somebody sees whose test fails.
#[test]
fn a_failure_keeps_its_message() {
    for (name, expected) in [
        ("ignored::fails", &[" panicked at ", "testing.rs:", "3 is odd", "ignored::fails stdout"][..]),
        ("ignored::prints", &["a line of the kernel's", "a line of the test's", "so that it is shown"][..]),
    ] {
        for threads in ["--test-threads=1", "--test-threads=4"] {
            let program = std::env::current_exe().expect("it runs");
            let said = Command::new(program)
                .args(["--ignored", "--exact", name, threads])
                .output()
                .expect("it starts");
            let text = String::from_utf8_lossy(&said.stdout);
            assert!(!said.status.success(), "{text}");
            for part in expected {
                assert!(text.contains(part), "{name} does not say {part}:\n{text}");
            }
            assert!(!text.contains("went on after a crash") && !text.contains('\0'), "{text}");
        }
    }
}
