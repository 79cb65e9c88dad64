//! What ships has no doors for tests: neither the variable that opens them nor a word of what they say is in the program.

#![allow(clippy::unwrap_used, reason = "tests")]

#[test]
fn only_a_program_built_with_the_test_hooks_has_them() {
    let program = std::fs::read(env!("CARGO_BIN_EXE_ferrvault-operator")).unwrap();
    let program = String::from_utf8_lossy(&program);
    let has = |text: &str| program.contains(text);
    // It is the program, and its texts can be found in it.
    assert!(has("KUBECONFIG"));
    for trace in ["FERRVAULT_TEST_HOOKS", "hold-passes", "block-runtime", "clock-offset"] {
        assert_eq!(has(trace), cfg!(feature = "test-hooks"), "{trace}");
    }
}
