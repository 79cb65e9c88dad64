//! Tables of what Go itself answers (made with a Go program that calls `time.ParseDuration` and `String`), and properties.

use proptest::prelude::*;

use super::*;

/// Text, nanoseconds, and what Go writes for them.
const GO_ACCEPTS: &[(&str, i64, &str)] = &[
    ("0", 0, "0s"),
    ("-0", 0, "0s"),
    ("+0", 0, "0s"),
    ("0s", 0, "0s"),
    ("00h", 0, "0s"),
    ("0.0h", 0, "0s"),
    ("5s", 5_000_000_000, "5s"),
    ("-5s", -5_000_000_000, "-5s"),
    ("+5s", 5_000_000_000, "5s"),
    ("1478s", 1_478_000_000_000, "24m38s"),
    ("5.6s", 5_600_000_000, "5.6s"),
    ("5.s", 5_000_000_000, "5s"),
    (".5s", 500_000_000, "500ms"),
    ("1.004s", 1_004_000_000, "1.004s"),
    ("1.0040s", 1_004_000_000, "1.004s"),
    ("100.00100s", 100_001_000_000, "1m40.001s"),
    ("10ns", 10, "10ns"),
    ("11us", 11_000, "11µs"),
    ("12\u{b5}s", 12_000, "12µs"),
    ("12\u{3bc}s", 12_000, "12µs"),
    ("13ms", 13_000_000, "13ms"),
    ("1.5ms", 1_500_000, "1.5ms"),
    ("999us", 999_000, "999µs"),
    ("999999ns", 999_999, "999.999µs"),
    ("300ms", 300_000_000, "300ms"),
    ("250ms", 250_000_000, "250ms"),
    ("15m", 900_000_000_000, "15m0s"),
    ("0.25m", 15_000_000_000, "15s"),
    ("1m0.5s", 60_500_000_000, "1m0.5s"),
    ("16h", 57_600_000_000_000, "16h0m0s"),
    ("1h30m", 5_400_000_000_000, "1h30m0s"),
    ("1.5h", 5_400_000_000_000, "1h30m0s"),
    ("1h1h", 7_200_000_000_000, "2h0m0s"),
    ("10.5s4m", 250_500_000_000, "4m10.5s"),
    ("-2m3.4s", -123_400_000_000, "-2m3.4s"),
    ("1h2m3s4ms5us6ns", 3_723_004_005_006, "1h2m3.004005006s"),
    ("39h9m14.425s", 140_954_425_000_000, "39h9m14.425s"),
    (".000000001s", 1, "1ns"),
    (".0000000001s", 0, "0s"),
    // The last digit depends on Go's floating point.
    ("0.3333333333333333333h", 1_200_000_000_000, "20m0s"),
    ("0.9223372036854775807h", 3_320_413_933_267, "55m20.413933267s"),
    ("0.100000000000000000000h", 360_000_000_000, "6m0s"),
    ("0.830103483285477580700h", 2_988_372_539_827, "49m48.372539827s"),
    ("1.9999999999999999999s", 2_000_000_000, "2s"),
    // More than 53 bits, where a floating-point number would lose some.
    ("9007199254740993ns", 9_007_199_254_740_993, "2501h59m59.254740993s"),
    // The limits.
    ("2562047h", 9_223_369_200_000_000_000, "2562047h0m0s"),
    ("9223372036854775807ns", i64::MAX, "2562047h47m16.854775807s"),
    ("9223372036854775.807us", i64::MAX, "2562047h47m16.854775807s"),
    ("9223372036s854ms775us807ns", i64::MAX, "2562047h47m16.854775807s"),
    ("-9223372036854775808ns", i64::MIN, "-2562047h47m16.854775808s"),
    ("-9223372036854775.808us", i64::MIN, "-2562047h47m16.854775808s"),
    ("-2562047h47m16.854775808s", i64::MIN, "-2562047h47m16.854775808s"),
];

#[test]
fn reads_and_writes_what_go_does() {
    for (text, nanos, written) in GO_ACCEPTS {
        assert_eq!(GoDuration::parse(text), Ok(GoDuration::from_nanos(*nanos)), "{text}");
        assert_eq!(GoDuration::from_nanos(*nanos).to_string(), *written, "{text}");
        assert_eq!(GoDuration::from_nanos(*nanos).as_nanos(), *nanos, "{text}");
        assert_eq!(GoDuration::parse(written), Ok(GoDuration::from_nanos(*nanos)), "{written}");
    }
}

