//! What an application cannot reach, or not without `unsafe`: doctests alone.
//!
//! # What is the kernel's own
//!
//! ```compile_fail,E0603
//! magpie::arch::irq::restore(0);
//! ```
//!
//! ```compile_fail,E0603
//! magpie::arch::clock::now();
//! ```
//!
//! ```compile_fail,E0603
//! let _for_ever = core::mem::ManuallyDrop::new(magpie::sync::PreemptGuard::new());
//! ```
//!
//! ```compile_fail,E0603
//! fn link(process: &magpie::sched::ProcessRef) { magpie::queue::Linked::link(&**process); }
//! ```
//!
//! ```compile_fail,E0603
//! magpie::mem::stack::StackBlock::new(0);
//! ```
//!
//! ```compile_fail,E0603
//! magpie::mem::heap::HEAP.usage();
//! ```
//!
//! ```compile_fail,E0603
//! magpie::log::console::enter_panic();
//! ```
//!
//! ```compile_fail,E0603
//! magpie::sched::spawn_resident;
//! ```
//!
//! ```compile_fail,E0603
//! magpie::time::expire;
//! ```
//!
//! ```compile_fail,E0425
//! magpie::sched::prepare;
//! ```
//!
//! ```compile_fail,E0425
//! magpie::sched::end_current;
//! ```
//!
//! ```compile_fail,E0425
//! magpie::sched::on_deadlock;
//! ```
//!
//! ```compile_fail,E0624
//! magpie::stats::core(magpie::arch::CoreId::BOOT).crashes.bump();
//! ```
//!
//! # What nobody has outside the kernel, though the type is there
//!
//! ```compile_fail,E0624
//! magpie::internals::mem::stack::StackBlock::new(0).set_process(core::ptr::null_mut());
//! ```
//!
//! ```compile_fail,E0624
//! magpie::internals::mem::stack::StackBlock::new(0).set_frame(core::ptr::null_mut());
//! ```
//!
//! ```compile_fail,E0624
//! magpie::internals::mem::stack::StackBlock::new(0).preempt().reset(1);
//! ```
//!
//! # What boot has, with contracts
//!
//! ```compile_fail,E0133
//! magpie::internals::arch::irq::disable();
//! ```
//!
//! ```compile_fail,E0133
//! magpie::internals::sched::end_current(magpie::internals::sched::Cause::Panic);
//! ```
//!
//! ```compile_fail,E0133
//! magpie::internals::sched::enter(magpie::arch::CoreId::BOOT);
//! ```
//!
//! ```compile_fail,E0133
//! use magpie::internals::arch::{handlers::Fault, switch::Frame};
//! unsafe fn fault(_: &Fault, _: *mut Frame) {}
//! magpie::internals::sched::prepare(1, 1, |_| {}, fault, || loop {});
//! ```
//!
//! ```compile_fail,E0133
//! fn link(process: &magpie::sched::ProcessRef) { magpie::internals::queue::Linked::link(&**process); }
//! ```
