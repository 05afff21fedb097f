//! The report as a page that needs nothing beside itself.

use std::fmt::Write;

use super::{
    Check, Report,
    charts::charts,
    plot::{COLOURS, Plot, escaped},
    report::TOLD,
};

const STYLE: &str = include_str!("page.css");

impl Report {
    /// The whole page.
    pub fn to_html(&self) -> String {
        let (class, verdict) = match self.outcome.holds() {
            true => ("good", "everything is as it must be"),
            false => ("bad", "the outcome is wrong"),
        };
        let mut page = format!(
            "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
             <title>sparks load: {verdict}</title>\n<style>\n{STYLE}</style></head>\n<body>\n\
             <h1>sparks load</h1>\n<p class=\"verdict {class}\">{verdict}</p>\n"
        );
        table(&mut page, "Figures", &self.rows());
        checks(&mut page, &self.outcome.0);
        page.push_str("<h2>Over time</h2>\n<div class=\"plots\">\n");
        charts(&self.figures).iter().for_each(|plot| figure(&mut page, plot));
        page.push_str("</div>\n");
        table(&mut page, "Run", &self.settings);
        table(&mut page, "Machine", &self.machine);
        page.push_str("</body></html>\n");
        page
    }
}

fn table(page: &mut String, title: &str, rows: &[(&str, String)]) {
    let _ = write!(page, "<h2>{title}</h2>\n<table>\n");
    for (name, text) in rows {
        let _ = writeln!(page, "<tr><th>{}</th><td>{}</td></tr>", escaped(name), escaped(text));
    }
    page.push_str("</table>\n");
}

fn checks(page: &mut String, checks: &[Check]) {
    page.push_str("<h2>Outcome</h2>\n<ul class=\"checks\">\n");
    for check in checks {
        let class = if check.holds() { "good" } else { "bad" };
        let mark = if check.holds() { "✓" } else { "✗" };
        let about =
            if check.about.is_empty() { String::new() } else { format!(" <small>{}</small>", escaped(&check.about)) };
        let _ = write!(page, "<li><b class=\"{class}\">{mark}</b> {}{about}", escaped(check.name));
        if !check.holds() {
            page.push_str("<ul>");
            for failure in check.failures.iter().take(TOLD) {
                let _ = write!(page, "<li>{}</li>", escaped(failure));
            }
            if check.failures.len() > TOLD {
                let _ = write!(page, "<li>and {} more</li>", check.failures.len() - TOLD);
            }
            page.push_str("</ul>");
        }
        page.push_str("</li>\n");
    }
    page.push_str("</ul>\n");
}

fn figure(page: &mut String, plot: &Plot) {
    let _ = write!(page, "<figure><figcaption>{}", escaped(&plot.title));
    if plot.lines.len() > 1 {
        page.push_str("<span class=\"legend\">");
        for (n, line) in plot.lines.iter().enumerate() {
            let _ = write!(page, "<span><i class=\"c{}\"></i>{}</span>", n % COLOURS, escaped(&line.name));
        }
        page.push_str("</span>");
    }
    let _ = writeln!(page, "</figcaption>{}</figure>", plot.to_svg());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::{Figures, Outcome};

    fn report(failures: Vec<String>) -> Report {
        let check = Check { name: "every tag is right", about: "7 tags".into(), failures };
        let settings = vec![("place", "a <b> & c".to_owned())];
        Report { settings, machine: Vec::new(), figures: Figures::default(), outcome: Outcome(vec![check]) }
    }

    #[test]
    fn a_page_needs_nothing_beside_itself() {
        let page = report(Vec::new()).to_html();
        for elsewhere in ["src=", "href=", "url(", "@import", "<script"] {
            assert!(!page.contains(elsewhere), "{elsewhere}");
        }
        assert!(page.contains("a &lt;b&gt; &amp; c") && page.contains("everything is as it must be"), "{page}");
        assert!(page.contains("prefers-color-scheme: dark") && page.contains("width=device-width"));
        assert_eq!(page.matches("<svg").count(), page.matches("</svg>").count());
    }

    #[test]
    fn what_is_wrong_is_told_first_and_not_at_length() {
        let page = report((1..=9).map(|n| format!("photo {n} is tagged nobody")).collect()).to_html();
        assert!(page.contains("verdict bad") && page.contains("photo 5 is tagged nobody"), "{page}");
        assert!(!page.contains("photo 6") && page.contains("and 4 more"), "{page}");
    }
}
