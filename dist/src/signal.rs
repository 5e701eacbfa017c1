//! What goes between nodes that are connected: control messages, some with a term behind them. Numbers and forms are those of the
//! distribution protocol; tokens of traces are dropped.

use alloc::vec::Vec;

use crate::flags::EXIT_PAYLOAD;
use crate::term::{Atom, DecodeError, EncodeError, Pid, Reader, Reference, Term, ToTerm, Token, Writer};

/// What a frame begins with: no atoms are numbered in it.
const PASS_THROUGH: u8 = 112;

/// Who is watched, or was.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Target<'a> {
    Pid(Pid<'a>),
    Name(Atom<'a>),
}

/// A control message.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Control<'a> {
    /// A message, behind it.
    Send {
        from: Option<Pid<'a>>,
        to: Pid<'a>,
    },
    /// A message, behind it.
    SendName {
        from: Pid<'a>,
        name: Atom<'a>,
    },
    /// A message, behind it.
    SendAlias {
        from: Pid<'a>,
        alias: Reference<'a>,
    },
    Link {
        from: Pid<'a>,
        to: Pid<'a>,
    },
    Unlink {
        id: u64,
        from: Pid<'a>,
        to: Pid<'a>,
    },
    UnlinkAck {
        id: u64,
        from: Pid<'a>,
        to: Pid<'a>,
    },
    /// Who was linked has ended; why, behind it.
    Exit {
        from: Pid<'a>,
        to: Pid<'a>,
    },
    /// Somebody asks that it end; why, behind it.
    ExitTo {
        from: Pid<'a>,
        to: Pid<'a>,
    },
    Monitor {
        from: Pid<'a>,
        target: Target<'a>,
        reference: Reference<'a>,
    },
    Demonitor {
        from: Pid<'a>,
        target: Target<'a>,
        reference: Reference<'a>,
    },
    /// Who was watched has ended; why, behind it.
    Down {
        from: Target<'a>,
        to: Pid<'a>,
        reference: Reference<'a>,
    },
    /// A process is to be started; its arguments, behind it.
    Spawn {
        request: Reference<'a>,
        from: Pid<'a>,
        module: Atom<'a>,
        function: Atom<'a>,
        arity: u8,
        options: Term<'a>,
    },
    SpawnReply {
        request: Reference<'a>,
        to: Pid<'a>,
        flags: u8,
        result: Result<Pid<'a>, Atom<'a>>,
    },
    /// What is of no use here, or not known.
    Other,
}

/// A control message with what was behind it, or in it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Signal<'a> {
    pub control: Control<'a>,
    pub payload: Option<Term<'a>>,
}

impl<'a> Signal<'a> {
    /// Reads the content of a frame. What is sound, but not known, is [`Control::Other`].
    pub fn read(frame: &'a [u8]) -> Result<Self, DecodeError> {
        let bytes = match frame {
            [PASS_THROUGH, bytes @ ..] => bytes,
            [] => return Err(DecodeError::Truncated),
            [first, ..] => return Err(DecodeError::UnknownTag(*first)),
        };
        let begin = Reader::external(bytes)?;
        let mut reader = begin;
        let control = read_control(&mut reader);
        if control.is_err() {
            // Not one that is known: is it a term?
            reader = begin;
            reader.term()?;
        }
        let behind = if reader.is_empty() {
            None
        } else {
            let mut reader = Reader::external(reader.rest())?;
            let payload = reader.term()?;
            reader.finish()?;
            Some(payload)
        };
        let (control, own) = control.unwrap_or((Control::Other, None));
        let payload = own.or(behind);
        let is_whole = payload.is_some() || !control.has_payload();
        Ok(Self { control: if is_whole { control } else { Control::Other }, payload })
    }
}

fn target<'a>(reader: &mut Reader<'a>) -> Result<Target<'a>, DecodeError> {
    match reader.peek()? {
        Token::Atom(_) => reader.atom().map(Target::Name),
        _ => reader.pid().map(Target::Pid),
    }
}

fn id(reader: &mut Reader<'_>) -> Result<u64, DecodeError> {
    let value = reader.integer()?.to_u128().ok_or(DecodeError::OutOfRange)?;
    u64::try_from(value).map_err(|_| DecodeError::OutOfRange)
}

