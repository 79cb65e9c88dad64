//! Every message of `Ready` side by side, so that they are read as what they are: one voice that says what is wrong and
//! then what to change. A message that is to become another becomes another here.

use std::time::Duration;

use crate::reasons::{cases, resource};
use crate::room::{Room, TOKEN, VALUE};

/// One line per case: `reason | case | message`.
const TABLE: &str = include_str!("voice.txt");

/// What a reader stumbles over.
fn faults(message: &str) -> Vec<&'static str> {
    let mut faults = Vec::new();
    let mut fault = |is: bool, what| {
        if is {
            faults.push(what);
        }
    };
    fault(message.chars().count() > 512, "too long");
    fault(message.matches('"').count() % 2 == 1, "a quote without an end");
    fault(message.contains("\"\"") || message.contains("\\\""), "a quote within a quote");
    fault(message.ends_with(['.', ';', ' ']), "an end that is none");
    fault(message.contains(['\n', '\t']), "more than one line");
    fault(message.contains("Some(") || message.contains("None"), "a value of the program");
    fault(message.contains(VALUE) || message.contains(TOKEN) || message.contains("canary"), "a secret");
    fault(!message.contains("; "), "nothing to do about it");
    faults
}

#[tokio::test(start_paused = true)]
async fn messages_side_by_side() {
    let (mut table, mut stumbles) = (String::new(), Vec::new());
    for case in cases() {
        let room = Room::with_db(resource()).await;
        room.run_for(Duration::from_secs(5)).await;
        case.make_wrong(&room);
        room.next_report("db").await;
        let said = room.condition("db", "Ready");
        assert_eq!(said.reason, case.reason.as_str(), "{}", case.name);
        stumbles
            .extend(faults(&said.message).into_iter().map(|fault| format!("{}: {fault}: {}", case.name, said.message)));
        // The time of the last success is another matter, and asked for elsewhere.
        let message = said.message.split("; last synced at ").next().unwrap_or_default();
        table.push_str(&format!("{} | {} | {message}\n", case.reason, case.name));
    }
    assert_eq!(stumbles, Vec::<String>::new());
    assert!(table == TABLE, "the table is now:\n{table}");
}
