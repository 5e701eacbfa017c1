//! N-queens: in how many ways so many queens can stand on a board without threatening each other. A master hands
//! boards to its workers in turn; a worker puts a queen on the next row in every possible way and sends these boards
//! back to the master, or, below a certain row, searches to the end itself.
//!
//! One operation is one board handed to a worker. The number of solutions must be the known one.
//!
//! Parameters: workers, size of the board, row from which a worker searches alone.

use alloc::boxed::Box;
use alloc::vec::Vec;
use magpie::actor::{Actor, Addr, Context, ExecutorHandle, Receive};

use crate::failed::Failed;
use crate::figures::Go;
use crate::{stopwatch, verdict};

/// By the size of the board, from 1.
const SOLUTIONS: [u64; 12] = [1, 0, 0, 2, 10, 4, 40, 92, 352, 724, 2680, 14_200];

/// Queens on the first rows of a board.
#[derive(Clone, Copy)]
struct Board {
    size: u8,
    rows: u8,
    columns: [u8; SOLUTIONS.len()],
}

impl Board {
    fn is_full(&self) -> bool {
        self.rows == self.size
    }

    /// The boards with one queen more.
    fn successors(self) -> impl Iterator<Item = Self> {
        (0..self.size).filter(move |&column| self.is_safe(column)).map(move |column| {
            let mut next = self;
            next.columns[usize::from(self.rows)] = column;
            next.rows += 1;
            next
        })
    }

    fn is_safe(&self, column: u8) -> bool {
        let placed = self.columns.iter().zip(0..self.rows);
        placed.into_iter().all(|(&other, row)| {
            let distance = self.rows - row;
            other != column && other.abs_diff(column) != distance
        })
    }

    /// Calls `found` for each solution that begins like this.
    fn search(self, found: &mut impl FnMut()) {
        if self.is_full() {
            return found();
        }
        self.successors().for_each(|board| board.search(found));
    }

    /// How many boards there are to hand out, this one among them.
    fn tasks(self, threshold: u8) -> u64 {
        let further = !self.is_full() && self.rows < threshold;
        1 + if further { self.successors().map(|board| board.tasks(threshold)).sum() } else { 0 }
    }
}

/// A board to go on with.
struct Task(Board);
struct Solution;
/// A worker has done a task.
struct Done;
/// The workers, when they are known.
struct Begin {
    workers: Vec<Addr<Worker>>,
    board: Board,
}

struct Master {
    workers: Vec<Addr<Worker>>,
    next: usize,
    outstanding: u64,
    solutions: u64,
    expected: u64,
}

impl Actor for Master {}

impl Master {
    fn hand_out(&mut self, board: Board) {
        let _ = self.workers[self.next].send(Task(board));
        self.next = (self.next + 1) % self.workers.len();
        self.outstanding += 1;
    }
}

impl Receive<Begin> for Master {
    type Reply = ();

    fn receive(&mut self, Begin { workers, board }: Begin, _: &mut Context<Self>) {
        self.workers = workers;
        self.hand_out(board);
    }
}

impl Receive<Task> for Master {
    type Reply = ();

    fn receive(&mut self, Task(board): Task, _: &mut Context<Self>) {
        self.hand_out(board);
    }
}

impl Receive<Solution> for Master {
    type Reply = ();

    fn receive(&mut self, _: Solution, _: &mut Context<Self>) {
        self.solutions += 1;
    }
}

impl Receive<Done> for Master {
    type Reply = ();

    fn receive(&mut self, _: Done, context: &mut Context<Self>) {
        // What came of a task has arrived before this, for it is of the same sender.
        self.outstanding -= 1;
        if self.outstanding > 0 {
            return;
        }
        stopwatch::done();
        verdict::expect_equal("solutions", self.solutions, self.expected);
        context.end();
    }
}

struct Worker {
    master: Addr<Master>,
    threshold: u8,
}

impl Actor for Worker {}

impl Receive<Task> for Worker {
    type Reply = ();

    fn receive(&mut self, Task(board): Task, _: &mut Context<Self>) {
        if board.is_full() || board.rows >= self.threshold {
            board.search(&mut || {
                let _ = self.master.send(Solution);
            });
        } else {
            for board in board.successors() {
                let _ = self.master.send(Task(board));
            }
        }
        let _ = self.master.send(Done);
    }
}

pub fn prepare(handle: &ExecutorHandle, parameters: &[u64]) -> Result<Go, Failed> {
    let (count, size, threshold) = (parameters[0], parameters[1] as usize, parameters[2].min(16) as u8);
    if count == 0 || size == 0 || size > SOLUTIONS.len() {
        return Err(Failed::Parameters("at least 1 worker, and a board of size 1 to 12"));
    }
    let board = Board { size: size as u8, rows: 0, columns: [0; SOLUTIONS.len()] };
    let expected = SOLUTIONS[size - 1];
    let master =
        handle.spawn(Master { workers: Vec::new(), next: 0, outstanding: 0, solutions: 0, expected })?;
    let mut workers = Vec::new();
    for _ in 0..count {
        workers.push(handle.spawn(Worker { master, threshold })?);
    }
    let tasks = board.tasks(threshold);
    Ok(Box::new(move || {
        stopwatch::begin(1);
        master.send(Begin { workers, board }).map_err(|_| Failed::Memory)?;
        Ok(tasks)
    }))
}