/// The control message, whole, and the term in it that stands behind it in others.
fn read_control<'a>(r: &mut Reader<'a>) -> Result<(Control<'a>, Option<Term<'a>>), DecodeError> {
    let arity = r.tuple()?;
    let number = r.integer()?.to_i128().ok_or(DecodeError::OutOfRange)?;
    let mut own = None;
    // Fields are read in the order in which they are written here.
    let control = match (number, arity) {
        (1, 3) => Control::Link { from: r.pid()?, to: r.pid()? },
        (2, 3) | (12, 4) => {
            r.term()?;
            Control::Send { from: None, to: r.pid()? }
        }
        (3, 4) => {
            let control = Control::Exit { from: r.pid()?, to: r.pid()? };
            own = Some(r.term()?);
            control
        }
        (6, 4) | (16, 5) => {
            let from = r.pid()?;
            r.term()?;
            Control::SendName { from, name: r.atom()? }
        }
        (8, 4) => {
            let control = Control::ExitTo { from: r.pid()?, to: r.pid()? };
            own = Some(r.term()?);
            control
        }
        (13, 5) => {
            let control = Control::Exit { from: r.pid()?, to: r.pid()? };
            r.term()?;
            own = Some(r.term()?);
            control
        }
        (18, 5) => {
            let control = Control::ExitTo { from: r.pid()?, to: r.pid()? };
            r.term()?;
            own = Some(r.term()?);
            control
        }
        (19, 4) => Control::Monitor { from: r.pid()?, target: target(r)?, reference: r.reference()? },
        (20, 4) => Control::Demonitor { from: r.pid()?, target: target(r)?, reference: r.reference()? },
        (21, 5) => {
            let control = Control::Down { from: target(r)?, to: r.pid()?, reference: r.reference()? };
            own = Some(r.term()?);
            control
        }
        (22, 3) | (23, 4) => Control::Send { from: Some(r.pid()?), to: r.pid()? },
        (24, 3) | (25, 4) => Control::Exit { from: r.pid()?, to: r.pid()? },
        (26, 3) | (27, 4) => Control::ExitTo { from: r.pid()?, to: r.pid()? },
        (28, 4) => Control::Down { from: target(r)?, to: r.pid()?, reference: r.reference()? },
        (29, 6) | (30, 7) => {
            let (request, from) = (r.reference()?, r.pid()?);
            // Whose output it would have.
            r.term()?;
            r.tuple_of(3)?;
            let (module, function) = (r.atom()?, r.atom()?);
            let arity = id(r)?.try_into().map_err(|_| DecodeError::OutOfRange)?;
            Control::Spawn { request, from, module, function, arity, options: r.term()? }
        }
        (31, 5) | (32, 6) => {
            let (request, to) = (r.reference()?, r.pid()?);
            let flags = id(r)?.try_into().map_err(|_| DecodeError::OutOfRange)?;
            let result = match target(r)? {
                Target::Pid(pid) => Ok(pid),
                Target::Name(name) => Err(name),
            };
            Control::SpawnReply { request, to, flags, result }
        }
        (33, 3) | (34, 4) => Control::SendAlias { from: r.pid()?, alias: r.reference()? },
        (35, 4) => Control::Unlink { id: id(r)?, from: r.pid()?, to: r.pid()? },
        (36, 4) => Control::UnlinkAck { id: id(r)?, from: r.pid()?, to: r.pid()? },
        _ => return Err(DecodeError::UnknownVariant),
    };
    // A token of a trace, which is the last where it was not read yet.
    let has_token = matches!((number, arity), (12 | 23 | 25 | 27 | 34, 4) | (16, 5) | (30, 7) | (32, 6));
    if has_token {
        r.term()?;
    }
    Ok((control, own))
}

