//! Two connections that talk to each other, whatever the network does with their bytes, and whatever comes instead of bytes.

mod common;

use common::driver::{chance, identity, lost};
use common::{Chance, any_term, inputs, mutate};
use magpie_dist::connection::{
    Admission, Body, Closed, Connection, Destination, Event, Limits, LocalPid, Lost, RemotePid, SendError, To,
};
use magpie_dist::term::{AtomBuf, Binary, Reader};

const ONE: LocalPid = LocalPid::new(1, 0);
const TWO: LocalPid = LocalPid::new(2, 0);

fn word(name: &str) -> AtomBuf {
    AtomBuf::new(name).unwrap()
}

fn pair(limits: Limits) -> (Connection, Connection) {
    let ours = Connection::connect(identity("a@h", "c"), "b@h", limits, chance(), 0).unwrap();
    let theirs = Connection::accept(identity("b@h", "c"), limits, chance(), 0).unwrap();
    (ours, theirs)
}

/// Carries bytes from one to the other, as many as it takes.
fn carry(from: &mut Connection, to: &mut Connection) -> usize {
    let count = to.feed(from.output(), 0);
    from.sent(count, 0);
    count
}

/// What a connection says of all that has come in, as text; names are let in.
fn events(connection: &mut Connection) -> Result<Vec<String>, Closed> {
    let mut all = Vec::new();
    while let Some((event, _)) = connection.event()? {
        all.push(format!("{event:?}"));
        if let Event::Named { .. } = event {
            connection.admit(Admission::Accepted);
        }
    }
    Ok(all)
}

fn up(limits: Limits) -> (Connection, Connection) {
    let (mut ours, mut theirs) = pair(limits);
    while !ours.is_up() || !theirs.is_up() {
        carry(&mut ours, &mut theirs);
        events(&mut theirs).unwrap();
        carry(&mut theirs, &mut ours);
        events(&mut ours).unwrap();
    }
    (ours, theirs)
}

/// Which process of `theirs` this is, for who talks to it.
fn remote(theirs: &mut Connection, local: LocalPid) -> RemotePid {
    let pid = theirs.peer().pid(local);
    RemotePid { id: pid.id, serial: pid.serial, creation: pid.creation }
}

/// Carries what both have to say, and tells what came of it: here, there.
fn settle(ours: &mut Connection, theirs: &mut Connection) -> (Vec<String>, Vec<String>) {
    let (mut here, mut there) = (Vec::new(), Vec::new());
    loop {
        here.extend(events(ours).unwrap());
        there.extend(events(theirs).unwrap());
        if carry(ours, theirs) + carry(theirs, ours) == 0 {
            return (here, there);
        }
    }
}

#[test]
fn the_handshake_goes_byte_by_byte_and_not_with_another_cookie() {
    let (mut ours, mut theirs) = pair(Limits::default());
    let mut said = 0;
    while !ours.is_up() || !theirs.is_up() {
        for (from, to) in [(true, false), (false, true)] {
            let (from, to) = if from && !to { (&mut ours, &mut theirs) } else { (&mut theirs, &mut ours) };
            while !from.output().is_empty() {
                let byte = [from.output()[0]];
                assert_eq!(to.feed(&byte, 0), 1);
                from.sent(1, 0);
                events(to).unwrap();
                said += 1;
            }
        }
    }
    // 20 + 5 + 24 + 23 + 19, by the names' lengths.
    assert_eq!(said, 20 + 5 + 24 + 23 + 19);
    assert_eq!((ours.peer().name(), theirs.peer().name()), ("b@h", "a@h"));

    let mut ours = Connection::connect(identity("a@h", "c"), "b@h", Limits::default(), chance(), 0).unwrap();
    let mut theirs = Connection::accept(identity("b@h", "d"), Limits::default(), chance(), 0).unwrap();
    for _ in 0..2 {
        carry(&mut ours, &mut theirs);
        let _ = events(&mut theirs);
        carry(&mut theirs, &mut ours);
        events(&mut ours).unwrap();
    }
    assert_eq!((theirs.closed(), ours.is_up()), (Some(Closed::Cookie), false));
    assert!(ours.peer().send(ONE, To::Name("x"), &()).is_err_and(|error| error == SendError::NotUp));
    assert_eq!(ours.elapsed(6999), Ok(()));
    assert_eq!(ours.elapsed(7000), Err(Closed::Timeout));
}

