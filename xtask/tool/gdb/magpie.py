"""Commands for gdb that know Magpie's structures: `magpie cores`, `processes`, `mailboxes`, `backtrace`.

They read memory through the types in the image's own debug information, so they follow the kernel as it changes. Nothing is called in the guest.
What is read is a moment's state: of what a core is just changing it may be half.
"""

import re

import gdb

# Bits of a process's word: kernel/src/sched/process/run_state.rs.
QUEUED, RUNNING, NOTIFIED, DONE, CRASHED, SUSPENDED, KILLED, ENDING = (1 << bit for bit in range(8))


def peel(value):
    """What is in wrappers with one field: atomics, cells, newtypes."""
    while value.type.strip_typedefs().code == gdb.TYPE_CODE_STRUCT:
        fields = [field for field in value.type.strip_typedefs().fields() if field.type.sizeof > 0]
        if len(fields) != 1:
            return value
        value = value[fields[0]]
    return value


def number(value):
    """As a number, whatever it is wrapped in."""
    return int(peel(value))


def static(name):
    """A static of the kernel's."""
    return gdb.parse_and_eval("magpie::" + name)


def at(address, kind):
    """What lies there, of a type of the kernel's."""
    return gdb.Value(address).cast(gdb.lookup_type("magpie::" + kind).pointer()).dereference()


def cores():
    """The block of each core."""
    blocks = static("sched::cores::block::CORES")
    for index in range(number(static("sched::cores::block::COUNT"))):
        yield at(number(blocks[index]), "sched::cores::block::Core")


def listed(roll):
    """The addresses of what is on a roll (kernel/src/roll.rs)."""
    page = number(roll["pages"])
    while page != 0:
        page = at(page, "roll::Page")
        for index in range(page["places"].type.range()[1] + 1):
            place = number(page["places"][index])
            if place & 1:
                yield ~place & (1 << 64) - 1
        page = number(page["link"])


def processes():
    """The address and header of each process that has had a turn, or a slice of one."""
    for core in cores():
        for address in listed(core["roll"]):
            yield address, at(address, "sched::process::header::Header")


def function_at(address):
    """The name of the function there, with its types if they are known."""
    try:
        block = gdb.block_for_pc(address)
    except RuntimeError:
        block = None
    while block is not None and block.function is None:
        block = block.superblock
    return block.function.print_name if block is not None else "?"


def name(header):
    """What a process is: the type that its functions are made for."""
    step = function_at(number(header["vtable"].dereference()["step"]))
    made_for = re.search(r"::step<(.*)>$", step)
    return made_for.group(1) if made_for else step


def state(header):
    """What a process does."""
    word = number(header["run_state"])
    if word & DONE:
        return "crashed" if word & CRASHED else "ended"
    if word & KILLED:
        return "killed"
    if word & SUSPENDED:
        return "suspended"
    if word & RUNNING:
        return "running" if number(header["enqueued_at"]) == 0 else "queued"
    return "queued" if word & QUEUED else "waiting"


def variant(value):
    """The name of an enum's variant without fields."""
    return str(value).rsplit("::", 1)[-1]


class Magpie(gdb.Command):
    """What Magpie's cores, processes and mailboxes are doing."""

    def __init__(self):
        super().__init__("magpie", gdb.COMMAND_STATUS, prefix=True)


class Cores(gdb.Command):
    """magpie cores: what each core does, and how long its queues are."""

    def __init__(self):
        super().__init__("magpie cores", gdb.COMMAND_STATUS)

    def invoke(self, _argument, _from_tty):
        online = number(static("sched::cores::block::ONLINE"))
        running = {}
        for address, header in processes():
            if state(header) == "running":
                running.setdefault(number(header["home"]), (address, name(header)))
        for core in cores():
            index = number(core["number"])
            turn = number(core["in_turn"])
            if not online >> index & 1:
                does = "is out of service"
            elif turn != 0:
                address, what = running.get(index, (0, "a process in its first slice"))
                does = f"is in a turn of {what}" + (f" at {address:#x}" if address else "")
            elif number(core["idle"]) != 0:
                does = "is idle"
            else:
                does = "is between two turns"
            print(f"core {index} {does}")


