//! The process of a supervisor: it does what the machine says, and tells it what has happened.

use alloc::vec::Vec;
use core::future::{Future, poll_fn};
use core::pin::Pin;
use core::sync::atomic::{AtomicU64, Ordering};
use core::task::Poll;
use core::time::Duration;

use super::blueprint::Plan;
use super::child::Child;
use super::control::Control;
use super::ends::EndsHere;
use super::handle::{Answer, ChildId, ChildState, Command, Commands, MOST_COMMANDS, NotTaken, SupervisorRef};
use super::policy::{Machine, Outcome, Step};
use super::print;
use super::shutdown::Shutdown;
use super::supervisor::{StartError, Supervisor};
use crate::channel::{ProcessMailbox, Reply, Request};
use crate::log::text;
use crate::mem::OutOfMemory;
use crate::message::Shared;
use crate::registry;
use crate::sched::{self, ProcessRef, Spawn};
use crate::time::{self, Instant};
use crate::watch::{Exit, Watch};

/// The number of the last child of all supervisors.
static LAST_CHILD: AtomicU64 = AtomicU64::new(0);

fn next_number() -> u64 {
    // Relaxed: it counts, and orders nothing.
    LAST_CHILD.fetch_add(1, Ordering::Relaxed) + 1
}

/// It has given up, or could not begin.
pub(super) struct Failed;

impl From<OutOfMemory> for Failed {
    fn from(OutOfMemory: OutOfMemory) -> Self {
        Self
    }
}

type Mailbox = ProcessMailbox<Request<Command, Answer>>;

/// Where the way to start a child is kept.
enum Source {
    /// With the supervisor's declaration, at that position.
    Declared(usize),
    Added(Plan),
}

/// What is kept of a child.
struct Kept {
    source: Source,
    name: &'static str,
    how: Spawn,
    control: Shared<Control>,
    /// What ends it with the supervisor.
    link: Watch,
    /// How often it was started.
    life: u64,
    /// While it lives.
    lives: Option<ProcessRef>,
    /// Who waits for its end.
    awaited: Option<Reply<Answer>>,
}

impl Kept {
    fn new(
        source: Source,
        name: &'static str,
        how: Spawn,
        (control, link): (Shared<Control>, Watch),
    ) -> Self {
        Self { source, name, how, control, link, life: 0, lives: None, awaited: None }
    }

    fn forget(self) {
        self.link.cancel();
        if let Some(reply) = self.awaited {
            // Whoever has given up waiting gets nothing.
            let _ = reply.send(Answer::Terminated(true));
        }
    }
}

/// What a supervisor waits for.
enum Event {
    Ended(Shared<Control>, Exit),
    Command(Request<Command, Answer>),
    Shutdown,
    /// A moment has come.
    Due,
}

struct Running<'a> {
    declared: &'a Supervisor,
    machine: Machine<Kept>,
    own: ProcessRef,
    ends: EndsHere,
    commands: &'a mut Mailbox,
    shutdown: Option<Shutdown>,
    /// Read once for each event, because the steps that follow one take no time.
    now: Instant,
    /// Who waits for the end of all.
    stoppers: Vec<Reply<Answer>>,
}

/// Starts the process of one that is nobody's child.
pub(super) fn root(supervisor: Supervisor) -> Result<SupervisorRef, StartError> {
    if supervisor.is_incomplete {
        return Err(StartError::OutOfMemory);
    }
    let how = supervisor.how;
    let mut mailbox = Mailbox::new(MOST_COMMANDS)?;
    let commands = mailbox.address();
    let own = commands.clone();
    let machine = machine_of(&supervisor)?;
    let body = async move {
        let mut supervisor = supervisor;
        supervisor.children.iter_mut().filter_map(|child| child.plan.as_mut()).for_each(Plan::hand_over);
        let has_failed = run(&supervisor, machine, None, &mut mailbox, own).await.is_err();
        // Who asks, and who has asked already, is told at once.
        drop(mailbox);
        if has_failed && let Some(own) = sched::current_process() {
            own.note_failed();
        }
    };
    // Who asks while it is killed before its first turn, or in that, is told as at any other moment.
    let owned = |process: &ProcessRef| commands.set_owner(process);
    let process = how.start_alone_after(body, owned).map_err(StartError::Process)?;
    Ok(SupervisorRef { commands, process })
}

