//! Free cells: per core and kind, so that spawning takes no lock.
//!
//! A core finds the list for a kind in a small direct-mapped table. What does not fit there (another kind
//! with the same place, or too many free cells) goes to the shared list of the kind, under a lock, and
//! comes back from it before a new chunk is made.

use core::cell::UnsafeCell;
use core::ptr::{self, NonNull};

use super::cell::{CellHeader, CellRef, Chunk, Kind};
use super::word::{Life, Word};
use crate::arch::{MAX_CORES, percpu};
use crate::sync::{PreemptGuard, SpinLock};

/// Places in a core's table.
const PLACES: usize = 64;
/// Free cells that a core keeps of one kind before it gives half of them away.
const MOST_KEPT: u32 = 1024;

/// A list of free cells; the link lies in the state's place.
#[derive(Clone, Copy)]
struct List {
    kind: *const Kind,
    first: *mut FreeCell,
    length: u32,
}

#[repr(C)]
struct FreeCell {
    header: CellHeader,
    next: *mut FreeCell,
}

impl List {
    const EMPTY: Self = Self { kind: ptr::null(), first: ptr::null_mut(), length: 0 };

    /// # Safety
    /// The cell is free and the caller's.
    #[inline(always)]
    unsafe fn push(&mut self, cell: CellRef) {
        let cell = cell.cast::<FreeCell>();
        // SAFETY: by contract; every cell has room for the link.
        unsafe { (*cell.as_ptr()).next = self.first };
        self.first = cell.as_ptr();
        self.length += 1;
    }

    #[inline(always)]
    fn pop(&mut self) -> Option<CellRef> {
        let cell = NonNull::new(self.first)?;
        // SAFETY: cells on the list are free and the list's.
        self.first = unsafe { (*cell.as_ptr()).next };
        self.length -= 1;
        // SAFETY: what is in the list are cells.
        Some(unsafe { CellRef::new(cell.cast()) })
    }
}

struct CoreTable(UnsafeCell<[List; PLACES]>);

// SAFETY: each core uses its own table only, with preemption disabled and never in an interrupt.
unsafe impl Sync for CoreTable {}

static TABLES: [CoreTable; MAX_CORES] =
    [const { CoreTable(UnsafeCell::new([List::EMPTY; PLACES])) }; MAX_CORES];

/// The shared lists, one for each kind that has needed one.
static SHARED: SpinLock<SharedLists> =
    SpinLock::new(SharedLists { lists: [List::EMPTY; MOST_KINDS], kinds: 0 });
/// Kinds that can have a shared list; cells of further kinds stay with the core that frees them.
const MOST_KINDS: usize = 256;

struct SharedLists {
    lists: [List; MOST_KINDS],
    kinds: usize,
}

// SAFETY: the lists' cells are free, and belong to whoever holds the lock.
unsafe impl Send for SharedLists {}

impl SharedLists {
    fn list(&mut self, kind: &'static Kind) -> Option<&mut List> {
        let known = self.lists[..self.kinds].iter().position(|list| ptr::eq(list.kind, kind));
        let index = match known {
            Some(index) => index,
            None if self.kinds == MOST_KINDS => return None,
            None => {
                self.lists[self.kinds].kind = kind;
                self.kinds += 1;
                self.kinds - 1
            }
        };
        Some(&mut self.lists[index])
    }
}