#[test]
fn refuses_what_go_refuses_and_says_why() {
    let texts = |texts: &[&str], expected: fn(&str) -> DurationError| {
        for text in texts {
            assert_eq!(GoDuration::parse(text), Err(expected(text)), "{text}");
        }
    };
    texts(&[""], |_| DurationError::Empty);
    texts(
        &["-", "+", "s", ".", "-.", ".s", "+.s", " 1h", "--1s", "+-1s", "h1", "abc", "\u{661}s"],
        DurationError::malformed,
    );
    texts(&["3", "1.5", "00", "0.0", "0.", "1s3"], DurationError::missing_unit);
    texts(&["1d"], |text| DurationError::unknown_unit(text, "d"));
    texts(&["1H"], |text| DurationError::unknown_unit(text, "H"));
    texts(&["1h 30m"], |text| DurationError::unknown_unit(text, "h "));
    texts(&["1s-2s"], |text| DurationError::unknown_unit(text, "s-"));
    texts(&["0x1s"], |text| DurationError::unknown_unit(text, "x"));
    texts(&["0-"], |text| DurationError::unknown_unit(text, "-"));
    texts(
        &[
            "9223372036854775808ns",
            "9223372036854775809ns",
            "9223372036854775.808us",
            "9223372036854ms775us808ns",
            "-9223372036854775809ns",
            "2562048h",
            "99999999999999999999h",
            "2562047h2562047h",
        ],
        DurationError::overflow,
    );
}

#[test]
fn where_negative_makes_no_sense_it_is_refused_and_zero_is_not() {
    assert_eq!(GoDuration::parse_non_negative("-1s"), Err(DurationError::negative("-1s")));
    assert_eq!(GoDuration::parse_non_negative("-0s"), Ok(Duration::ZERO));
    assert_eq!(GoDuration::parse_non_negative("0"), Ok(Duration::ZERO));
    assert_eq!(GoDuration::parse_non_negative("1h30m"), Ok(Duration::from_mins(90)));
    assert_eq!(GoDuration::parse_non_negative("1.5s"), Ok(Duration::from_millis(1_500)));
    assert_eq!(GoDuration::parse_non_negative("x"), Err(DurationError::malformed("x")));
}

#[test]
fn every_message_quotes_the_text_and_says_what_is_expected() {
    let cases = [
        ("", "the duration is empty (\"\"); expected a duration such as 30m, 1h30m or 1.5s"),
        ("abc", "\"abc\" is not a duration; expected a duration such as 30m, 1h30m or 1.5s"),
        (
            "30",
            "\"30\" lacks a unit after a number (ns, us, ms, s, m or h); expected a duration such as 30m, 1h30m or 1.5s",
        ),
        (
            "1d",
            "\"1d\" has the unknown unit \"d\"; the units are ns, us, ms, s, m and h; \
             expected a duration such as 30m, 1h30m or 1.5s",
        ),
        ("-1s", "\"-1s\" is negative; expected zero or more, such as 0s, 30m or 1h30m"),
        ("2562048h", "\"2562048h\" is too long; expected at most 2562047h (about 292 years)"),
    ];
    for (text, message) in cases {
        assert_eq!(GoDuration::parse_non_negative(text).unwrap_err().to_string(), message);
    }
}

#[test]
fn a_message_neither_breaks_its_line_nor_repeats_a_novel() {
    let message = GoDuration::parse_non_negative(&format!("1\n{}", "é".repeat(100_000))).unwrap_err().to_string();
    assert!(!message.contains('\n'), "{message}");
    assert!(message.len() < 500, "{}", message.len());
}

#[test]
fn what_is_longer_than_go_can_say_is_the_longest_it_can() {
    assert_eq!(GoDuration::from(Duration::MAX).to_string(), "2562047h47m16.854775807s");
    assert_eq!(GoDuration::from(Duration::from_millis(30_625)).to_string(), "30.625s");
    assert_eq!(GoDuration::from(Duration::ZERO).to_string(), "0s");
}

proptest! {
    #[test]
    fn what_was_written_reads_back_the_same(nanos: i64) {
        let span = GoDuration::from_nanos(nanos);
        prop_assert_eq!(span.to_string().parse::<GoDuration>(), Ok(span));
    }

    // Most 64-bit numbers are centuries; the spans in use are short.
    #[test]
    fn short_spans_read_back_the_same(nanos in -10_000_000_000_000_i64..10_000_000_000_000, round in 0_u32..12) {
        let span = GoDuration::from_nanos(nanos / 10_i64.pow(round) * 10_i64.pow(round));
        prop_assert_eq!(GoDuration::parse(&span.to_string()), Ok(span));
    }

    #[test]
    fn any_text_gets_an_answer(text in "[-+]?([0-9.]{0,30}(ns|us|µs|ms|s|m|h|é|)){0,4}") {
        if let Ok(span) = GoDuration::parse(&text) {
            prop_assert_eq!(GoDuration::parse(&span.to_string()), Ok(span));
        }
    }
}
