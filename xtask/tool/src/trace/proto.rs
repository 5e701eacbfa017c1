//! Protocol buffers, as much of them as a trace needs: fields of three wire types.

const VARINT: u64 = 0;
const FIXED64: u64 = 1;
const BYTES: u64 = 2;

/// A message that is being written.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Message(Vec<u8>);

impl Message {
    /// One without fields.
    pub fn new() -> Self {
        Self::default()
    }

    fn varint(&mut self, mut number: u64) {
        while number > 0x7f {
            self.0.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.0.push(number as u8);
    }

    /// With a number, whose type is `uint64`, `int64`, `uint32`, or an enumeration.
    pub fn number(mut self, field: u32, number: u64) -> Self {
        self.varint((u64::from(field) << 3) | VARINT);
        self.varint(number);
        self
    }

    /// With a number of the type `fixed64`.
    pub fn fixed(mut self, field: u32, number: u64) -> Self {
        self.varint((u64::from(field) << 3) | FIXED64);
        self.0.extend(number.to_le_bytes());
        self
    }

    /// With a text.
    pub fn text(self, field: u32, text: &str) -> Self {
        self.bytes(field, text.as_bytes())
    }

    /// With a message in it.
    pub fn message(self, field: u32, message: &Self) -> Self {
        self.bytes(field, &message.0)
    }

    fn bytes(mut self, field: u32, bytes: &[u8]) -> Self {
        self.varint((u64::from(field) << 3) | BYTES);
        self.varint(bytes.len() as u64);
        self.0.extend(bytes);
        self
    }

    /// As it goes into a file.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::Message;

    /// A field's value.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub enum Value {
        Number(u64),
        Fixed(u64),
        Bytes(Vec<u8>),
    }

    fn varint(bytes: &mut &[u8]) -> u64 {
        let mut number = 0;
        for shift in (0..70).step_by(7) {
            let (first, rest) = bytes.split_first().expect("a byte");
            *bytes = rest;
            number |= u64::from(first & 0x7f) << shift;
            if first & 0x80 == 0 {
                return number;
            }
        }
        panic!("a number without end")
    }

    /// The fields of a message.
    pub fn fields(mut bytes: &[u8]) -> Vec<(u64, Value)> {
        let mut fields = Vec::new();
        while !bytes.is_empty() {
            let tag = varint(&mut bytes);
            let value = match tag & 7 {
                0 => Value::Number(varint(&mut bytes)),
                1 => {
                    let (number, rest) = bytes.split_first_chunk().expect("eight bytes");
                    bytes = rest;
                    Value::Fixed(u64::from_le_bytes(*number))
                }
                2 => {
                    let length = varint(&mut bytes) as usize;
                    let (value, rest) = bytes.split_at(length);
                    bytes = rest;
                    Value::Bytes(value.to_vec())
                }
                other => panic!("wire type {other}"),
            };
            fields.push((tag >> 3, value));
        }
        fields
    }

    #[test]
    fn the_documentation_s_examples() {
        // From the description of the encoding: a = 150, and the text "testing".
        assert_eq!(Message::new().number(1, 150).as_bytes(), [0x08, 0x96, 0x01]);
        assert_eq!(Message::new().text(2, "testing").as_bytes(), b"\x12\x07testing");
        let inner = Message::new().number(1, 150);
        assert_eq!(Message::new().message(3, &inner).as_bytes(), [0x1a, 0x03, 0x08, 0x96, 0x01]);
        assert_eq!(Message::new().fixed(1, 1).as_bytes(), [0x09, 1, 0, 0, 0, 0, 0, 0, 0]);
    }
}