/// One that is a child.
pub(super) async fn nested(supervisor: Shared<Supervisor>, shutdown: Shutdown) -> Result<(), Failed> {
    let mut mailbox = Mailbox::new(MOST_COMMANDS)?;
    let commands = mailbox.address();
    if let Some(name) = supervisor.name {
        let process = sched::current_process().ok_or(Failed)?;
        // Before anybody can ask: see `root`.
        commands.set_owner(&process);
        let own = SupervisorRef { commands: commands.clone(), process };
        registry::register(name, own).map_err(|_| Failed)?;
    }
    let machine = machine_of(&supervisor)?;
    run(&supervisor, machine, Some(shutdown), &mut mailbox, commands).await
}

fn machine_of(supervisor: &Supervisor) -> Result<Machine<Kept>, OutOfMemory> {
    Machine::new(supervisor.rules, Instant::now().ticks())
}

/// `own` keeps the mailbox open.
async fn run(
    declared: &Supervisor,
    machine: Machine<Kept>,
    shutdown: Option<Shutdown>,
    commands: &mut Mailbox,
    own: Commands,
) -> Result<(), Failed> {
    let result = match Running::new(declared, machine, shutdown, commands) {
        Ok(running) => running.run().await,
        Err(failed) => Err(failed),
    };
    drop(own);
    result
}

/// A child has ended.
fn note_end(machine: &mut Machine<Kept>, now: Instant, control: &Shared<Control>, exit: Exit) {
    let is_it = |kept: &Kept| kept.control.pointer() == control.pointer();
    let Some(position) = machine.position(is_it) else { return };
    let process = machine.child(position).and_then(|kept| kept.lives.take());
    let has_failed = match exit {
        // It has ended before it was watched.
        Exit::Gone => process.is_none_or(|process| process.has_crashed() || process.has_failed()),
        exit => exit.is_failure(),
    };
    machine.ended(position, has_failed, now);
}

impl<'a> Running<'a> {
    fn new(
        declared: &'a Supervisor,
        machine: Machine<Kept>,
        shutdown: Option<Shutdown>,
        commands: &'a mut Mailbox,
    ) -> Result<Self, Failed> {
        print::note_used();
        let now = Instant::now();
        let own = sched::current_process().ok_or(Failed)?;
        let mut running = Self {
            declared,
            machine,
            ends: EndsHere::new(own.clone(), declared.name)?,
            own,
            commands,
            shutdown,
            now,
            stoppers: Vec::new(),
        };
        for (index, child) in declared.children.iter().enumerate() {
            let number = next_number();
            let control = Control::new(&running.ends, &running.own, (number, child.name))?;
            let kept = Kept::new(Source::Declared(index), child.name, child.how, control);
            running.add(number, kept, child.restart_and_limit(), false).ok_or(Failed)?;
        }
        Ok(running)
    }

    async fn run(mut self) -> Result<(), Failed> {
        let outcome = loop {
            match self.machine.next(self.now) {
                Step::Start(position) => {
                    self.start(position);
                    // A start that fails may be followed by another at once.
                    sched::charge(10);
                    if sched::is_exhausted() {
                        sched::yield_now().await;
                        self.now = Instant::now();
                    }
                }
                Step::Ask(position) => {
                    if let Some(kept) = self.machine.child(position) {
                        kept.control.ask(kept.life);
                    }
                }
                Step::Kill(position) => {
                    if let Some(kept) = self.machine.child(position)
                        && !kept.control.kill(kept.life)
                        && let Some(process) = &kept.lives
                    {
                        process.kill();
                    }
                }
                Step::Forget(_, kept) => kept.forget(),
                Step::Wait(until) => {
                    let event = self.wait(until).await;
                    self.now = Instant::now();
                    self.handle(event);
                }
                Step::End(outcome) => break outcome,
            }
        };
        let Self { declared, machine, stoppers, .. } = self;
        let culprit = match outcome {
            Outcome::Stopped => None,
            Outcome::GaveUp(number) => {
                machine.known().find(|(_, known)| known.number == number).map(|(kept, _)| kept.name)
            }
        };
        machine.into_children().for_each(Kept::forget);
        let Outcome::GaveUp(_) = outcome else {
            for reply in stoppers {
                // Whoever has given up waiting gets nothing.
                let _ = reply.send(Answer::Stopped);
            }
            return Ok(());
        };
        let (name, culprit) =
            (declared.name.unwrap_or("without a name"), culprit.unwrap_or("that was forgotten"));
        text!(
            "supervisor {name} gives up: more than {} restarts, the last for child {culprit}",
            declared.rules.most
        );
        Err(Failed)
    }

