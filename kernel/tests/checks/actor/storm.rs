//! Mailboxes change hands all the time, stolen or as guests: exactly once, in order, one core at a time, and the table
//! stays whole.
//!
//! Tokens hop between actors, one in every mailbox. Each hop prefers a mailbox that one certain worker owns at that
//! moment, another worker every few hops: so one worker has all the mail, the others have none, and each mailbox that is
//! stolen sends its tokens back there.

use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

use super::{Verdict, count, counter, ensure, equal, failed, start_with_thieves};
use crate::actor::mail::directory;
use crate::actor::{Actor, Addr, Context, MailboxVictim, Receive};
use crate::arch::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::sched::{self, Setting};
use crate::{machine, stats};

/// Hops after which the tokens gather at another worker.
const GATHERING: u32 = 64;
/// A short-lived actor is started each time a token has gone so far.
const LIVES: u32 = 50;
/// Messages between two looks at the table.
const ROUND: u64 = 25_000;

/// What all players know.
struct Game {
    players: Vec<Addr<Player>>,
    wrong: &'static AtomicU64,
    handled: &'static AtomicU64,
    begun: &'static AtomicU64,
    ended: &'static AtomicU64,
}

impl Game {
    /// A player whose mailbox is that worker's now, or any if none is found soon.
    fn player_of(&self, worker: usize, random: &mut u64) -> usize {
        let mut number = 0;
        for _ in 0..16 {
            *random = random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            number = (*random >> 33) as usize % self.players.len();
            let mailbox = directory::get(self.players[number].mailbox());
            if usize::from(mailbox.owner_after_first_message().worker) == worker {
                break;
            }
        }
        number
    }
}

struct Token {
    sender: usize,
    number: u32,
    left: u32,
}

struct Player {
    game: Option<Arc<Game>>,
    me: usize,
    /// The next number from each player, and to each.
    from: Vec<u32>,
    to: Vec<u32>,
    random: u64,
    inside: Arc<AtomicBool>,
}

impl Actor for Player {}

/// The game begins.
struct Join(Arc<Game>);

impl Receive<Join> for Player {
    type Reply = ();

    fn receive(&mut self, join: Join, _: &mut Context<Self>) {
        self.game = Some(join.0);
    }
}

/// A token begins, with so many hops before it.
struct Begin(u32);

impl Receive<Begin> for Player {
    type Reply = ();

    fn receive(&mut self, begin: Begin, context: &mut Context<Self>) {
        self.pass_on(begin.0, context);
    }
}

impl Receive<Token> for Player {
    type Reply = ();

    fn receive(&mut self, token: Token, context: &mut Context<Self>) {
        let Some(game) = self.game.clone() else { return context.end() };
        let is_alone = !self.inside.swap(true, Ordering::Relaxed);
        if !is_alone || self.from[token.sender] != token.number {
            game.wrong.fetch_add(1, Ordering::Relaxed);
        }
        self.from[token.sender] = token.number + 1;
        game.handled.fetch_add(1, Ordering::Relaxed);
        self.pass_on(token.left, context);
        self.inside.store(false, Ordering::Relaxed);
    }
}

impl Player {
    fn pass_on(&mut self, left: u32, context: &mut Context<Self>) {
        let Some(game) = self.game.clone().filter(|_| left > 0) else { return };
        let left = left - 1;
        let worker = (left / GATHERING) as usize % machine::cores();
        let target = game.player_of(worker, &mut self.random);
        let number = self.to[target];
        self.to[target] += 1;
        if game.players[target].send(Token { sender: self.me, number, left }).is_err() {
            game.wrong.fetch_add(1, Ordering::Relaxed);
        }
        if left.is_multiple_of(LIVES) {
            live(&game, context);
        }
    }
}

/// Lives for three messages.
struct Mortal {
    next: u8,
    wrong: &'static AtomicU64,
    ended: &'static AtomicU64,
}

impl Actor for Mortal {}

impl Receive<u8> for Mortal {
    type Reply = ();

    fn receive(&mut self, number: u8, context: &mut Context<Self>) {
        if number != self.next {
            self.wrong.fetch_add(1, Ordering::Relaxed);
        }
        self.next += 1;
        if number >= 2 {
            context.end();
        }
    }
}

impl Drop for Mortal {
    fn drop(&mut self) {
        self.ended.fetch_add(1, Ordering::Relaxed);
    }
}

