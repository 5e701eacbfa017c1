//! What nodes tell each other that they can: bits of `erts/emulator/beam/dist.h`.

pub const EXTENDED_REFERENCES: u64 = 1 << 2;
const DIST_MONITOR: u64 = 1 << 3;
pub const FUN_TAGS: u64 = 1 << 4;
const DIST_MONITOR_NAME: u64 = 1 << 5;
pub const NEW_FUN_TAGS: u64 = 1 << 7;
pub const EXTENDED_PIDS_PORTS: u64 = 1 << 8;
pub const EXPORT_PTR_TAG: u64 = 1 << 9;
pub const BIT_BINARIES: u64 = 1 << 10;
pub const NEW_FLOATS: u64 = 1 << 11;
const SMALL_ATOM_TAGS: u64 = 1 << 14;
pub const UTF8_ATOMS: u64 = 1 << 16;
pub const MAP_TAG: u64 = 1 << 17;
pub const BIG_CREATION: u64 = 1 << 18;
const SEND_SENDER: u64 = 1 << 19;
/// Reasons of exits stand behind the control message, not in it.
pub const EXIT_PAYLOAD: u64 = 1 << 22;
pub const HANDSHAKE_23: u64 = 1 << 24;
/// Who ends a link has a number for that, and waits for the answer.
pub const UNLINK_ID: u64 = 1 << 25;
/// All that has been mandatory since OTP 25, in one bit: here by `dist.h` and the wire, at bit 36 by the page that describes it.
const MANDATORY_25: u64 = 1 << 26;
const MANDATORY_25_AS_DESCRIBED: u64 = 1 << 36;
/// Processes are started by signals of their own.
const SPAWN: u64 = 1 << 32;
pub const V4_NC: u64 = 1 << 34;
/// An answer may be sent to a reference.
pub const ALIAS: u64 = 1 << 35;

/// What OTP 25 takes for granted.
const GRANTED_25: u64 = EXTENDED_REFERENCES
    | FUN_TAGS
    | NEW_FUN_TAGS
    | EXTENDED_PIDS_PORTS
    | EXPORT_PTR_TAG
    | BIT_BINARIES
    | NEW_FLOATS
    | UTF8_ATOMS
    | MAP_TAG
    | BIG_CREATION
    | HANDSHAKE_23;

/// What the other side has to be able to. OTP 25 can all of it, and OTP 26 and 27 demand it.
pub const NEEDED: u64 = GRANTED_25 | V4_NC | UNLINK_ID;

/// What this side can. It does not say that it wants to be seen (`DFLAG_PUBLISHED`), so it is a hidden node; it numbers no atoms, and
/// takes no message in pieces.
pub const OWN: u64 = NEEDED
    | DIST_MONITOR
    | DIST_MONITOR_NAME
    | SMALL_ATOM_TAGS
    | SEND_SENDER
    | EXIT_PAYLOAD
    | MANDATORY_25
    | SPAWN
    | ALIAS;

/// What a side can that says this.
pub const fn expanded(flags: u64) -> u64 {
    if flags & (MANDATORY_25 | MANDATORY_25_AS_DESCRIBED) != 0 { flags | GRANTED_25 } else { flags }
}

#[cfg(test)]
mod tests {
    use super::{GRANTED_25, MANDATORY_25, NEEDED, OWN, expanded};

    #[test]
    fn the_flags_are_those_that_were_tried() {
        assert_eq!(OWN, 0xd_074f_4fbc);
        assert_eq!(NEEDED & !OWN, 0);
        assert_eq!(expanded(MANDATORY_25) & GRANTED_25, GRANTED_25);
        assert_eq!(expanded(0), 0);
    }
}