#[test]
fn admissions_have_their_outcomes() {
    for (admission, here, there) in [
        (Admission::Simultaneous, None, None),
        (Admission::Alive, None, None),
        (Admission::Refused, Some(Closed::Refused), Some(Closed::Refused)),
        (Admission::NotAllowed, Some(Closed::NotAllowed), Some(Closed::NotAllowed)),
    ] {
        let (mut ours, mut theirs) = pair(Limits::default());
        for _ in 0..4 {
            carry(&mut ours, &mut theirs);
            while let Ok(Some((event, _))) = theirs.event() {
                if let Event::Named { .. } = event {
                    theirs.admit(admission);
                }
            }
            carry(&mut theirs, &mut ours);
            let _ = events(&mut ours);
        }
        assert_eq!((ours.closed(), theirs.closed()), (here, there));
        assert_eq!((ours.is_up(), theirs.is_up()), (here.is_none(), there.is_none()));
    }
    // Another node than the one that was meant.
    let mut ours = Connection::connect(identity("a@h", "c"), "x@h", Limits::default(), chance(), 0).unwrap();
    let mut theirs = Connection::accept(identity("b@h", "c"), Limits::default(), chance(), 0).unwrap();
    carry(&mut ours, &mut theirs);
    events(&mut theirs).unwrap();
    carry(&mut theirs, &mut ours);
    assert_eq!(events(&mut ours), Err(Closed::WrongName));
}

#[test]
fn links_that_cross_with_their_ends_leave_nothing() {
    let (mut ours, mut theirs) = up(Limits::default());
    let (a, b) = (remote(&mut ours, ONE), remote(&mut theirs, TWO));
    // Made and ended on both sides at once, and one of them ends.
    let mut chance = Chance::new(5);
    for _ in 0..3000 {
        match chance.below(9) {
            0 => ours.peer().link(ONE, b).unwrap(),
            1 => theirs.peer().link(TWO, a).unwrap(),
            2 => ours.peer().unlink(ONE, b).unwrap(),
            3 => theirs.peer().unlink(TWO, a).unwrap(),
            4 => drop(carry(&mut ours, &mut theirs)),
            5 => drop(carry(&mut theirs, &mut ours)),
            6 => drop(events(&mut ours).unwrap()),
            7 => drop(events(&mut theirs).unwrap()),
            _ => {
                let _ = settle(&mut ours, &mut theirs);
                let [.., here] = ours.peer().bonds();
                let [.., there] = theirs.peer().bonds();
                assert_eq!(here, there);
            }
        }
    }
    ours.peer().unlink(ONE, b).unwrap();
    theirs.peer().unlink(TWO, a).unwrap();
    settle(&mut ours, &mut theirs);
    assert_eq!((ours.peer().bonds(), theirs.peer().bonds()), ([0; 4], [0; 4]));
    assert_eq!((lost(&mut ours), lost(&mut theirs)), (vec![], vec![]));
}

#[test]
fn an_end_is_told_to_all_however_little_room_there_is() {
    let limits = Limits { output: 16 << 10, ..Limits::default() };
    let (mut ours, mut theirs) = up(limits);
    let target = remote(&mut theirs, TWO);
    for _ in 0..1000 {
        loop {
            match ours.peer().monitor(ONE, To::Pid(target)) {
                Err(SendError::Full) => drop(settle(&mut ours, &mut theirs)),
                other => break assert!(other.is_ok()),
            }
        }
    }
    ours.peer().link(ONE, target).unwrap();
    settle(&mut ours, &mut theirs);
    assert_eq!(ours.peer().bonds(), [0, 1000, 0, 1]);
    assert_eq!(theirs.peer().bonds(), [1000, 0, 0, 1]);
    let mut heard = Vec::new();
    while theirs.peer().exited(TWO, &word("done")) == Err(SendError::Full) {
        heard.extend(settle(&mut ours, &mut theirs).0);
    }
    heard.extend(settle(&mut ours, &mut theirs).0);
    assert_eq!(
        heard.iter().filter(|event| event.starts_with("Down") && event.contains("reason: done")).count(),
        1000
    );
    assert_eq!(heard.len(), 1001);
    assert_eq!((ours.peer().bonds(), theirs.peer().bonds()), ([0; 4], [0; 4]));
}

