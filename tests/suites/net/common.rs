//! Two networks, what is sent between them, and who sends it back: what the tests on the host have too, and what counts on this suite's complaints.

use alloc::vec;
use alloc::vec::Vec;

use magpie::sched;
use magpie_net::TcpStream;
use magpie_tests::{Outcome, ensure_eq};

#[path = "../../../net/tests/common/mod.rs"]
mod shared;
pub use shared::{HERE, THERE, at, bytes, echo, pair};

/// Sends so many bytes and reads them back, both at once; and closes.
pub async fn there_and_back(stream: TcpStream, seed: u64, count: usize) -> Outcome {
    let (mut read, mut write) = stream.split();
    let writes = sched::spawn(async move {
        let mut sent = 0;
        let mut block: Vec<u8> = vec![0; 5000];
        while sent < count {
            let now = block.len().min(count - sent);
            bytes(seed, sent, &mut block[..now]);
            write.write_all(&block[..now]).await?;
            sent += now;
        }
        write.close().await
    })?;
    let mut back = 0;
    let (mut block, mut expected): (Vec<u8>, Vec<u8>) = (vec![0; 3001], vec![0; 3001]);
    loop {
        let come = read.read(&mut block).await?;
        if come == 0 {
            break;
        }
        bytes(seed, back, &mut expected[..come]);
        if block[..come] != expected[..come] {
            return Err("a byte is another".into());
        }
        back += come;
    }
    ensure_eq!(back, count, "bytes that came back");
    writes.await??;
    Ok(())
}

/// Bytes of the heap that are in use; none on the host, whose allocator does not say.
pub fn heap_in_use() -> usize {
    #[cfg(target_os = "none")]
    return magpie::internals::mem::heap::HEAP.usage().0;
    #[cfg(not(target_os = "none"))]
    0
}
