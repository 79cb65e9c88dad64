//! The operator with the hooks of its end-to-end tests. Exists only under the feature `test-hooks`; no image contains it.

use std::process::ExitCode;

#[path = "main.rs"]
mod shipped;

fn main() -> ExitCode {
    ferrvault_operator::hooks::arm();
    shipped::main()
}