#[test]
fn what_is_beyond_a_limit_is_refused_and_said() {
    let limits = Limits { monitors: 3, links: 2, calls: 2, ..Limits::default() };
    let wide = Limits::default();
    let mut ours = Connection::connect(identity("a@h", "c"), "b@h", wide, chance(), 0).unwrap();
    let mut theirs = Connection::accept(identity("b@h", "c"), limits, chance(), 0).unwrap();
    for _ in 0..3 {
        settle(&mut ours, &mut theirs);
    }
    for id in 0..5 {
        let target = RemotePid { id, ..remote(&mut theirs, TWO) };
        ours.peer().monitor(ONE, To::Pid(target)).unwrap();
        ours.peer().link(ONE, target).unwrap();
    }
    let (here, there) = settle(&mut ours, &mut theirs);
    assert_eq!(there.len(), 5);
    assert_eq!(here.iter().filter(|event| event.contains("system_limit")).count(), 5, "{here:?}");
    assert_eq!(theirs.peer().statistics().refused, 5);
    assert_eq!(theirs.peer().bonds(), [3, 0, 0, 2]);
    let target = remote(&mut ours, ONE);
    assert!(theirs.peer().call(TWO, To::Pid(target), &()).is_ok());
    let call = theirs.peer().call(TWO, To::Pid(target), &()).unwrap();
    assert_eq!(theirs.peer().call(TWO, To::Pid(target), &()), Err(SendError::TooMany));
    theirs.peer().give_up(call).unwrap();
    assert_eq!(theirs.peer().give_up(call), Err(SendError::Unknown));
    assert!(theirs.peer().call(TWO, To::Pid(target), &()).is_ok());
    // Their lives before and after this one are nobody's here.
    let stale = RemotePid { creation: 1, ..remote(&mut theirs, TWO) };
    ours.peer().monitor(ONE, To::Pid(stale)).unwrap();
    ours.peer().send(ONE, To::Pid(stale), &()).unwrap();
    let (here, there) = settle(&mut ours, &mut theirs);
    assert!(here.iter().any(|event| event.contains("noproc")), "{here:?}");
    assert!(!there.iter().any(|event| event.starts_with("Message")), "{there:?}");
    assert_eq!(theirs.peer().statistics().unknown, 1);
    let all = lost(&mut theirs);
    assert_eq!(all.iter().filter(|it| matches!(it, Lost::Call(..))).count(), 2);
    assert_eq!(all.len(), 3 + 2 + 2);
}

