//! Variance of the public types: which may be used in place of another instance of the same type. Doctests alone.
//!
//! `for<'a> fn(&'a u64)` is a subtype of `fn(&'static u64)`: a function that takes any reference can be used as one
//! that is given lasting references only. Not the other way round, because the second may keep what it is given. So
//! - what hands out an `M` may be widened, to where the lasting kind is expected, and not narrowed;
//! - what accepts an `M` may be narrowed and not widened;
//! - what does both may be neither.
//!
//! What an address may stand for is described at the type: [`Addr`](crate::actor::Addr). Which types may change cores,
//! or be shared among them, is in `tests/types.rs`.
//!
//! The two kinds, and that they do convert where they may:
//!
//! ```
//! type Any = for<'a> fn(&'a u64);
//! type Lasting = fn(&'static u64);
//! use magpie::actor::{Recipient, SendError, Shared};
//! use magpie::sched::JoinHandle;
//! fn joined(it: JoinHandle<Any>) -> JoinHandle<Lasting> { it }
//! fn shared(it: Shared<Any>) -> Shared<Lasting> { it }
//! fn refused(it: SendError<Any>) -> SendError<Lasting> { it }
//! fn recipient(it: Recipient<Lasting>) -> Recipient<Any> { it }
//! ```
//!
//! # What hands out is not narrowed
//!
//! ```compile_fail,E0308
//! use magpie::actor::Answer;
//! fn narrowed(it: Answer<fn(&'static u64)>) -> Answer<for<'a> fn(&'a u64)> { it }
//! ```
//!
//! ```compile_fail,E0308
//! use magpie::sched::JoinHandle;
//! fn narrowed(it: JoinHandle<fn(&'static u64)>) -> JoinHandle<for<'a> fn(&'a u64)> { it }
//! ```
//!
//! ```compile_fail,E0308
//! use magpie::actor::Shared;
//! fn narrowed(it: Shared<fn(&'static u64)>) -> Shared<for<'a> fn(&'a u64)> { it }
//! ```
//!
//! ```compile_fail,E0308
//! use magpie::actor::SendError;
//! fn narrowed(it: SendError<fn(&'static u64)>) -> SendError<for<'a> fn(&'a u64)> { it }
//! ```
//!
//! ```compile_fail,E0308
//! use magpie::actor::NotSpawned;
//! fn narrowed(it: NotSpawned<fn(&'static u64)>) -> NotSpawned<for<'a> fn(&'a u64)> { it }
//! ```
//!
//! # What accepts is not widened
//!
//! ```compile_fail,E0308
//! use magpie::actor::Recipient;
//! fn widened(it: Recipient<for<'a> fn(&'a u64)>) -> Recipient<fn(&'static u64)> { it }
//! ```
//!
//! ```compile_fail,E0308
//! use magpie::actor::Reply;
//! fn widened(it: Reply<for<'a> fn(&'a u64)>) -> Reply<fn(&'static u64)> { it }
//! ```
//!
//! ```compile_fail,E0308
//! use magpie::channel::ProcessAddr;
//! fn widened(it: ProcessAddr<for<'a> fn(&'a u64)>) -> ProcessAddr<fn(&'static u64)> { it }
//! ```
//!
//! # What does both is neither
//!
//! ```compile_fail,E0308
//! use magpie::actor::StaticActor;
//! fn narrowed(it: StaticActor<fn(&'static u64)>) -> StaticActor<for<'a> fn(&'a u64)> { it }
//! ```
//!
//! ```compile_fail,E0308
//! use magpie::actor::StaticActor;
//! fn widened(it: StaticActor<for<'a> fn(&'a u64)>) -> StaticActor<fn(&'static u64)> { it }
//! ```
//!
//! ```compile_fail,E0308
//! use magpie::message::SendAfter;
//! fn narrowed(it: SendAfter<fn(&'static u64)>) -> SendAfter<for<'a> fn(&'a u64)> { it }
//! ```
//!
//! ```compile_fail,E0308
//! use magpie::message::SendAfter;
//! fn widened(it: SendAfter<for<'a> fn(&'a u64)>) -> SendAfter<fn(&'static u64)> { it }
//! ```
//!
//! ```compile_fail,E0308
//! use magpie::channel::ProcessMailbox;
//! fn narrowed(it: ProcessMailbox<fn(&'static u64)>) -> ProcessMailbox<for<'a> fn(&'a u64)> { it }
//! ```
//!
//! ```compile_fail,E0308
//! use magpie::channel::ProcessMailbox;
//! fn widened(it: ProcessMailbox<for<'a> fn(&'a u64)>) -> ProcessMailbox<fn(&'static u64)> { it }
//! ```
