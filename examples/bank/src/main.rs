//! A bank: accounts are actors, and tellers move money between them. A teller asks an account for the money, and asks the other to take it when it has
//! been given. A behaviour does not wait: it says what is to be done with the answer, which comes later, like a message. What is on its way
//! is in no account, and no account ever has less than nothing.
#![cfg_attr(target_os = "none", no_std, no_main)]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::vec::Vec;
use magpie::prelude::*;

magpie::entry!(bank);

const ACCOUNTS: usize = 10;
const OPENING: u64 = 1000;
const TELLERS: u64 = 4;
/// Of each teller.
const TRANSFERS: u64 = 500;

struct Account {
    balance: u64,
}

impl Actor for Account {}

struct Deposit(u64);
struct Withdraw(u64);
struct Balance;

/// The account has less than that.
struct NotEnough;

impl Receive<Deposit> for Account {
    type Reply = ();

    fn receive(&mut self, Deposit(amount): Deposit, _: &mut Context<Self>) {
        self.balance += amount;
    }
}

impl Receive<Withdraw> for Account {
    type Reply = Result<(), NotEnough>;

    fn receive(&mut self, Withdraw(amount): Withdraw, _: &mut Context<Self>) -> Self::Reply {
        self.balance = self.balance.checked_sub(amount).ok_or(NotEnough)?;
        Ok(())
    }
}

impl Receive<Balance> for Account {
    type Reply = u64;

    fn receive(&mut self, _: Balance, _: &mut Context<Self>) -> u64 {
        self.balance
    }
}

#[derive(Default)]
struct Teller {
    made: u64,
    refused: u64,
}

impl Actor for Teller {}

struct Transfer {
    from: Addr<Account>,
    to: Addr<Account>,
    amount: u64,
}

struct Report;

impl Receive<Transfer> for Teller {
    type Reply = ();

    fn receive(&mut self, transfer: Transfer, context: &mut Context<Self>) {
        let Transfer { from, to, amount } = transfer;
        let asked = context.ask(from, Withdraw(amount), move |teller, answer, context| match answer {
            Ok(Ok(())) => {
                let asked = context.ask(to, Deposit(amount), |teller, _, _| teller.made += 1);
                if asked.is_err() {
                    context.end();
                }
            }
            _ => teller.refused += 1,
        });
        if asked.is_err() {
            context.end();
        }
    }
}

impl Receive<Report> for Teller {
    /// How many transfers were made, and how many refused.
    type Reply = (u64, u64);

    fn receive(&mut self, _: Report, _: &mut Context<Self>) -> (u64, u64) {
        (self.made, self.refused)
    }
}

async fn bank() -> magpie::Result {
    let executor = Executor::start(&Config::default())?;
    let bank = executor.handle();
    let mut accounts = Vec::new();
    for _ in 0..ACCOUNTS {
        accounts.push(bank.spawn(Account { balance: OPENING })?);
    }
    let mut tellers = Vec::new();
    for number in 0..TELLERS {
        let teller = bank.spawn(Teller::default())?;
        for round in 0..TRANSFERS {
            let [from, to] = [7 * round + number, 3 * round + 5 * number + 1];
            let [from, to] = [from, to].map(|number| accounts[number as usize % ACCOUNTS]);
            teller.send(Transfer { from, to, amount: 1 + round % 300 })?;
        }
        tellers.push(teller);
    }
    sched::out_of_work().await;
    let (mut money, mut done) = (0, 0);
    for account in &accounts {
        money += account.ask(Balance).await?;
    }
    for teller in &tellers {
        let (made, refused) = teller.ask(Report).await?;
        done += made + refused;
    }
    text!("{done} transfers were made or refused; the accounts have {money}, as at the beginning");
    Ok(())
}
