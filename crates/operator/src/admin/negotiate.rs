//! In which of two formats a scraper gets its page.
//!
//! OpenMetrics goes to whoever prefers it, as Prometheus does: the page ends with a mark, so that one which was cut off
//! on its way fails the scrape instead of looking like objects that are gone. Everybody else, people with `curl` among
//! them, gets the older text format. Both say the same under the same names. An unreadable header is no error: it gets
//! what everybody can read.

use http::HeaderMap;
use http::header::ACCEPT;
use prometheus_client::encoding::prometheus_text;

/// The one version of OpenMetrics that is written here.
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// How a page of metrics is written down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// The text format of Prometheus, version 0.0.4.
    Text,
    /// OpenMetrics 1.0.0.
    OpenMetrics,
}

impl Format {
    /// The format that `headers` ask for.
    pub(super) fn wanted(headers: &HeaderMap) -> Self {
        let accepted = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
        let (mut text, mut open_metrics) = (0.0_f32, 0.0_f32);
        for range in accepted.flat_map(|value| value.split(',')) {
            let mut parts = range.split(';').map(str::trim);
            let of = match parts.next().unwrap_or_default().to_ascii_lowercase().as_str() {
                "application/openmetrics-text" => &mut open_metrics,
                "text/plain" => &mut text,
                // Who takes anything gets what anybody can read, so a wildcard changes nothing.
                _ => continue,
            };
            *of = of.max(weight(parts));
        }
        if open_metrics > 0.0 && open_metrics >= text { Self::OpenMetrics } else { Self::Text }
    }

    /// What the header `Content-Type` says of it.
    pub const fn content_type(self) -> &'static str {
        match self {
            Self::Text => prometheus_text::CONTENT_TYPE,
            Self::OpenMetrics => OPEN_METRICS,
        }
    }
}

/// How much a media range with these parameters is wanted; nothing when it is a version that is not written here.
fn weight<'a>(parameters: impl Iterator<Item = &'a str>) -> f32 {
    let mut weight = 1.0;
    for (name, value) in parameters.filter_map(|parameter| parameter.split_once('=')) {
        match name.trim().to_ascii_lowercase().as_str() {
            "q" => weight = value.trim().parse().unwrap_or(0.0),
            "version" if !["1.0.0", "0.0.4"].contains(&value.trim().trim_matches('"')) => return 0.0,
            _ => {}
        }
    }
    weight
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn open_metrics_goes_to_whoever_prefers_it_and_text_to_everybody_else() {
        for (who, accept, expected) in [
            ("nobody says anything", None, Format::Text),
            ("curl", Some("*/*"), Format::Text),
            ("a browser", Some("text/html,application/xhtml+xml,*/*;q=0.8"), Format::Text),
            (
                "Prometheus 2",
                Some(
                    "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,\
                     text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
                ),
                Format::OpenMetrics,
            ),
            (
                "Prometheus 3, which takes what it is given",
                Some(
                    "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,\
                     application/openmetrics-text;version=0.0.1;q=0.5,\
                     text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2",
                ),
                Format::OpenMetrics,
            ),
            (
                "Prometheus with text only",
                Some("text/plain;version=0.0.4;q=0.5,application/openmetrics-text;version=1.0.0;q=0.4"),
                Format::Text,
            ),
            ("an older version is not written", Some("application/openmetrics-text;version=0.0.1"), Format::Text),
            ("with blanks and capitals", Some(" Application/OpenMetrics-Text ; Q = 0.9 "), Format::OpenMetrics),
            ("refused in so many words", Some("application/openmetrics-text;q=0, */*"), Format::Text),
            ("nonsense", Some(";;;=,,q=x"), Format::Text),
        ] {
            let mut headers = HeaderMap::new();
            if let Some(accept) = accept {
                headers.insert(ACCEPT, HeaderValue::from_static(accept));
            }
            assert_eq!(Format::wanted(&headers), expected, "{who}");
        }
    }

    #[test]
    fn several_headers_count_as_one() {
        let mut headers = HeaderMap::new();
        headers.append(ACCEPT, HeaderValue::from_static("text/plain;q=0.5"));
        headers.append(ACCEPT, HeaderValue::from_static("application/openmetrics-text;q=0.7"));
        assert_eq!(Format::wanted(&headers), Format::OpenMetrics);
    }
}