#[test]
fn a_full_mailbox_stops_the_reading_and_nothing_is_lost() {
    let limits = Limits { output: 64 << 10, ..Limits::default() };
    let (mut ours, mut theirs) = up(limits);
    let (mut sent, mut got, mut refused) = (0u32, 0u32, 0);
    let mut chance = Chance::new(6);
    while got < 20_000 {
        if sent < 20_000 {
            match ours.peer().send(ONE, To::Name("sink"), &(sent, Binary(&[7; 30]))) {
                Ok(()) => sent += 1,
                Err(error) => {
                    assert_eq!(error, SendError::Full);
                    refused += 1;
                }
            }
        }
        if chance.below(50) > 0 && sent < 20_000 && ours.output().len() < 50_000 {
            continue;
        }
        carry(&mut ours, &mut theirs);
        for _ in 0..chance.below(900) {
            let has_room = chance.below(30) > 0;
            match theirs.event().unwrap() {
                Some((Event::Message { to: Destination::Name(name), message, .. }, _)) if has_room => {
                    assert!(name.is("sink"));
                    assert_eq!(message.decode::<(u32, Binary<'_>)>().unwrap().0, got);
                    got += 1;
                }
                Some(_) => {
                    theirs.put_back();
                    assert!(theirs.space().is_empty());
                    break;
                }
                None => break,
            }
        }
    }
    assert_eq!((ours.peer().statistics().sent, theirs.peer().statistics().received), (20_000, 20_000));
    let large = vec![0; 65 << 10];
    assert!(
        refused > 0 || ours.peer().send(ONE, To::Name("sink"), &Binary(&large)) == Err(SendError::TooLong)
    );
}

/// What somebody keeps until it is answered is short, whatever was sent.
#[test]
fn what_is_kept_of_a_call_is_short() {
    let (mut ours, mut theirs) = up(Limits::default());
    let pid = ours.peer().pid(ONE).to_buf().unwrap();
    for (length, is_call) in [(1000, true), (3000, false)] {
        let tag = Binary(&[7; 3000][..length]);
        let call = (word("$gen_call"), (&pid, tag), word("hello"));
        ours.peer().send(ONE, To::Name("server"), &call).unwrap();
        carry(&mut ours, &mut theirs);
        let Ok(Some((Event::Message { message, .. }, peer))) = theirs.event() else { panic!("no message") };
        match peer.body(message) {
            Body::Call { to, request } => {
                assert!(is_call && request.decode::<AtomBuf>() == Ok(word("hello")));
                peer.reply(&to, &"hello").unwrap();
            }
            other => assert!(!is_call && other == Body::Other(message)),
        }
    }
    let (here, _) = settle(&mut ours, &mut theirs);
    assert!(here.len() == 1 && here[0].contains("hello"), "{here:?}");
}

#[test]
fn silence_ends_a_connection_and_ticks_keep_it() {
    let (mut ours, mut theirs) = up(Limits::default());
    // A tick of this side every fifteen seconds; after a minute without one of the other the connection is over.
    let mut now = 0;
    for _ in 0..40 {
        now = ours.deadline();
        ours.elapsed(now).unwrap();
        assert_eq!(ours.output(), [0; 4]);
        theirs.feed(ours.output(), now);
        ours.sent(4, now);
        theirs.elapsed(now).unwrap();
        ours.feed(theirs.output(), now);
        theirs.sent(4, now);
        assert!(events(&mut ours).unwrap().is_empty() && events(&mut theirs).unwrap().is_empty());
    }
    assert_eq!(now, 40 * 15_000);
    assert_eq!(theirs.elapsed(now + 59_999), Ok(()));
    assert_eq!(theirs.elapsed(now + 60_000), Err(Closed::Ticks));
    assert_eq!(events(&mut theirs), Err(Closed::Ticks));
}

/// Does what comes to mind with a connection's events, and goes on until it ends.
fn provoke(connection: &mut Connection, chance: &mut Chance) {
    loop {
        if chance.below(100) == 0 {
            connection.put_back();
        }
        match connection.event() {
            Ok(Some((event, peer))) => match event {
                Event::Named { .. } => connection.admit(Admission::Accepted),
                Event::Message { message, from, .. } => {
                    let _ = peer.body(message);
                    if let Some(from) = from {
                        let _ = peer.call(ONE, To::Pid(from), &message);
                        let _ = peer.link(ONE, from);
                    }
                }
                Event::Monitored { monitor, .. } if chance.below(2) == 0 => {
                    assert_ne!(peer.down(monitor, &word("gone")), Err(SendError::Unknown))
                }
                Event::Rpc { call: Some(call), arguments, .. } => drop(peer.returned(call, &arguments)),
                Event::Linked { to, from } if chance.below(2) == 0 => drop(peer.unlink(to, from)),
                Event::Linked { to, .. } => drop(peer.exited(to, &word("gone"))),
                _ => {}
            },
            Ok(None) => return,
            Err(_) => return,
        }
    }
}

/// Frames as another node would send them, of all kinds.
fn frames(ours: &mut Connection, target: RemotePid, chance: &mut Chance) -> Vec<u8> {
    let bytes = any_term(chance);
    let term = Reader::new(&bytes).term().unwrap().to_buf().unwrap();
    let target = RemotePid { id: target.id + chance.below(3) as u32, ..target };
    let peer = ours.peer();
    let _ = match chance.below(8) {
        0 => peer.send(ONE, To::Pid(target), &term),
        1 => peer.send(ONE, To::Name(["net_kernel", "x"][chance.below(2)]), &term),
        2 => peer.link(ONE, target),
        3 => peer.unlink(ONE, target),
        4 => peer.monitor(ONE, To::Pid(target)).map(drop),
        5 => peer.call(ONE, To::Name("x"), &term).map(drop),
        6 => peer.exited(ONE, &term),
        _ => peer.exit_to(ONE, target, &term),
    };
    let said = ours.output().to_vec();
    ours.sent(said.len(), 0);
    said
}

#[test]
fn nothing_that_was_changed_breaks_a_connection() {
    let mut chance = Chance::new(7);
    let (mut survived, mut ended, inputs) = (0, 0, inputs(1500));
    for _ in 0..inputs {
        let limits =
            Limits { monitors: 8, links: 8, calls: 8, frame: 64 << 10, output: 20_000, ..Limits::default() };
        let (mut ours, mut theirs) = up(limits);
        let target = remote(&mut theirs, TWO);
        for _ in 0..30 {
            let mut bytes = frames(&mut ours, target, &mut chance);
            if chance.below(40) == 0 {
                // What is changed behind the length is taken for a frame.
                let length = bytes.first_chunk().map(|length| u32::from_be_bytes(*length) as usize);
                match length.filter(|length| length + 4 == bytes.len() && chance.below(3) > 0) {
                    Some(_) => {
                        let mut content = bytes.split_off(4);
                        mutate(&mut chance, &mut content);
                        bytes = [&(content.len() as u32).to_be_bytes()[..], &content].concat();
                    }
                    None => mutate(&mut chance, &mut bytes),
                }
            }
            theirs.feed(&bytes, 0);
            provoke(&mut theirs, &mut chance);
            // What is said to that is as good as anything.
            carry(&mut theirs, &mut ours);
            provoke(&mut ours, &mut chance);
            if theirs.closed().is_some() {
                break;
            }
        }
        assert!(ours.closed().is_none(), "{:?}", ours.closed());
        let [monitors, watches, calls, links] = theirs.peer().bonds();
        assert!(monitors <= 8 && watches <= 8 && calls <= 8 && links <= 8);
        assert!(theirs.output().len() <= 20_000);
        if theirs.closed().is_some() {
            ended += 1
        } else {
            survived += 1
        }
        let count: usize = theirs.peer().bonds().iter().sum();
        assert!(lost(&mut theirs).len() <= count);
    }
    assert!(ended > inputs / 5 && survived > inputs / 30, "{ended} {survived}");
}

#[test]
fn nothing_that_was_changed_breaks_a_handshake() {
    let mut chance = Chance::new(8);
    let (mut ups, inputs) = (0, inputs(20_000));
    for _ in 0..inputs {
        let (mut ours, mut theirs) = pair(Limits::default());
        for _ in 0..4 {
            for turn in 0..2 {
                let (from, to) = if turn == 0 { (&mut ours, &mut theirs) } else { (&mut theirs, &mut ours) };
                let mut bytes = from.output().to_vec();
                from.sent(bytes.len(), 0);
                if chance.below(8) == 0 && !bytes.is_empty() {
                    mutate(&mut chance, &mut bytes);
                }
                to.feed(&bytes, 0);
                provoke(to, &mut chance);
            }
        }
        ups += usize::from(ours.is_up() && theirs.is_up());
    }
    assert!(ups > inputs / 4 && ups < inputs / 20 * 19, "{ups}");
    // A frame of the handshake is short.
    let (_, mut theirs) = pair(Limits::default());
    theirs.feed(&[0xff; 2000], 0);
    assert_eq!(events(&mut theirs), Err(Closed::TooLong(0xffff)));
}
