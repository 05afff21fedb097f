//! The report as a self-contained HTML page.

use std::fmt::Write;

use super::{
    Check, LISTED_FAILURES, LoadReport, ReportEntry,
    charts::charts,
    plot::{COLOURS, Plot, escape_html},
};

const STYLE: &str = include_str!("report.css");

impl LoadReport {
    /// Returns the report as an HTML page without external resources.
    pub fn to_html(&self) -> String {
        let class = if self.checks.has_passed() { "good" } else { "bad" };
        let verdict = self.checks.verdict();
        let mut page = format!(
            "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
             <title>sparks load: {verdict}</title>\n<style>\n{STYLE}</style></head>\n<body>\n\
             <h1>sparks load</h1>\n<p class=\"verdict {class}\">{verdict}</p>\n"
        );
        table(&mut page, "Measurements", self.measurement_rows());
        checks(&mut page, &self.checks.0);
        page.push_str("<h2>Over time</h2>\n<div class=\"plots\">\n");
        charts(&self.measurements).iter().for_each(|plot| figure(&mut page, plot));
        page.push_str("</div>\n");
        table(&mut page, "Run", rows(&self.options));
        table(&mut page, "Machine", rows(&self.machine));
        page.push_str("</body></html>\n");
        page
    }
}

fn rows(entries: &[ReportEntry]) -> Vec<(&'static str, String)> {
    entries.iter().map(|entry| (entry.label, entry.value.clone())).collect()
}

fn table(page: &mut String, title: &str, rows: Vec<(&str, String)>) {
    let _ = write!(page, "<h2>{title}</h2>\n<table>\n");
    for (name, text) in rows {
        let _ = writeln!(page, "<tr><th>{}</th><td>{}</td></tr>", escape_html(name), escape_html(&text));
    }
    page.push_str("</table>\n");
}

fn checks(page: &mut String, checks: &[Check]) {
    page.push_str("<h2>Checks</h2>\n<ul class=\"checks\">\n");
    for check in checks {
        let class = if check.has_passed() { "good" } else { "bad" };
        let mark = if check.has_passed() { "✓" } else { "✗" };
        let about = if check.about.is_empty() {
            String::new()
        } else {
            format!(" <small>{}</small>", escape_html(&check.about))
        };
        let _ = write!(page, "<li><b class=\"{class}\">{mark}</b> {}{about}", escape_html(check.name));
        if !check.has_passed() {
            page.push_str("<ul>");
            for failure in check.failures.iter().take(LISTED_FAILURES) {
                let _ = write!(page, "<li>{}</li>", escape_html(failure));
            }
            if check.failures.len() > LISTED_FAILURES {
                let _ = write!(page, "<li>and {} more</li>", check.failures.len() - LISTED_FAILURES);
            }
            page.push_str("</ul>");
        }
        page.push_str("</li>\n");
    }
    page.push_str("</ul>\n");
}

fn figure(page: &mut String, plot: &Plot) {
    let _ = write!(page, "<figure><figcaption>{}", escape_html(&plot.title));
    if plot.series.len() > 1 {
        page.push_str("<span class=\"legend\">");
        for (n, series) in plot.series.iter().enumerate() {
            let _ = write!(page, "<span><i class=\"c{}\"></i>{}</span>", n % COLOURS, escape_html(&series.name));
        }
        page.push_str("</span>");
    }
    let _ = writeln!(page, "</figcaption>{}</figure>", plot.to_svg());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CheckReport, Measurements};

    fn report(failures: Vec<String>) -> LoadReport {
        let check = Check { name: "every tag is right", about: "7 tags".into(), failures };
        let options = vec![ReportEntry::new("place", "place", "a <b> & c")];
        let (measurements, checks) = (Measurements::default(), CheckReport(vec![check]));
        LoadReport { options, machine: Vec::new(), measurements, checks }
    }

    #[test]
    fn a_page_has_no_external_resources() {
        let page = report(Vec::new()).to_html();
        for external in ["src=", "href=", "url(", "@import", "<script"] {
            assert!(!page.contains(external), "{external}");
        }
        assert!(page.contains("a &lt;b&gt; &amp; c") && page.contains("all checks passed"), "{page}");
        assert!(page.contains("prefers-color-scheme: dark") && page.contains("width=device-width"));
        assert_eq!(page.matches("<svg").count(), page.matches("</svg>").count());
    }

    #[test]
    fn the_first_failures_of_a_check_are_listed() {
        let page = report((1..=9).map(|n| format!("photo {n} is tagged none")).collect()).to_html();
        assert!(page.contains("verdict bad") && page.contains("photo 5 is tagged none"), "{page}");
        assert!(!page.contains("photo 6") && page.contains("and 4 more"), "{page}");
    }
}