    /// One more child; forgotten at once if there is no memory for it, or the supervisor ends.
    fn add(
        &mut self,
        number: u64,
        kept: Kept,
        rules: (super::Restart, Duration),
        is_added: bool,
    ) -> Option<ChildId> {
        match self.machine.add(number, kept, rules, is_added, self.now) {
            Ok(()) => Some(ChildId(number)),
            Err(kept) => {
                kept.forget();
                None
            }
        }
    }

    fn start(&mut self, position: usize) {
        let Some(kept) = self.machine.child(position) else { return };
        kept.life += 1;
        kept.control.note_life(kept.life);
        let shutdown = Shutdown::new(kept.control.clone(), kept.life);
        let plan = match &kept.source {
            Source::Added(plan) => Some(plan),
            Source::Declared(index) => {
                self.declared.children.get(*index).and_then(|child| child.plan.as_ref())
            }
        };
        let started = plan.and_then(|plan| plan.start(shutdown, kept.how).ok());
        let watched = started.filter(|process| {
            // The watch has its memory already; if it had none, nobody would see the end.
            let is_watched = Control::watch(&kept.control, process).is_ok();
            if !is_watched {
                process.kill();
            }
            is_watched
        });
        let has_failed = watched.is_none();
        kept.lives = watched;
        if has_failed {
            self.machine.ended(position, true, self.now);
        }
    }

    async fn wait(&mut self, until: Option<Instant>) -> Event {
        let Self { ends, commands, shutdown, .. } = self;
        let mut command = commands.receive();
        let mut shutdown = shutdown.as_mut().map(Shutdown::requested);
        let mut due = until.map(time::sleep_until);
        poll_fn(|context| {
            if let Some((control, exit)) = ends.take() {
                return Poll::Ready(Event::Ended(control, exit));
            }
            if let Some(due) = &mut due
                && Pin::new(due).poll(context).is_ready()
            {
                return Poll::Ready(Event::Due);
            }
            if let Some(shutdown) = &mut shutdown
                && Pin::new(shutdown).poll(context).is_ready()
            {
                return Poll::Ready(Event::Shutdown);
            }
            match Pin::new(&mut command).poll(context) {
                Poll::Ready(Some(command)) => Poll::Ready(Event::Command(command)),
                _ => Poll::Pending,
            }
        })
        .await
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Ended(control, exit) => note_end(&mut self.machine, self.now, &control, exit),
            Event::Due => {}
            Event::Command(Request { message, reply }) => self.carry_out(message, reply),
            Event::Shutdown => {
                self.shutdown = None;
                self.machine.end(Outcome::Stopped);
            }
        }
    }

    fn carry_out(&mut self, command: Command, reply: Reply<Answer>) {
        let answer = match command {
            Command::Take(child) => Answer::Taken(self.take(child)),
            Command::Terminate(ChildId(number)) => {
                match self.machine.terminate(number).and_then(|position| self.machine.child(position)) {
                    None => Answer::Terminated(false),
                    Some(kept) => {
                        // Of several who ask the last is told when it has ended, the others now.
                        if let Some(other) = kept.awaited.replace(reply) {
                            let _ = other.send(Answer::Terminated(true));
                        }
                        return;
                    }
                }
            }
            Command::List => {
                let known = self.machine.known();
                let mut list = Vec::new();
                if list.try_reserve_exact(known.len()).is_err() {
                    // The reply is dropped, which says so.
                    return;
                }
                list.extend(known.map(|(kept, known)| ChildState {
                    id: ChildId(known.number),
                    name: kept.name,
                    runs: known.runs,
                    restarts: known.restarts,
                    delay: known.delay,
                }));
                Answer::List(list)
            }
            Command::Stop => {
                self.machine.end(Outcome::Stopped);
                if self.stoppers.try_reserve(1).is_ok() {
                    self.stoppers.push(reply);
                }
                return;
            }
        };
        // Whoever has given up waiting gets nothing.
        let _ = reply.send(answer);
    }

    fn take(&mut self, child: Child) -> Result<ChildId, NotTaken> {
        let (rules, Child { name, how, plan, .. }) = (child.restart_and_limit(), child);
        let plan = plan.ok_or(NotTaken::OutOfMemory)?;
        let number = next_number();
        let control = Control::new(&self.ends, &self.own, (number, name))
            .map_err(|OutOfMemory| NotTaken::OutOfMemory)?;
        let kept = Kept::new(Source::Added(plan), name, how, control);
        let ends = self.machine.ends();
        let refused = if ends { NotTaken::Ends } else { NotTaken::OutOfMemory };
        self.add(number, kept, rules, true).ok_or(refused)
    }
}
