//! How long a call takes at most, with the default policy, under paused time.

use ferrvault_vault::{RetryPolicy, VaultError};
use tokio::net::TcpListener;
use tokio::time::Instant;

use crate::{bearer, client, cloud};

/// With time paused, the clock jumps to the next timer whenever nothing else can happen, and nothing can happen on a
/// socket that is never accepted. So the whole default policy runs off in no time.
#[tokio::test(start_paused = true)]
async fn no_call_outlasts_the_longest_call() {
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let policy = RetryPolicy::default();
    let client = client(&format!("http://{}", silent.local_addr().unwrap()), policy.clone());
    for _ in 0..20 {
        let start = Instant::now();
        let error = client.reveal(&bearer(), &cloud(&["A"])).await.unwrap_err();
        let elapsed = start.elapsed();
        assert_eq!(error, VaultError::TimedOut { limit: policy.attempt_timeout });
        assert!(elapsed <= policy.longest_call(), "{elapsed:?}");
        assert!(elapsed >= policy.attempt_timeout * policy.attempts, "{elapsed:?}");
    }
}
