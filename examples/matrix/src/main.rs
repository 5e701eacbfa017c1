//! A product of two matrices. Each actor makes a band of rows of it. The operands are one `Shared` message, which is sent to all without being
//! copied; the bands come back as answers. All are asked before the first answer is awaited, so the bands are made at once.
#![cfg_attr(target_os = "none", no_std, no_main)]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::vec::Vec;
use core::ops::Range;
use magpie::actor::Shared;
use magpie::prelude::*;

magpie::entry!(matrix);

/// Rows and columns.
const SIZE: usize = 96;
const BANDS: usize = 8;

type Matrix = Vec<[u64; SIZE]>;

struct Operands {
    left: Matrix,
    right: Matrix,
}

/// Makes one band.
struct Multiplier;

impl Actor for Multiplier {}

struct Band {
    rows: Range<usize>,
    of: Shared<Operands>,
}

impl Receive<Band> for Multiplier {
    type Reply = Matrix;

    fn receive(&mut self, band: Band, _: &mut Context<Self>) -> Matrix {
        band.rows.map(|row| core::array::from_fn(|column| cell(&band.of, row, column))).collect()
    }
}

fn cell(of: &Operands, row: usize, column: usize) -> u64 {
    (0..SIZE).map(|k| of.left[row][k] * of.right[k][column]).sum()
}

/// A matrix of small numbers.
fn sample(seed: u64) -> Matrix {
    let number = |row: usize, column: usize| (seed + 7 * row as u64 + 3 * column as u64) % 10;
    (0..SIZE).map(|row| core::array::from_fn(|column| number(row, column))).collect()
}

async fn matrix() -> magpie::Result {
    let executor = Executor::start(&Config::default())?;
    let operands = Shared::new(Operands { left: sample(1), right: sample(2) })?;
    let height = SIZE / BANDS;
    let mut answers = Vec::new();
    for first in (0..SIZE).step_by(height) {
        let multiplier = executor.handle().spawn(Multiplier)?;
        answers.push(multiplier.ask(Band { rows: first..first + height, of: operands.clone() }));
    }
    let mut product = Matrix::new();
    for band in answers {
        product.extend(band.await?);
    }
    let wrong = (0..SIZE * SIZE)
        .filter(|at| product[at / SIZE][at % SIZE] != cell(&operands, at / SIZE, at % SIZE))
        .count();
    let trace: u64 = (0..SIZE).map(|at| product[at][at]).sum();
    text!("{SIZE} times {SIZE} in {BANDS} bands: the trace is {trace}, {wrong} cells are wrong");
    Ok(())
}
