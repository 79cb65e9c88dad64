//! Calls about many workloads of one resource, within one share of its pass.
//!
//! Each call gets its turn however many before it hang, and all of them together end with the share: a list of stalled
//! workloads may neither keep its Secret from being written nor keep the one that answers, last in the list, from being
//! restarted (rule 6). The turns of a long list are short, so whoever comes first has as long as any call has, and each
//! pass begins somewhere else: no workload that answers slowly is cut off for ever (I1). A call that is cut off is one
//! that did not answer; it must never count as done.

use std::time::Duration;

use futures::StreamExt;
use tokio::time::Instant;

/// Workloads of one resource that are read or stamped at a time: enough that one which hangs for its ten seconds leaves
/// the others unharmed, and few enough that a list of hundreds does not crowd out other resources.
const AT_A_TIME: usize = 8;

/// The share of a pass's deadline that one round of calls over the list may take: of the default 2 min 20 s, which is two
/// calls to their very end. The dearest pass then stays at the deadline: token and target 2 x 10 s, an answer of FerrVault
/// 30.6 s, workloads 20 s, debt and target 2 x 10 s, stamps 20 s, status 10 s.
const SHARE: u32 = 6;

/// Makes `call` for each of `items`. Gives what came of each in the order of `items`: `None` where no answer came in its
/// turn. `draw`: a number from 0 up to 1, which tells where in a long list to begin.
pub(super) async fn each<T: Clone, R, F: Future<Output = R>>(
    pass: Duration,
    draw: f64,
    items: Vec<T>,
    call: impl Fn(T) -> F,
) -> Vec<(T, Option<R>)> {
    let (share, count) = (pass / SHARE, items.len());
    let end = Instant::now() + share;
    let mut order: Vec<(usize, T)> = items.into_iter().enumerate().collect();
    if count > AT_A_TIME {
        order.rotate_left(beginning(count, draw));
    }
    let mut done: Vec<(usize, (T, Option<R>))> = futures::stream::iter(order.into_iter().enumerate())
        .map(|(place, (index, item))| {
            let left = end.saturating_duration_since(Instant::now());
            let turn = if count > AT_A_TIME && place < AT_A_TIME { share / 2 } else { turn(left, count - place) };
            let answer = tokio::time::timeout(turn, call(item.clone()));
            async move { (index, (item, answer.await.ok())) }
        })
        // Not in order: one that hangs at the head of the list must not keep the rest from beginning.
        .buffer_unordered(AT_A_TIME)
        .collect()
        .await;
    done.sort_unstable_by_key(|(index, _)| *index);
    done.into_iter().map(|(_, outcome)| outcome).collect()
}

/// How long a call may take that begins while `calls`, itself among them, have not begun, so that the last one gets as
/// much as the first. Calls that answer leave their time to those after them.
fn turn(left: Duration, calls: usize) -> Duration {
    let rounds = u32::try_from(calls.div_ceil(AT_A_TIME)).unwrap_or(u32::MAX).max(1);
    left / rounds
}

/// Where in a list of `count` to begin.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "lists are short"
)]
fn beginning(count: usize, draw: f64) -> usize {
    ((count as f64 * draw) as usize).min(count.saturating_sub(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PASS: Duration = Duration::from_mins(2);

    /// Calls of which those in `hang` never answer; says how long all took, and who answered.
    async fn made(count: usize, hang: impl Fn(usize) -> bool) -> (Duration, Vec<bool>) {
        let started = Instant::now();
        let done = each(PASS, 0.0, (0..count).collect(), |index| {
            let hangs = hang(index);
            async move {
                if hangs {
                    std::future::pending::<()>().await;
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        })
        .await;
        assert!(done.iter().map(|(index, _)| *index).eq(0..count), "in the order of the list");
        (started.elapsed(), done.into_iter().map(|(_, answer)| answer.is_some()).collect())
    }

    #[tokio::test(start_paused = true)]
    async fn however_many_hang_the_share_is_kept_and_whoever_answers_is_heard() {
        let share = PASS / SHARE;
        for count in [1, 8, 9, 88, 256] {
            let (took, answered) = made(count, |_| true).await;
            assert!(took <= share && took > share / 2, "{count}: {took:?}");
            assert!(answered.iter().all(|heard| !heard), "{count}");
        }
        for count in [9, 88, 256] {
            let last = count - 1;
            let (took, answered) = made(count, |index| index != last).await;
            assert!(took <= share, "{count}: {took:?}");
            assert_eq!(answered.iter().position(|heard| *heard), Some(last), "{count}: the last one had its turn");
            let (took, answered) = made(count, |index| index == 0).await;
            assert_eq!(answered.iter().filter(|heard| !**heard).count(), 1, "{count}");
            assert!(took <= share, "{count}: {took:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_few_have_as_long_as_any_call_has() {
        let started = Instant::now();
        let slow = Duration::from_secs(10);
        let done = each(PASS, 0.7, vec![(); AT_A_TIME], |()| tokio::time::sleep(slow)).await;
        assert!(done.iter().all(|((), answer)| answer.is_some()), "{done:?}");
        assert_eq!(started.elapsed(), slow);
        assert!(each(PASS, 0.7, Vec::<()>::new(), |()| std::future::ready(())).await.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_comes_first_in_a_long_list_has_as_long_as_any_call_and_each_comes_first_at_some_draw() {
        let (count, slow) = (256_usize, Duration::from_secs(9));
        let mut heard = vec![false; count];
        for tenth_of_percent in 0..1_000 {
            let draw = f64::from(tenth_of_percent) / 1_000.0;
            let done = each(PASS, draw, (0..count).collect(), |_| tokio::time::sleep(slow)).await;
            assert!(done.iter().map(|(index, _)| *index).eq(0..count), "in the order of the list");
            for (index, answer) in done {
                heard[index] |= answer.is_some();
            }
        }
        assert!(heard.iter().all(|heard| *heard), "{heard:?}");
    }
}
