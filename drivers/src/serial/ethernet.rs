//! The heads that a network's frames have and a serial line's packets have not. At the other end of the line there is one machine, which has no address of Ethernet: it is given one, and
//! questions for addresses are answered here, for whatever address it is.

/// So long is a head.
pub const HEAD_BYTES: usize = 14;
/// This side's address, and that of all others: locally administered.
pub const OWN: [u8; 6] = [2, 0, 0, 0, 2, 1];
const OTHERS: [u8; 6] = [2, 0, 0, 0, 2, 2];

const IPV4: [u8; 2] = [0x08, 0x00];
const ARP: [u8; 2] = [0x08, 0x06];
/// A question and an answer for Ethernet and IPv4 begin so (RFC 826).
const QUESTION: [u8; 8] = [0, 1, 0x08, 0x00, 6, 4, 0, 1];
const ANSWER: [u8; 8] = [0, 1, 0x08, 0x00, 6, 4, 0, 2];
/// An answer with its head.
pub type Answer = [u8; HEAD_BYTES + 28];

/// The packet in a frame that is for the line.
pub fn packet_in(frame: &[u8]) -> Option<&[u8]> {
    let (head, packet) = frame.split_at_checked(HEAD_BYTES)?;
    (head[12..] == IPV4 && !packet.is_empty()).then_some(packet)
}

/// The head of a packet that has come, unless it is none of IPv4.
pub fn head_of(packet: &[u8]) -> Option<[u8; HEAD_BYTES]> {
    (packet.first()? >> 4 == 4).then(|| head(IPV4))
}

fn head(kind: [u8; 2]) -> [u8; HEAD_BYTES] {
    let mut head = [0; HEAD_BYTES];
    head[..6].copy_from_slice(&OWN);
    head[6..12].copy_from_slice(&OTHERS);
    head[12..].copy_from_slice(&kind);
    head
}

/// The answer to a question for an address, if the frame is one.
pub fn answer_to(frame: &[u8]) -> Option<Answer> {
    let (head_there, question) = frame.split_at_checked(HEAD_BYTES)?;
    if head_there[12..] != ARP || question.len() < 28 || question[..8] != QUESTION {
        return None;
    }
    let (asker, asked) = (&question[8..18], &question[24..28]);
    // Who asks for its own address looks whether another has it: nobody does.
    if asker[6..] == *asked {
        return None;
    }
    let mut answer = [0; HEAD_BYTES + 28];
    answer[..HEAD_BYTES].copy_from_slice(&head(ARP));
    let body = &mut answer[HEAD_BYTES..];
    body[..8].copy_from_slice(&ANSWER);
    body[8..14].copy_from_slice(&OTHERS);
    body[14..18].copy_from_slice(asked);
    body[18..].copy_from_slice(asker);
    Some(answer)
}

#[cfg(test)]
mod tests {
    use super::{HEAD_BYTES, OTHERS, OWN, answer_to, head_of, packet_in};
    use std::vec::Vec;

    fn question(asked: [u8; 4]) -> Vec<u8> {
        let mut frame = [[0xff; 6], OWN].concat();
        frame.extend([0x08, 0x06, 0, 1, 0x08, 0, 6, 4, 0, 1]);
        frame.extend(OWN);
        frame.extend([10, 0, 2, 15, 0, 0, 0, 0, 0, 0]);
        frame.extend(asked);
        frame
    }

    #[test]
    fn questions_are_answered_for_everybody_but_who_asks() {
        let answer = answer_to(&question([10, 0, 2, 2])).unwrap();
        assert_eq!((&answer[..6], &answer[6..12], &answer[12..14]), (&OWN[..], &OTHERS[..], &[8, 6][..]));
        assert_eq!(&answer[HEAD_BYTES + 6..HEAD_BYTES + 18], [&[0, 2][..], &OTHERS, &[10, 0, 2, 2]].concat());
        assert_eq!(&answer[HEAD_BYTES + 18..], [&OWN[..], &[10, 0, 2, 15]].concat());
        assert_eq!(answer_to(&question([10, 0, 2, 15])), None);
        let whole = question([10, 0, 2, 2]);
        assert!((0..whole.len()).all(|end| answer_to(&whole[..end]).is_none()));
        assert_eq!(answer_to(&answer), None, "an answer is no question");
    }

    #[test]
    fn heads_come_off_and_on() {
        let packet = [0x45, 0, 0, 20];
        let frame = [&head_of(&packet).unwrap()[..], &packet].concat();
        assert_eq!(packet_in(&frame), Some(&packet[..]));
        assert_eq!(packet_in(&question([1, 2, 3, 4])), None);
        assert_eq!(
            (packet_in(&frame[..HEAD_BYTES]), packet_in(&[]), head_of(&[]), head_of(&[0x60])),
            (None, None, None, None)
        );
    }
}
