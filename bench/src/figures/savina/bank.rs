//! Bank: tellers move money between accounts. A teller is a process, which asks one account to debit an amount and, when
//! it has the answer, another to credit it.
//!
//! One operation is one transfer: two asks with their answers. No money may be lost, and no booking.
//!
//! Parameters: tellers, accounts, transfers of each teller.

use alloc::boxed::Box;
use alloc::format;
use alloc::sync::Arc;
use alloc::vec::Vec;
use magpie::actor::{Actor, Addr, AskError, Context, ExecutorHandle, Receive};
use magpie::sched;

use crate::failed::Failed;
use crate::figures::Go;
use crate::random::Random;
use crate::{stopwatch, verdict};

/// What each account begins with.
const OPENING: i64 = 1_000_000;

struct Debit(i64);
struct Credit(i64);
struct Close;

/// What an account has come to.
struct Statement {
    balance: i64,
    bookings: u64,
}

struct Account(Statement);

impl Actor for Account {}

impl Account {
    fn book(&mut self, amount: i64) -> i64 {
        self.0.balance += amount;
        self.0.bookings += 1;
        self.0.balance
    }
}

impl Receive<Debit> for Account {
    type Reply = i64;

    fn receive(&mut self, Debit(amount): Debit, _: &mut Context<Self>) -> i64 {
        self.book(-amount)
    }
}

impl Receive<Credit> for Account {
    type Reply = i64;

    fn receive(&mut self, Credit(amount): Credit, _: &mut Context<Self>) -> i64 {
        self.book(amount)
    }
}

impl Receive<Close> for Account {
    type Reply = Statement;

    fn receive(&mut self, _: Close, context: &mut Context<Self>) -> Statement {
        context.end();
        let Statement { balance, bookings } = self.0;
        Statement { balance, bookings }
    }
}

type Accounts = Arc<Vec<Addr<Account>>>;

async fn teller(accounts: Accounts, seed: u32, transfers: u64) -> Result<(), AskError> {
    let mut random = Random::new(seed);
    for _ in 0..transfers {
        let from = random.below(accounts.len());
        // Any other one.
        let to = (from + 1 + random.below(accounts.len() - 1)) % accounts.len();
        let amount = random.below(1000) as i64;
        accounts[from].ask(Debit(amount)).await?;
        accounts[to].ask(Credit(amount)).await?;
    }
    stopwatch::done();
    Ok(())
}

/// When all tellers have gone home: is everything there?
async fn audit(accounts: Accounts, transfers: u64) -> Result<(), AskError> {
    let (mut money, mut bookings) = (0, 0);
    for account in accounts.iter() {
        let statement = account.ask(Close).await?;
        money += statement.balance;
        bookings += statement.bookings;
    }
    verdict::expect_equal("money in the bank", money, OPENING * accounts.len() as i64);
    verdict::expect_equal("bookings", bookings, 2 * transfers);
    Ok(())
}

/// The bank's day: tellers come, work and go; then the accounts are audited.
async fn day(accounts: Accounts, tellers: u64, transfers: u64) {
    stopwatch::begin(tellers);
    let teller = |number| sched::spawn(teller(accounts.clone(), number as u32 + 1, transfers));
    // A teller that cannot be started leaves the day without an end, and so is reported.
    let tellers_at_work: Vec<_> = (0..tellers).filter_map(|number| teller(number).ok()).collect();
    for teller in tellers_at_work {
        if let Ok(Err(error)) = teller.await {
            verdict::wrong(format!("a teller has no answer: {error}"));
        }
    }
    if let Err(error) = audit(accounts, tellers * transfers).await {
        verdict::wrong(format!("an account cannot be audited: {error}"));
    }
}

pub fn prepare(handle: &ExecutorHandle, parameters: &[u64]) -> Result<Go, Failed> {
    let (tellers, accounts, transfers) = (parameters[0], parameters[1], parameters[2]);
    if tellers == 0 || accounts < 2 {
        return Err(Failed::Parameters("at least 1 teller, and 2 accounts to move money between"));
    }
    let account = || handle.spawn(Account(Statement { balance: OPENING, bookings: 0 }));
    let accounts = Arc::new((0..accounts).map(|_| account()).collect::<Result<Vec<_>, _>>()?);
    Ok(Box::new(move || {
        sched::spawn(day(accounts, tellers, transfers)).map_err(|_| Failed::Memory)?;
        Ok(tellers * transfers)
    }))
}
