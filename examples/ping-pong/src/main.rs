//! Two actors return a ball to each other. The ball says to whom it goes back, so neither has to know the other beforehand; and nobody waits:
//! each behaviour sends, and ends. When no ball is in the air the system is out of work, and the main process goes on.
#![cfg_attr(target_os = "none", no_std, no_main)]
#![forbid(unsafe_code)]

use magpie::prelude::*;

magpie::entry!(ping_pong);

const STROKES: u64 = 100_000;

#[derive(Default)]
struct Player {
    strokes: u64,
}

impl Actor for Player {}

struct Ball {
    left: u64,
    back_to: Addr<Player>,
}

struct Strokes;

impl Receive<Ball> for Player {
    type Reply = ();

    fn receive(&mut self, ball: Ball, context: &mut Context<Self>) {
        self.strokes += 1;
        if ball.left > 1 {
            let back = Ball { left: ball.left - 1, back_to: context.address() };
            if ball.back_to.send(back).is_err() {
                // There is no memory, or the other has gone home.
                context.end();
            }
        }
    }
}

impl Receive<Strokes> for Player {
    type Reply = u64;

    fn receive(&mut self, _: Strokes, _: &mut Context<Self>) -> u64 {
        self.strokes
    }
}

async fn ping_pong() -> magpie::Result {
    let executor = Executor::start(&Config::default())?;
    let ping = executor.handle().spawn(Player::default())?;
    let pong = executor.handle().spawn(Player::default())?;
    ping.send(Ball { left: STROKES, back_to: pong })?;
    sched::out_of_work().await;
    text!("ping has struck {} times, pong {}", ping.ask(Strokes).await?, pong.ask(Strokes).await?);
    Ok(())
}
