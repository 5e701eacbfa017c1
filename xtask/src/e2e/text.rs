//! A large text to count: repeatable, with words as unevenly spread as in a language, and with what word
//! counters stumble over (capitals, apostrophes, digits, bytes above 0x7f, long words, runs of separators).

use crate::random::Random;

/// So many different words.
const WORDS: usize = 20_000;

/// Makes a text of at least so many bytes that ends with a line end.
pub fn large_text(bytes: usize) -> Vec<u8> {
    let mut random = Random::new(0x6d61_6770_6965);
    let vocabulary: Vec<Vec<u8>> = (0..WORDS).map(|number| word(number, &mut random)).collect();
    let mut text = Vec::with_capacity(bytes + 256);
    while text.len() < bytes {
        let rank = rank(&mut random);
        let start = text.len();
        text.extend_from_slice(&vocabulary[rank]);
        if random.below(8) == 0 {
            text[start].make_ascii_uppercase();
        }
        text.extend_from_slice(match random.below(16) {
            0 => b", ",
            1 => b".\n",
            2 => b" -- ",
            3 => b"\r\n\t",
            _ => b" ",
        });
    }
    text.push(b'\n');
    text
}

/// A small rank is likelier: about as likely as one over itself.
fn rank(random: &mut Random) -> usize {
    let limit = 1 + random.below(WORDS);
    random.below(limit)
}

fn word(number: usize, random: &mut Random) -> Vec<u8> {
    const LETTERS: &[u8] = b"abcdefghijklmnopqrstuvwxyz";
    let length = if number.is_multiple_of(997) { 300 } else { 1 + random.below(10) };
    let mut word: Vec<u8> = (0..length).map(|_| LETTERS[random.below(LETTERS.len())]).collect();
    match number % 11 {
        0 => word.extend_from_slice(b"'s"),
        1 => word.extend_from_slice(number.to_string().as_bytes()),
        2 => word.extend_from_slice("\u{e9}\u{df}".as_bytes()),
        _ => {}
    }
    word
}

#[cfg(test)]
mod tests {
    use super::large_text;
    use crate::e2e::reference::Count;

    #[test]
    fn is_large_repeatable_and_varied() {
        let text = large_text(200_000);
        assert!(text.len() >= 200_000);
        assert_eq!(text, large_text(200_000));
        let count = Count::of(&text);
        assert!(count.each.len() > 5_000);
        assert!(count.each.keys().any(|word| word.len() > 200));
        let top = count.top_ten_counts();
        assert!(top[0] > 2 * top[9] || top[0] > 50, "{top:?}");
    }
}