impl Control<'_> {
    /// Whether something stands behind it.
    pub const fn has_payload(&self) -> bool {
        match self {
            Self::Send { .. }
            | Self::SendName { .. }
            | Self::SendAlias { .. }
            | Self::Exit { .. }
            | Self::ExitTo { .. }
            | Self::Down { .. }
            | Self::Spawn { .. } => true,
            Self::Link { .. }
            | Self::Unlink { .. }
            | Self::UnlinkAck { .. }
            | Self::Monitor { .. }
            | Self::Demonitor { .. }
            | Self::SpawnReply { .. }
            | Self::Other => false,
        }
    }

    /// Appends a frame, with its length, to a buffer that may have so many bytes in the end. After an error there is rubbish at the end.
    pub fn write(
        &self,
        payload: Option<&dyn ToTerm>,
        flags: u64,
        bytes: &mut Vec<u8>,
        limit: usize,
    ) -> Result<(), EncodeError> {
        let begin = bytes.len();
        if limit.saturating_sub(begin) < 5 {
            return Err(EncodeError::TooLong);
        }
        bytes.try_reserve(5)?;
        bytes.extend_from_slice(&[0, 0, 0, 0, PASS_THROUGH]);
        let mut writer = Writer::external(bytes, limit)?;
        let is_behind = self.write_control(payload, flags, &mut writer)?;
        writer.finish()?;
        if let Some(payload) = payload.filter(|_| is_behind) {
            let mut writer = Writer::external(bytes, limit)?;
            payload.to_term(&mut writer)?;
            writer.finish()?;
        }
        let length = u32::try_from(bytes.len() - begin - 4).map_err(|_| EncodeError::TooLong)?;
        bytes[begin..begin + 4].copy_from_slice(&length.to_be_bytes());
        Ok(())
    }

    /// The control message; whether what comes with it is still to be written, behind it.
    fn write_control(
        &self,
        payload: Option<&dyn ToTerm>,
        flags: u64,
        w: &mut Writer<'_>,
    ) -> Result<bool, EncodeError> {
        let is_behind = flags & EXIT_PAYLOAD != 0;
        let head = |w: &mut Writer<'_>, arity, number| {
            w.tuple(arity)?;
            w.integer(number)
        };
        // A reason, where it belongs.
        let reason = |w: &mut Writer<'_>| match payload {
            Some(_) if is_behind => Ok(true),
            Some(reason) => reason.to_term(w).map(|()| false),
            None => Err(EncodeError::Unbalanced),
        };
        let (more, past) = if is_behind { (0, 1) } else { (1, 0) };
        match *self {
            Self::Send { from: Some(from), to } => {
                head(w, 3, 22)?;
                w.pid(from)?;
                w.pid(to)?;
            }
            Self::Send { from: None, to } => {
                head(w, 3, 2)?;
                w.atom("")?;
                w.pid(to)?;
            }
            Self::SendName { from, name } => {
                head(w, 4, 6)?;
                w.pid(from)?;
                w.atom("")?;
                w.write_atom(name)?;
            }
            Self::SendAlias { from, alias } => {
                head(w, 3, 33)?;
                w.pid(from)?;
                w.reference(alias)?;
            }
            Self::Link { from, to } => {
                head(w, 3, 1)?;
                w.pid(from)?;
                w.pid(to)?;
                return Ok(false);
            }
            Self::Unlink { id, from, to } => {
                head(w, 4, 35)?;
                w.integer(id.into())?;
                w.pid(from)?;
                w.pid(to)?;
                return Ok(false);
            }
            Self::UnlinkAck { id, from, to } => {
                head(w, 4, 36)?;
                w.integer(id.into())?;
                w.pid(from)?;
                w.pid(to)?;
                return Ok(false);
            }
            Self::Exit { from, to } => {
                head(w, 3 + more, 3 + 21 * past)?;
                w.pid(from)?;
                w.pid(to)?;
                return reason(w);
            }
            Self::ExitTo { from, to } => {
                head(w, 3 + more, 8 + 18 * past)?;
                w.pid(from)?;
                w.pid(to)?;
                return reason(w);
            }
            Self::Monitor { from, target, reference } => {
                head(w, 4, 19)?;
                w.pid(from)?;
                target.write(w)?;
                w.reference(reference)?;
                return Ok(false);
            }
            Self::Demonitor { from, target, reference } => {
                head(w, 4, 20)?;
                w.pid(from)?;
                target.write(w)?;
                w.reference(reference)?;
                return Ok(false);
            }
            Self::Down { from, to, reference } => {
                head(w, 4 + more, 21 + 7 * past)?;
                from.write(w)?;
                w.pid(to)?;
                w.reference(reference)?;
                return reason(w);
            }
            Self::Spawn { request, from, module, function, arity, options } => {
                head(w, 6, 29)?;
                w.reference(request)?;
                w.pid(from)?;
                w.pid(from)?;
                w.tuple(3)?;
                w.write_atom(module)?;
                w.write_atom(function)?;
                w.integer(arity.into())?;
                w.term(options)?;
            }
            Self::SpawnReply { request, to, flags, result } => {
                head(w, 5, 31)?;
                w.reference(request)?;
                w.pid(to)?;
                w.integer(flags.into())?;
                match result {
                    Ok(pid) => w.pid(pid)?,
                    Err(name) => w.write_atom(name)?,
                }
                return Ok(false);
            }
            Self::Other => return Err(EncodeError::Unbalanced),
        }
        Ok(true)
    }
}

