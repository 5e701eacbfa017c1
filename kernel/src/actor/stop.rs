//! Messages that every actor understands: they end it, in one of the three ways. The names are C∀'s.

use super::behaviour::{Actor, Context, Receive};
use super::storage::Outcome;

/// Ends the actor with [`Outcome::Delete`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Delete;

/// Ends the actor with [`Outcome::Destroy`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Destroy;

/// Ends the actor with [`Outcome::Finished`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Finish;

impl<A: Actor> Receive<Delete> for A {
    fn receive(&mut self, _: Delete, _: &mut Context<Self>) -> Outcome {
        Outcome::Delete
    }
}

impl<A: Actor> Receive<Destroy> for A {
    fn receive(&mut self, _: Destroy, _: &mut Context<Self>) -> Outcome {
        Outcome::Destroy
    }
}

impl<A: Actor> Receive<Finish> for A {
    fn receive(&mut self, _: Finish, _: &mut Context<Self>) -> Outcome {
        Outcome::Finished
    }
}