fn live(game: &Game, context: &mut Context<Player>) {
    let mortal = Mortal { next: 0, wrong: game.wrong, ended: game.ended };
    let Ok(mortal) = context.spawn(mortal) else { return };
    game.begun.fetch_add(1, Ordering::Relaxed);
    let sent = mortal.send(0).and_then(|mortal| mortal.send(1)).and_then(|mortal| mortal.send(2));
    if sent.is_err() {
        game.wrong.fetch_add(1, Ordering::Relaxed);
    }
}

/// For every rule of choosing a victim so many messages, or more until a mailbox was stolen for every thousand of these. It is
/// more like one for every 2 to 40.
pub(super) async fn nothing_is_lost_under_constant_stealing(work: u64) -> Verdict {
    let rules = MailboxVictim::ALL.into_iter().filter(|rule| *rule != MailboxVictim::None);
    for rule in rules {
        // Whatever waits may leave at once.
        let stolen = || stats::worker_total(|worker| worker.mailboxes_stolen.get());
        let played = play_with(&[(Setting::ShareBacklog, 0)], rule, work, stolen).await;
        played.map_err(|error| alloc::format!("{rule:?}: {error}"))?;
    }
    Ok(())
}

/// As many messages while mail stays with its sender, and so in other workers' hands, unless it waits: not at all, for a
/// few microseconds, and as long as by default.
pub(super) async fn nothing_is_lost_while_guests_come_and_go(work: u64) -> Verdict {
    for microseconds in [1, 20, 400] {
        let guests = || stats::worker_total(|worker| worker.guests.get());
        let changes = [(Setting::ShareWaitMicroseconds, microseconds)];
        let played = play_with(&changes, MailboxVictim::LongestVictim, work, guests).await;
        played.map_err(|error| alloc::format!("{microseconds} us: {error}"))?;
    }
    Ok(())
}

/// Plays with other settings, until `moved` counts a mailbox for every thousand of so many messages at least.
async fn play_with(
    changes: &[(Setting, u64)],
    rule: MailboxVictim,
    work: u64,
    moved: fn() -> u64,
) -> Verdict {
    let before: Vec<_> = changes.iter().map(|(setting, _)| (*setting, sched::setting(*setting))).collect();
    for (setting, value) in changes {
        sched::set_setting(*setting, *value).map_err(|error| alloc::format!("{setting:?}: {error:?}"))?;
    }
    let played = play(rule, work, moved).await;
    for (setting, value) in before {
        // It had this value before, so it is in range.
        let _ = sched::set_setting(setting, value);
    }
    played
}

async fn play(rule: MailboxVictim, work: u64, moved: fn() -> u64) -> Verdict {
    let executor = start_with_thieves(rule).map_err(failed)?;
    let handle = executor.handle();
    let (wrong, handled) = (counter(), counter());
    let (begun, ended) = (counter(), counter());
    let count_players = handle.mailboxes();
    let mut players = Vec::new();
    for me in 0..count_players {
        let inside = Arc::new(AtomicBool::new(false));
        let (from, to) = (vec![0; count_players], vec![0; count_players]);
        let player = Player { game: None, me, from, to, random: me as u64 + 1, inside };
        players.push(handle.spawn(player).map_err(failed)?);
    }
    let game = Arc::new(Game { players, wrong, handled, begun, ended });
    for player in &game.players {
        player.send(Join(game.clone())).map_err(failed)?;
    }
    let tokens = 4 * handle.workers() as u64;
    let hops = (ROUND.min(work) / tokens).max(1) as u32;
    let (before, mut expected) = (moved(), 0);
    let is_telling = handle.workers() > 1 && work >= ROUND;
    let least_moves = if is_telling { work / 1000 } else { 0 };
    while expected < work || moved() - before < least_moves {
        for token in 0..tokens as usize {
            game.players[token % count_players].send(Begin(hops)).map_err(failed)?;
        }
        expected += tokens * u64::from(hops);
        sched::out_of_work().await;
        equal(count(handled), expected, "messages handled")?;
        equal(count(wrong), 0, "messages out of order, or handled by two cores at once")?;
        equal(count(ended), count(begun), "short-lived actors that ended, of those that began")?;
        ensure!(handle.table_is_whole(), "the table does not hold each mailbox once");
    }
    equal(executor.stop().await, 0, "messages left over")
}