impl Target<'_> {
    fn write(&self, writer: &mut Writer<'_>) -> Result<(), EncodeError> {
        match *self {
            Self::Pid(pid) => writer.pid(pid),
            Self::Name(name) => writer.write_atom(name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Control, Signal, Target};
    use crate::flags::EXIT_PAYLOAD;
    use crate::term::{Atom, DecodeError, Pid, Reference, TermBuf, ToTerm};
    use alloc::vec::Vec;

    #[test]
    fn signals_come_back() {
        let node = Atom::new("a@host").unwrap();
        let name = Atom::new("counter").unwrap();
        let from = Pid { node, id: 1, serial: 2, creation: 3 };
        let to = Pid { node, id: 4, serial: 5, creation: 3 };
        let reference = Reference::new(node, 3, &[6, 7, 8]).unwrap();
        let options = TermBuf::of(&[Atom::new("monitor").unwrap()], 100).unwrap();
        let (target, other) = (Target::Pid(to), Target::Name(name));
        for control in [
            Control::Send { from: Some(from), to },
            Control::Send { from: None, to },
            Control::SendName { from, name },
            Control::SendAlias { from, alias: reference },
            Control::Link { from, to },
            Control::Unlink { id: u64::MAX, from, to },
            Control::UnlinkAck { id: 1, from, to },
            Control::Exit { from, to },
            Control::ExitTo { from, to },
            Control::Monitor { from, target, reference },
            Control::Monitor { from, target: other, reference },
            Control::Demonitor { from, target, reference },
            Control::Down { from: target, to, reference },
            Control::Down { from: other, to, reference },
            Control::Spawn {
                request: reference,
                from,
                module: name,
                function: name,
                arity: 4,
                options: options.as_term(),
            },
            Control::SpawnReply { request: reference, to, flags: 2, result: Ok(from) },
            Control::SpawnReply { request: reference, to, flags: 0, result: Err(name) },
        ] {
            let value = TermBuf::of(&("reason", 1), 100).unwrap();
            let payload = control.has_payload().then_some(&value);
            for flags in [0, EXIT_PAYLOAD] {
                let mut bytes = Vec::new();
                control.write(payload.map(|it| it as &dyn ToTerm), flags, &mut bytes, 1000).unwrap();
                let length = u32::from_be_bytes(*bytes.first_chunk().unwrap());
                assert_eq!(length as usize, bytes.len() - 4);
                let signal = Signal::read(&bytes[4..]).unwrap();
                assert_eq!(signal, Signal { control, payload: payload.map(TermBuf::as_term) });
                for end in 4..bytes.len() {
                    let cut = Signal::read(&bytes[4..end]);
                    assert!(cut.is_err() || cut.is_ok_and(|it| it.control == Control::Other));
                }
                for limit in 0..bytes.len() {
                    let payload = payload.map(|it| it as &dyn ToTerm);
                    assert!(control.write(payload, flags, &mut Vec::new(), limit).is_err());
                }
            }
        }
    }

    #[test]
    fn what_is_not_known_is_no_error_and_what_is_no_term_is() {
        assert_eq!(Signal::read(b"\x70\x83\x68\x01\x61\xc8").unwrap().control, Control::Other);
        assert_eq!(Signal::read(b"\x70\x83\x6a").unwrap().control, Control::Other);
        assert_eq!(Signal::read(b"\x83\x44\0").unwrap_err(), DecodeError::UnknownTag(0x83));
        assert_eq!(Signal::read(b"\x70\x83\x68\x01\x61\xc8\x83\x6a\x6a").unwrap_err(), DecodeError::Trailing);
        assert_eq!(Signal::read(b"").unwrap_err(), DecodeError::Truncated);
    }
}
