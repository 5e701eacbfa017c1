//! How long something is waited for that has to come. No test is about how fast the host is: these end what hangs, and
//! nothing else.

use core::time::Duration;

/// Far longer than anything in a test takes, on a host that has twenty other things to do besides.
pub const HANGS_AFTER: Duration = Duration::from_secs(240);

/// How long a whole test may take when the boot arguments do not say: more, so that a test can say itself what hangs.
pub const TEST_HANGS_AFTER: Duration = Duration::from_secs(600);