class Processes(gdb.Command):
    """magpie processes: each that has had a turn, or runs for longer than a slice: where it is, what it does, and what it is."""

    def __init__(self):
        super().__init__("magpie processes", gdb.COMMAND_STATUS)

    def invoke(self, _argument, _from_tty):
        for address, header in processes():
            core, priority = number(header["home"]), variant(header["priority"])
            print(f"{address:#x} core {core} {priority:<6} {state(header):<9} {name(header)}")
        live = number(static("sched::cores::population::LIVE"))
        print(f"{live} live, those that have not had a turn included")


class Mailboxes(gdb.Command):
    """magpie mailboxes [all]: those with mail, or all that are open: whose they are, and how many messages wait."""

    def __init__(self):
        super().__init__("magpie mailboxes", gdb.COMMAND_STATUS)

    def invoke(self, argument, _from_tty):
        boxes = static("actor::mail::directory::MAILBOXES")
        first, last = boxes.type.range()
        size = gdb.lookup_type("usize").sizeof
        memory = gdb.selected_inferior().read_memory(int(boxes.address), (last - first + 1) * size).tobytes()
        opened, shown = 0, 0
        for start in range(0, len(memory), size):
            address = int.from_bytes(memory[start : start + size], "little")
            if address == 0:
                continue
            box = at(address, "actor::mail::mailbox::Mailbox")
            if bool(peel(box["inside"]["data"])["closed"]):
                continue
            opened += 1
            waiting = number(box["inside"]["beside"])
            if waiting == 0 and argument != "all":
                continue
            shown += 1
            notes = [word for word in ("pinned", "urgent") if number(box[word])]
            if number(box["being_processed"]):
                notes.append("in a worker's hand")
            index, core = number(box["index"]), number(box["core"])
            print(f"mailbox {index} core {core}: {waiting} waiting, {number(box['taken'])} taken before {' '.join(notes)}".rstrip())
        print(f"{shown} of {opened} open mailboxes")


class Backtrace(gdb.Command):
    """magpie backtrace [ADDRESS]: where a suspended process is, by the address that `magpie processes` shows; all of them unless one is named."""

    def __init__(self):
        super().__init__("magpie backtrace", gdb.COMMAND_STACK)

    def invoke(self, argument, _from_tty):
        wanted = int(gdb.parse_and_eval(argument)) if argument else None
        found = False
        for address, header in processes():
            if wanted not in (None, address):
                continue
            stack = number(header["stack"])
            if state(header) != "suspended" or stack == 0:
                if wanted is not None:
                    raise gdb.GdbError(f"the process at {address:#x} is {state(header)}: only one that is suspended has a stack of its own")
                continue
            found = True
            print(f"{address:#x} {name(header)}")
            self.show(at(stack, "mem::stack::StackBlock"))
        if not found:
            raise gdb.GdbError("no process is suspended" if wanted is None else f"there is no process at {wanted:#x}")

    @staticmethod
    def show(block):
        """Shows the frames on a stack, with the registers of what is suspended there in the place of the selected core's for so long."""
        saved = peel(block["saved"])
        registers = {f"x{index}": int(saved["x"][index]) for index in range(31)}
        registers.update(sp=int(saved["sp"]), pc=int(saved["elr"]))
        gdb.execute("select-frame level 0", to_string=True)
        before = {register: int(gdb.parse_and_eval(f"${register}")) & (1 << 64) - 1 for register in registers}
        put(registers)
        try:
            print(gdb.execute("backtrace", to_string=True), end="")
        finally:
            put(before)


def put(registers):
    """Sets registers of the selected core."""
    for register, content in registers.items():
        gdb.execute(f"set var ${register} = {content}", to_string=True)


for command in (Magpie, Cores, Processes, Mailboxes, Backtrace):
    command()
