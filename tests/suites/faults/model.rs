//! The model: what a tree of supervisors does after each end of a leaf. It knows sets of children and no steps: how often each leaf has been
//! started, which run, and who gives up. Nothing here asks the kernel.

use alloc::vec::Vec;

use magpie::internals::Random;
use magpie::supervise::{Restart, Strategy};

/// What is known of a child, as its supervisor says it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Known {
    pub name: &'static str,
    pub runs: bool,
    pub restarts: u64,
}

/// What a child is.
#[derive(Clone, Debug)]
pub enum What {
    /// The leaf with that number.
    Leaf(usize),
    Group(Group),
}

#[derive(Clone, Debug)]
pub struct Member {
    pub name: &'static str,
    pub restart: Restart,
    pub what: What,
    runs: bool,
    is_forgotten: bool,
    restarts: u64,
}

/// A supervisor.
#[derive(Clone, Debug)]
pub struct Group {
    /// In the registry.
    pub name: &'static str,
    pub strategy: Strategy,
    /// More restarts in one life are too many.
    pub most: usize,
    used: usize,
    pub members: Vec<Member>,
}

/// A tree, and how often each of its leaves was started.
pub struct Model {
    pub root: Group,
    pub lives: Vec<u64>,
    pub gave_up: bool,
}

const LEAVES: [&str; 16] =
    ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12", "13", "14", "15"];

impl Model {
    /// Any tree, with these names for its supervisors, the root's first.
    pub fn any(random: &Random, names: &[&'static str; 4]) -> Self {
        let mut lives = Vec::new();
        let (root, inner) = (names[0], &names[1..]);
        let mut root = Group::any(random, root);
        let groups = random.below(inner.len() + 1);
        for name in inner.iter().take(groups) {
            let mut group = Group::any(random, name);
            for _ in 0..=random.below(3) {
                group.members.push(Member::leaf(random, &mut lives));
            }
            root.members.push(Member::new(random, name, What::Group(group)));
        }
        for _ in 0..=random.below(4) {
            root.members.push(Member::leaf(random, &mut lives));
        }
        root.start(&mut lives);
        Self { root, lives, gave_up: false }
    }

    /// The leaves that run.
    pub fn running(&self) -> Vec<usize> {
        let mut leaves = Vec::new();
        self.root.for_each_running(&mut |leaf| leaves.push(leaf));
        leaves
    }

    /// A leaf has ended by itself.
    pub fn ended(&mut self, leaf: usize, failed: bool) {
        self.gave_up = self.root.ended(leaf, failed, &mut self.lives) == Some(true);
    }
}

impl Member {
    fn new(random: &Random, name: &'static str, what: What) -> Self {
        let restart = match random.below(5) {
            0..3 => Restart::Permanent,
            3 => Restart::Transient,
            _ => Restart::Temporary,
        };
        Self { name, restart, what, runs: false, is_forgotten: false, restarts: 0 }
    }

    fn leaf(random: &Random, lives: &mut Vec<u64>) -> Self {
        let number = lives.len();
        lives.push(0);
        Self::new(random, LEAVES[number], What::Leaf(number))
    }

    fn start(&mut self, lives: &mut [u64]) {
        self.runs = true;
        match &mut self.what {
            What::Leaf(leaf) => lives[*leaf] += 1,
            What::Group(group) => group.start(lives),
        }
    }

    fn stop(&mut self) {
        self.runs = false;
        if let What::Group(group) = &mut self.what {
            group.members.iter_mut().for_each(Self::stop);
        }
    }
}

impl Group {
    fn any(random: &Random, name: &'static str) -> Self {
        let strategy = [Strategy::OneForOne, Strategy::OneForAll, Strategy::RestForOne][random.below(3)];
        Self { name, strategy, most: random.below(6), used: 0, members: Vec::new() }
    }

    /// A new life: as it was declared.
    fn start(&mut self, lives: &mut [u64]) {
        self.used = 0;
        for member in &mut self.members {
            member.is_forgotten = false;
            member.restarts = 0;
            member.start(lives);
        }
    }

    /// Its children that are known, in order.
    pub fn known(&self) -> impl Iterator<Item = Known> {
        self.members
            .iter()
            .filter(|member| !member.is_forgotten)
            .map(|Member { name, runs, restarts, .. }| Known { name, runs: *runs, restarts: *restarts })
    }

    /// The supervisors among its children that run.
    pub fn groups(&self) -> impl Iterator<Item = &Group> {
        self.members.iter().filter(|member| member.runs).filter_map(|member| match &member.what {
            What::Group(group) => Some(group),
            What::Leaf(_) => None,
        })
    }

    fn for_each_running(&self, tell: &mut impl FnMut(usize)) {
        for member in self.members.iter().filter(|member| member.runs) {
            match &member.what {
                What::Leaf(leaf) => tell(*leaf),
                What::Group(group) => {
                    for member in group.members.iter().filter(|member| member.runs) {
                        if let What::Leaf(leaf) = member.what {
                            tell(leaf);
                        }
                    }
                }
            }
        }
    }

    /// A leaf has ended, which may be one of this group's. Whether it is, and the group gives up.
    fn ended(&mut self, leaf: usize, failed: bool, lives: &mut [u64]) -> Option<bool> {
        let (place, failed) =
            self.members.iter_mut().enumerate().find_map(|(place, member)| match &mut member.what {
                What::Leaf(this) => (*this == leaf).then_some((place, Some(failed))),
                // One that gives up is a child that fails.
                What::Group(group) => {
                    group.ended(leaf, failed, lives).map(|gave_up| (place, gave_up.then_some(true)))
                }
            })?;
        let Some(failed) = failed else { return Some(false) };
        let member = &mut self.members[place];
        member.stop();
        let again = match member.restart {
            Restart::Permanent => true,
            Restart::Transient => failed,
            Restart::Temporary => false,
        };
        if !again {
            member.is_forgotten = member.restart == Restart::Temporary;
            return Some(false);
        }
        if self.used == self.most {
            self.members.iter_mut().for_each(Member::stop);
            return Some(true);
        }
        self.used += 1;
        member.restarts += 1;
        member.start(lives);
        let first = match self.strategy {
            Strategy::OneForOne => self.members.len(),
            Strategy::OneForAll => 0,
            Strategy::RestForOne => place + 1,
        };
        for (other, member) in self.members.iter_mut().enumerate().skip(first) {
            if other == place || member.is_forgotten {
                continue;
            }
            member.stop();
            if member.restart == Restart::Temporary {
                member.is_forgotten = true;
            } else {
                member.start(lives);
            }
        }
        Some(false)
    }
}
