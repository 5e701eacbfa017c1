//! What QEMU offers its plugins, as far as it is needed here (`qemu-plugin.h`).

use std::ffi::{c_int, c_uint, c_void};

/// A plugin, as QEMU knows it.
pub type Id = u64;

/// Code that is being translated.
#[repr(C)]
pub struct Block {
    _opaque: [u8; 0],
}

#[repr(C)]
struct Scoreboard {
    _opaque: [u8; 0],
}

/// A number for each core.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Count {
    score: *mut Scoreboard,
    offset: usize,
}

type OfCore = extern "C" fn(Id, c_uint);
type OfBlock = extern "C" fn(Id, *mut Block);
type OnCount = extern "C" fn(c_uint, *mut c_void);

/// `QEMU_PLUGIN_INLINE_ADD_U64`
const ADD: c_int = 0;
/// `QEMU_PLUGIN_COND_GE`
const AT_LEAST: c_int = 7;
/// `QEMU_PLUGIN_CB_NO_REGS`
const NO_REGISTERS: c_int = 0;

unsafe extern "C" {
    fn qemu_plugin_register_vcpu_init_cb(id: Id, callback: OfCore);
    fn qemu_plugin_register_vcpu_idle_cb(id: Id, callback: OfCore);
    fn qemu_plugin_register_vcpu_resume_cb(id: Id, callback: OfCore);
    fn qemu_plugin_register_vcpu_tb_trans_cb(id: Id, callback: OfBlock);
    fn qemu_plugin_tb_n_insns(block: *const Block) -> usize;
    fn qemu_plugin_register_vcpu_tb_exec_inline_per_vcpu(
        block: *mut Block,
        operation: c_int,
        count: Count,
        by: u64,
    );
    fn qemu_plugin_register_vcpu_tb_exec_cond_cb(
        block: *mut Block,
        callback: OnCount,
        flags: c_int,
        condition: c_int,
        count: Count,
        than: u64,
        data: *mut c_void,
    );
    fn qemu_plugin_scoreboard_new(bytes: usize) -> *mut Scoreboard;
    fn qemu_plugin_scoreboard_find(score: *mut Scoreboard, core: c_uint) -> *mut c_void;
}

/// A number for each core, which the code that QEMU translates adds to.
pub struct Counter(Count);

// SAFETY: QEMU hands out the numbers to the threads of their cores, and keeps them for as long as it runs.
unsafe impl Send for Counter {}
// SAFETY: as above; the pointer itself is never written.
unsafe impl Sync for Counter {}

impl Counter {
    /// Zero for each core.
    pub fn new() -> Self {
        // SAFETY: QEMU has loaded this plugin, and takes any size.
        let score = unsafe { qemu_plugin_scoreboard_new(size_of::<u64>()) };
        Self(Count { score, offset: 0 })
    }

    /// Takes as much off a core's number. On the thread of that core.
    pub fn take(&self, core: c_uint, much: u64) {
        // SAFETY: the core exists, for it executes; its number has so many bytes, and is its thread's.
        unsafe {
            let number = qemu_plugin_scoreboard_find(self.0.score, core).cast::<u64>();
            number.write(number.read().saturating_sub(much));
        }
    }
}

/// Who is told of what.
pub struct Callbacks {
    /// A core exists.
    pub on_core: OfCore,
    /// It waits for an interrupt.
    pub on_rest: OfCore,
    /// It does so no more.
    pub on_awake: OfCore,
    /// Code is translated.
    pub on_translation: OfBlock,
}

/// Has QEMU tell of all that.
pub fn register(id: Id, callbacks: &Callbacks) {
    // SAFETY: the plugin is being installed under this number, and the functions stay.
    unsafe {
        qemu_plugin_register_vcpu_init_cb(id, callbacks.on_core);
        qemu_plugin_register_vcpu_idle_cb(id, callbacks.on_rest);
        qemu_plugin_register_vcpu_resume_cb(id, callbacks.on_awake);
        qemu_plugin_register_vcpu_tb_trans_cb(id, callbacks.on_translation);
    }
}

/// Has a block that is being translated count its instructions, and call that function where the core's number has become so much.
pub fn count(block: *mut Block, counter: &Counter, most: u64, on_full: OnCount) {
    let Counter(count) = *counter;
    // SAFETY: QEMU hands the block to the plugin for as long as it is translated, which is until this returns.
    unsafe {
        let instructions = qemu_plugin_tb_n_insns(block) as u64;
        qemu_plugin_register_vcpu_tb_exec_inline_per_vcpu(block, ADD, count, instructions);
        let data = std::ptr::null_mut();
        qemu_plugin_register_vcpu_tb_exec_cond_cb(block, on_full, NO_REGISTERS, AT_LEAST, count, most, data);
    }
}
