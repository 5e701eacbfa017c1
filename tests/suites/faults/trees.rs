//! Trees of supervisors whose leaves end in all ways, one after another. After each the supervisors are asked what they know, and how often each
//! leaf was started is counted: both must come to be what the model says.

use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;

use magpie::actor::{Actor, Addr, Context, ExecutorHandle, Hook, Receive};
use magpie::channel::{ProcessAddr, ProcessMailbox};
use magpie::internals::Random;
use magpie::registry;
use magpie::sched::{self, ProcessRef};
use magpie::supervise::{Backoff, Child, Shutdown, Supervisor, SupervisorRef};
use magpie::time;
use magpie_tests::{Failure, HANGS_AFTER, Outcome, ensure, ensure_eq, first};

use crate::model::{Group, Known, Model, What};
use crate::moments::{Moment, Ties, linger, spin};
use crate::until;
use crate::victims::Scene;
use crate::watchers::Watchers;
use crate::ways::{FAILED, GONE, NORMAL, Way};

/// So long that nobody gets there.
const HOUR: Duration = Duration::from_secs(3600);

/// How a leaf is to end.
#[derive(Clone)]
struct Order(Ties);

/// What all lives of a leaf have in common.
struct Leaf {
    name: String,
    watchers: Watchers,
    /// Seeds what is random in its lives.
    seed: u64,
    lives: AtomicU64,
    /// The number of the watch of its life.
    watch: AtomicU64,
}

impl Leaf {
    /// A life has begun, and can be found. That is the last thing that it does before it waits.
    fn begin(&self, watch: u64) {
        self.watch.store(watch, Ordering::Relaxed);
        // Release: who counts this life finds what it has written.
        self.lives.fetch_add(1, Ordering::Release);
    }

    fn random(&self) -> Random {
        Random::new(self.seed, self.lives.load(Ordering::Relaxed) as usize)
    }

    fn lived(&self) -> u64 {
        self.lives.load(Ordering::Acquire)
    }
}

/// A process as a leaf.
async fn live(leaf: Arc<Leaf>, mut shutdown: Shutdown) -> Outcome {
    let mut orders = ProcessMailbox::<Order>::new(4)?;
    registry::register(&leaf.name, orders.address())?;
    let me = sched::current_process().ok_or("it is no process")?;
    let watch = leaf.watchers.watch_for_now(&leaf.random(), &me)?;
    leaf.begin(watch);
    match first(orders.receive(), shutdown.requested()).await {
        Ok(Some(Order(ties))) => match ties.way {
            Way::Error => Err("as it was told".into()),
            Way::Return => Ok(()),
            Way::Kill => {
                killed_soon(me)?;
                ties.life().await;
                Ok(())
            }
            _ => {
                ties.life().await;
                Ok(())
            }
        },
        Ok(None) => Err("nobody can give it orders".into()),
        Err(()) => {
            leaf.watchers.ledger.expect(watch, NORMAL);
            Ok(())
        }
    }
}

fn killed_soon(who: ProcessRef) -> Outcome {
    sched::spawn(async move {
        time::sleep(Duration::from_micros(100)).await;
        who.kill();
    })?;
    Ok(())
}

/// An actor as a leaf.
struct Clerk {
    leaf: Arc<Leaf>,
    watch: Option<u64>,
}

impl Actor for Clerk {
    fn started() -> Option<Hook<Self>> {
        Some(|clerk, context| {
            // Who does not get that is not found, and the test says so.
            let _ = registry::register(&clerk.leaf.name, context.address());
            let watch = clerk.leaf.watchers.watch_for_now(&clerk.leaf.random(), &context.address());
            if let Ok(watch) = watch {
                clerk.watch = Some(watch);
                clerk.leaf.begin(watch);
            }
        })
    }

    fn stopped() -> Option<Hook<Self>> {
        Some(|clerk, _| {
            if let Some(watch) = clerk.watch {
                clerk.leaf.watchers.ledger.expect(watch, NORMAL);
            }
        })
    }
}

impl Receive<Order> for Clerk {
    type Reply = ();

    fn receive(&mut self, Order(ties): Order, context: &mut Context<Self>) {
        match ties.way {
            Way::Return => context.end(),
            Way::Kill => {
                let me = context.address();
                let killer = sched::spawn(async move {
                    time::sleep(Duration::from_micros(100)).await;
                    while me.kill().is_err() {
                        sched::yield_now().await;
                    }
                });
                match (killer, ties.moment == Moment::Suspended) {
                    (Ok(_), true) => spin(),
                    (Ok(_), false) => {}
                    (Err(_), _) => linger(),
                }
            }
            _ => _ = ties.crash(),
        }
    }
}

/// A leaf is a process or an actor.
fn is_process(leaf: usize) -> bool {
    leaf % 3 != 2
}

/// A supervisor as the model has it.
fn supervisor(group: &Group, leaves: &[Arc<Leaf>], handle: &ExecutorHandle) -> Supervisor {
    let supervisor = Supervisor::new(group.strategy).restarts(group.most, HOUR).backoff(Backoff::NONE);
    group.members.iter().fold(supervisor.named(group.name), |supervisor, member| {
        let child = match &member.what {
            What::Leaf(number) => {
                let leaf = leaves[*number].clone();
                if is_process(*number) {
                    Child::process(member.name, move |shutdown| live(leaf.clone(), shutdown))
                } else {
                    Child::actor(member.name, handle, move || Clerk { leaf: leaf.clone(), watch: None })
                }
            }
            What::Group(group) => Child::supervisor(member.name, self::supervisor(group, leaves, handle)),
        };
        supervisor.child(child.restart(member.restart).within(HOUR))
    })
}