/// # Safety
/// The list is not used again until the returned reference is gone: callers hold `here` and do not nest.
#[expect(
    clippy::mut_from_ref,
    reason = "the guard proves that preemption is off; it is not what is borrowed"
)]
#[inline(always)]
unsafe fn own_list(kind: &'static Kind, _here: &PreemptGuard) -> &'static mut List {
    let place = (ptr::from_ref(kind).addr() >> 4) % PLACES;
    // SAFETY: this core's own table, and preemption is disabled.
    unsafe { &mut (*TABLES[percpu::core_number()].0.get())[place] }
}

/// A free cell of this kind, unless memory is exhausted.
#[inline(always)]
pub(crate) fn take(kind: &'static Kind, here: &PreemptGuard) -> Option<CellRef> {
    // SAFETY: used in this function only, before anything else uses the table.
    let list = unsafe { own_list(kind, here) };
    if ptr::eq(list.kind, kind)
        && let Some(cell) = list.pop()
    {
        return Some(cell);
    }
    refill(kind, here)
}

#[cold]
#[inline(never)]
fn refill(kind: &'static Kind, here: &PreemptGuard) -> Option<CellRef> {
    evict_other(kind, here);
    let from_shared = SHARED.lock().list(kind).map_or(List::EMPTY, |list| {
        let taken = *list;
        *list = List { kind, ..List::EMPTY };
        taken
    });
    // SAFETY: nothing in between uses the table.
    let list = unsafe { own_list(kind, here) };
    if from_shared.first.is_null() {
        let (first, length) = Chunk::make(kind, |next, place, header| {
            let cell = place.cast::<FreeCell>();
            // SAFETY: a new chunk's cells are free and nobody else's; every cell has room for the link.
            unsafe { cell.write(FreeCell { header, next }) };
            cell.as_ptr()
        })?;
        // SAFETY: allocating the chunk may have used the heap, never this table.
        let list = unsafe { own_list(kind, here) };
        *list = List { kind, first, length };
        return list.pop();
    }
    *list = List { kind, ..from_shared };
    list.pop()
}

/// Frees the kind's place in this core's table if another kind has it.
fn evict_other(kind: &'static Kind, here: &PreemptGuard) {
    // SAFETY: used in this function only.
    let list = unsafe { own_list(kind, here) };
    if list.kind.is_null() || ptr::eq(list.kind, kind) {
        return;
    }
    let evicted = *list;
    *list = List::EMPTY;
    // SAFETY: a list's kind is a static.
    give_away(unsafe { &*evicted.kind }, evicted);
}

fn give_away(kind: &'static Kind, mut cells: List) {
    let mut shared = SHARED.lock();
    if let Some(list) = shared.list(kind) {
        while let Some(cell) = cells.pop() {
            // SAFETY: the cells were free and the caller's.
            unsafe { list.push(cell) };
        }
    }
}

/// Takes back the cell of an actor that has ended, whose state is gone already. `word` was its word.
#[inline(always)]
pub(crate) fn give(cell: CellRef, word: Word, here: &PreemptGuard) {
    let free = word.after_end(Life::Free);
    cell.set_word(free);
    if free.is_static() || free.is_used_up() {
        // It is the user's, or nobody's any more.
        return;
    }
    // SAFETY: cells live in chunks, whose headers never change.
    let kind = unsafe { Chunk::of(cell).as_ref() }.kind;
    // SAFETY: used in this function only.
    let list = unsafe { own_list(kind, here) };
    if ptr::eq(list.kind, kind) && list.length < MOST_KEPT {
        // SAFETY: the actor has ended, so the cell is free, and ours.
        unsafe { list.push(cell) };
    } else {
        give_slowly(cell, kind, here);
    }
}

#[cold]
#[inline(never)]
fn give_slowly(cell: CellRef, kind: &'static Kind, here: &PreemptGuard) {
    evict_other(kind, here);
    // SAFETY: used in this function only.
    let list = unsafe { own_list(kind, here) };
    list.kind = kind;
    if list.length >= MOST_KEPT {
        let mut given = List { kind, ..List::EMPTY };
        for _ in 0..MOST_KEPT / 2 {
            let Some(cell) = list.pop() else { break };
            // SAFETY: the cell was free and the list's.
            unsafe { given.push(cell) };
        }
        give_away(kind, given);
    }
    // SAFETY: as above.
    let list = unsafe { own_list(kind, here) };
    // SAFETY: the actor has ended, so the cell is free, and the caller's.
    unsafe { list.push(cell) };
}

/// Takes back a free cell that was taken and not used.
#[cold]
pub(crate) fn put_back(cell: CellRef, kind: &'static Kind, here: &PreemptGuard) {
    give_slowly(cell, kind, here);
}
