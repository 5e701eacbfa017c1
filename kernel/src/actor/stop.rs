//! Messages that every actor understands: they end it, in one of the three ways in which a behaviour can.
//!
//! Asked, they are answered before the actor has ended.

use super::behaviour::{Actor, Context, Receive};

/// Ends the actor as [`Context::end`] does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct End;

/// Ends the actor as [`Context::vacate`] does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Vacate;

/// Ends the actor as [`Context::retire`] does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Retire;

impl<A: Actor> Receive<End> for A {
    type Reply = ();

    fn receive(&mut self, _: End, context: &mut Context<Self>) {
        context.end();
    }
}

impl<A: Actor> Receive<Vacate> for A {
    type Reply = ();

    fn receive(&mut self, _: Vacate, context: &mut Context<Self>) {
        context.vacate();
    }
}

impl<A: Actor> Receive<Retire> for A {
    type Reply = ();

    fn receive(&mut self, _: Retire, context: &mut Context<Self>) {
        context.retire();
    }
}