/// Whether a supervisor and those below it know what the model does.
async fn is_as(group: &Group) -> Result<bool, Failure> {
    let Ok(supervisor) = registry::find::<SupervisorRef>(group.name) else { return Ok(false) };
    let Ok(children) = supervisor.children().await else { return Ok(false) };
    let known =
        children.iter().map(|child| Known { name: child.name, runs: child.runs, restarts: child.restarts });
    Ok(known.eq(group.known()))
}

/// A tree that runs, and its model.
struct Tree {
    model: Model,
    leaves: Vec<Arc<Leaf>>,
}

impl Tree {
    fn lived_as_predicted(&self) -> bool {
        self.leaves.iter().zip(&self.model.lives).all(|(leaf, lives)| leaf.lived() == *lives)
    }

    /// Waits until all is as the model says.
    async fn settles(&self) -> Outcome {
        let settled = async {
            loop {
                let mut is_right = self.lived_as_predicted() && is_as(&self.model.root).await?;
                for group in self.model.root.groups() {
                    is_right = is_right && is_as(group).await?;
                }
                // Again: it may have gone on meanwhile.
                if is_right && self.lived_as_predicted() {
                    return Ok::<(), Failure>(());
                }
                sched::yield_now().await;
            }
        };
        match time::background_timeout(HANGS_AFTER, settled).await {
            Ok(outcome) => outcome,
            Err(_) => Err(self.otherwise().await),
        }
    }

    async fn otherwise(&self) -> Failure {
        let lived: Vec<u64> = self.leaves.iter().map(|leaf| leaf.lived()).collect();
        let known = match registry::find::<SupervisorRef>(self.model.root.name) {
            Ok(root) => format!("{:?}", root.children().await),
            Err(error) => format!("{error}"),
        };
        let Model { root, lives, .. } = &self.model;
        Failure(format!("predicted are {lives:?} lives of {root:?}; there were {lived:?}, and {known}"))
    }

    /// Orders a leaf that runs to end so.
    fn order(&self, leaf: usize, ties: Ties) -> Outcome {
        let Leaf { name, watchers, watch, .. } = &*self.leaves[leaf];
        let watch = watch.load(Ordering::Relaxed);
        watchers.ledger.expect(watch, ties.way.exits());
        watchers.ledger.describe(watch, ties.described(if is_process(leaf) { 4 } else { 5 }));
        if is_process(leaf) {
            let address: ProcessAddr<Order> = registry::find(name)?;
            address.send(Order(ties)).map_err(|error| error.without_message())?;
        } else {
            let address: Addr<Clerk> = registry::find(name)?;
            address.send(Order(ties)).map_err(|error| error.without_message())?;
        }
        Ok(())
    }
}

/// One tree, until it gives up or some leaves have ended. Returns how many have, and whether it gave up.
pub async fn one(
    scene: &Scene,
    random: &mut Random,
    names: &[&'static str; 4],
) -> Result<(u64, bool), Failure> {
    let model = Model::any(random, names);
    let mut leaves = Vec::new();
    for number in 0..model.lives.len() {
        leaves.push(Arc::new(Leaf {
            name: format!("{} leaf {number}", names[0]),
            watchers: scene.watchers.clone(),
            seed: random.bits(),
            lives: AtomicU64::new(0),
            watch: AtomicU64::new(0),
        }));
    }
    let root = supervisor(&model.root, &leaves, &scene.handle).start()?;
    let mut tree = Tree { model, leaves };
    let watch = scene.watchers.watch_for_now(random, root.process())?;
    let most = 4 + random.below(12) as u64;
    let mut ended = 0;
    while !tree.model.gave_up && ended < most {
        tree.settles().await?;
        let running = tree.model.running();
        let Some(leaf) = running.get(random.below(running.len().max(1))) else { break };
        let mut way = Way::of_child(random);
        if way == Way::Error && !is_process(*leaf) {
            // An actor returns nothing.
            way = Way::Panic;
        }
        tree.model.ended(*leaf, way.is_failure());
        tree.order(*leaf, Ties::any(way, scene.sinks, random))?;
        ended += 1;
    }
    if tree.model.gave_up {
        scene.watchers.ledger.expect(watch, FAILED | GONE);
        until("a supervisor gives up", || root.process().is_done()).await?;
        ensure!(root.process().has_failed(), "a supervisor that gives up has not failed");
    } else {
        tree.settles().await?;
        scene.watchers.ledger.expect(watch, NORMAL | GONE);
        root.stop().await?;
    }
    // Nothing of it is left, nor begins again.
    let is_gone = || !registry::names().any(|name| name.starts_with(names[0]));
    until("the names of a tree are gone", is_gone).await?;
    let lived: Vec<u64> = tree.leaves.iter().map(|leaf| leaf.lived()).collect();
    ensure_eq!(lived, tree.model.lives, "lives of the leaves, by the model");
    Ok((ended, tree.model.gave_up))
}
