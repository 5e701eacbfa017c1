//! The code of `docs/testing.md`. That every block there is here is looked at by the host tool's tests, as for all pages.

use std::error::Error;
use std::time::Duration;

use magpie::actor::stop::End;
use magpie::actor::{Actor, Config, Context, Executor, Receive};
use magpie::testing::{Options, Said, context, run};
use magpie::time;

type Failure = Box<dyn Error + Send + Sync>;

/// It adds up.
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

#[test]
fn it_adds_up() {
    run(&Options::default(), || async {
        let executor = Executor::start(&Config::default())?;
        let even = executor.handle().spawn(Even::default())?;
        even.send(40)?;
        assert_eq!(even.ask(2).await?, 42);
        even.send(End)?;
        executor.all_ended().await;
        assert_eq!(executor.stop().await, 0);
        Ok::<(), Failure>(())
    });
}

#[test]
#[should_panic(expected = "3 is odd")]
fn it_refuses_odd_numbers() {
    run(&Options::default(), || async {
        let executor = Executor::start(&Config::default()).expect("there is memory");
        let even = executor.handle().spawn(Even::default()).expect("there is memory");
        let _ = even.ask(3).await;
    });
}

#[test]
fn an_hour_passes() {
    run(&Options::default().virtual_time(), || async {
        let begin = time::Instant::now();
        time::sleep(Duration::from_secs(3600)).await;
        assert_eq!(begin.elapsed().as_secs(), 3600);
    });
}

/// It burns for some hours.
struct Candle {
    hours: u32,
}

impl Actor for Candle {}

struct Burn;

impl Receive<Burn> for Candle {
    type Reply = ();

    fn receive(&mut self, _: Burn, context: &mut Context<Self>) {
        match self.hours.checked_sub(1) {
            Some(left) => {
                self.hours = left;
                let _ = context.address().send(Burn);
            }
            None => context.end(),
        }
    }
}

#[test]
fn it_burns_down() {
    run(&Options::default(), || async {
        let executor = Executor::start(&Config::default()).expect("there is memory");
        let mut context = context(executor.handle(), Candle { hours: 0 }).expect("there is memory");
        let mut candle = Candle { hours: 1 };

        candle.receive(Burn, &mut context);
        assert_eq!((candle.hours, context.said()), (0, Said::Nothing));
        candle.receive(Burn, &mut context);
        assert_eq!(context.said(), Said::End);

        // It has sent itself a message, which has reached the stand-in: that had no hours left.
        executor.all_ended().await;
        executor.stop().await;
    });
}
