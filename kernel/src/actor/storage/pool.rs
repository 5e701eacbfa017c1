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
/// Free cells that a core keeps of one kind before it gives some of them away.
const MOST_KEPT: u32 = 1024;
/// How many those are.
const GIVEN: u32 = 128;

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
    let has_place = make_place(kind, here);
    let mut found = take_shared(kind, has_place);
    if found.first.is_null() {
        let (first, length) = Chunk::make(kind, |next, place, header| {
            let cell = place.cast::<FreeCell>();
            // SAFETY: a new chunk's cells are free and nobody else's; every cell has room for the link.
            unsafe { cell.write(FreeCell { header, next }) };
            cell.as_ptr()
        })?;
        found = List { kind, first, length };
    }
    let cell = found.pop();
    if has_place {
        // SAFETY: allocating the chunk may have used the heap, never this table.
        *unsafe { own_list(kind, here) } = found;
    } else {
        give_chunk_away(kind, found);
    }
    cell
}

/// What others have given away of the kind, or one of it, if the caller has no place for more.
fn take_shared(kind: &'static Kind, has_place: bool) -> List {
    let mut shared = SHARED.lock();
    let Some(list) = shared.list(kind) else { return List { kind, ..List::EMPTY } };
    if has_place {
        return core::mem::replace(list, List { kind, ..List::EMPTY });
    }
    let mut one = List { kind, ..List::EMPTY };
    if let Some(cell) = list.pop() {
        // SAFETY: the cell was free and the list's.
        unsafe { one.push(cell) };
    }
    one
}

/// Makes this core's place in the table the kind's. If another kind has it, some cells of that are given away each time, until none is left. Whether
/// the place is the kind's by now: it is at once, if it has no shared list to use meanwhile.
fn make_place(kind: &'static Kind, here: &PreemptGuard) -> bool {
    // SAFETY: used in this function only; giving away uses no table.
    let list = unsafe { own_list(kind, here) };
    if !list.kind.is_null() && !ptr::eq(list.kind, kind) {
        let may_wait = SHARED.lock().list(kind).is_some();
        while give_away(list) && !may_wait {}
        if may_wait && !list.first.is_null() {
            return false;
        }
        *list = List::EMPTY;
    }
    list.kind = kind;
    true
}

/// Moves what is left of a new chunk to the shared list of its kind, which was empty a moment ago.
fn give_chunk_away(kind: &'static Kind, mut cells: List) {
    let mut shared = SHARED.lock();
    if let Some(list) = shared.list(kind).filter(|list| list.first.is_null()) {
        *list = cells;
        return;
    }
    drop(shared);
    while give_away(&mut cells) {}
}

/// Moves some cells of a list, which has a kind, to the shared list of that kind, if it has one: the first of them, no more than are gone
/// through in a short time, because preemption is disabled. Whether it did.
fn give_away(list: &mut List) -> bool {
    // SAFETY: a list's kind is a static.
    let kind = unsafe { &*list.kind };
    let (first, mut last, mut count) = (list.first, list.first, 1);
    if first.is_null() {
        return false;
    }
    // SAFETY: cells on the list are free and the list's, here and below.
    unsafe {
        while count < GIVEN && !(*last).next.is_null() {
            last = (*last).next;
            count += 1;
        }
        let mut shared = SHARED.lock();
        let Some(common) = shared.list(kind) else { return false };
        list.first = (*last).next;
        (*last).next = common.first;
        common.first = first;
        list.length -= count;
        common.length += count;
    }
    true
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
    let mut one = List { kind, ..List::EMPTY };
    let list = if make_place(kind, here) {
        // SAFETY: used here only.
        unsafe { own_list(kind, here) }
    } else {
        &mut one
    };
    if list.length >= MOST_KEPT {
        give_away(list);
    }
    // SAFETY: the actor has ended, so the cell is free, and the caller's.
    unsafe { list.push(cell) };
    if one.length > 0 {
        give_away(&mut one);
    }
}

/// Takes back a free cell that was taken and not used.
#[cold]
pub(crate) fn put_back(cell: CellRef, kind: &'static Kind, here: &PreemptGuard) {
    give_slowly(cell, kind, here);
}
