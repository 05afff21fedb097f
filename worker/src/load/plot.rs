//! Plots as SVG, drawn by nobody else.

use std::fmt::Write;

use super::ticks::Ticks;

/// Lines over two axes that start at 0.
#[derive(Debug, Clone, PartialEq)]
pub struct Plot {
    /// What it shows.
    pub title: String,
    /// Across.
    pub x: Axis,
    /// Up.
    pub y: Axis,
    /// What is drawn, the first in front.
    pub lines: Vec<Line>,
}

/// One axis.
#[derive(Debug, Clone, PartialEq)]
pub struct Axis {
    /// What it measures, with its unit.
    pub name: String,
    /// Whether halves mean nothing.
    pub whole: bool,
}

/// One line. Its name is in the legend, where there are several.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// What it is.
    pub name: String,
    /// Where it goes, from left to right.
    pub points: Vec<(f64, f64)>,
}

const WIDTH: f64 = 480.0;
const HEIGHT: f64 = 250.0;
const LEFT: f64 = 54.0;
const RIGHT: f64 = 18.0;
const TOP: f64 = 28.0;
const BOTTOM: f64 = 44.0;
/// As many steps as have room for their numbers.
const STEPS_ACROSS: u32 = 6;
const STEPS_UP: u32 = 5;

/// Colours that a page has.
pub const COLOURS: usize = 6;

impl Plot {
    /// The plot, for a page that says what its classes look like.
    pub fn to_svg(&self) -> String {
        let most = |of: fn(&(f64, f64)) -> f64| {
            self.lines.iter().flat_map(|line| &line.points).map(of).filter(|n| n.is_finite()).fold(0.0, f64::max)
        };
        let (across, up) = (most(|point| point.0), most(|point| point.1));
        let (x, y) = (Ticks::up_to(across, STEPS_ACROSS, self.x.whole), Ticks::up_to(up, STEPS_UP, self.y.whole));
        // Time ends where the run does; heights end at a round number.
        let frame = Frame { across: if across > 0.0 { across } else { x.end() }, up: y.end() };
        let mut svg = format!(
            "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{}\" xmlns=\"http://www.w3.org/2000/svg\">",
            escaped(&self.title)
        );
        self.grid(&mut svg, &frame, &x, &y);
        for (n, line) in self.lines.iter().enumerate().rev() {
            let path = frame.path(&line.points);
            if !path.is_empty() {
                let _ = write!(svg, "<path class=\"line c{}\" d=\"{path}\"/>", n % COLOURS);
            }
        }
        svg.push_str("</svg>");
        svg
    }

    fn grid(&self, svg: &mut String, frame: &Frame, x: &Ticks, y: &Ticks) {
        let (right, bottom) = (WIDTH - RIGHT, HEIGHT - BOTTOM);
        for (value, label) in y.marks() {
            let at = frame.y(value);
            let _ = write!(svg, "<path class=\"grid\" d=\"M{LEFT} {at:.1}H{right}\"/>");
            let _ = write!(svg, "<text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{label}</text>", LEFT - 7.0, at + 4.5);
        }
        for (value, label) in x.marks().filter(|(value, _)| *value <= frame.across * 1.000_001) {
            let at = frame.x(value);
            let _ = write!(svg, "<path class=\"grid\" d=\"M{at:.1} {bottom}v5\"/>");
            let _ = write!(svg, "<text x=\"{at:.1}\" y=\"{}\" text-anchor=\"middle\">{label}</text>", bottom + 19.0);
        }
        let _ = write!(svg, "<path class=\"axis\" d=\"M{LEFT} {TOP}V{bottom}H{right}\"/>");
        let _ = write!(svg, "<text class=\"unit\" x=\"4\" y=\"14\">{}</text>", escaped(&self.y.name));
        let middle = f64::midpoint(LEFT, right);
        let name = escaped(&self.x.name);
        let _ = write!(
            svg,
            "<text class=\"unit\" x=\"{middle}\" y=\"{}\" text-anchor=\"middle\">{name}</text>",
            HEIGHT - 6.0
        );
    }
}

/// From what is measured to where it is drawn.
struct Frame {
    across: f64,
    up: f64,
}

impl Frame {
    fn x(&self, value: f64) -> f64 {
        LEFT + value / self.across * (WIDTH - LEFT - RIGHT)
    }

    fn y(&self, value: f64) -> f64 {
        HEIGHT - BOTTOM - value / self.up * (HEIGHT - TOP - BOTTOM)
    }

    fn path(&self, points: &[(f64, f64)]) -> String {
        let mut path = String::new();
        for (x, y) in points.iter().filter(|(x, y)| x.is_finite() && y.is_finite()) {
            let command = if path.is_empty() { 'M' } else { 'L' };
            let _ = write!(path, "{command}{:.1} {:.1}", self.x(*x), self.y(*y));
        }
        path
    }
}

/// A text in which nothing is markup.
pub fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plot(points: Vec<(f64, f64)>) -> Plot {
        let axis = |name: &str| Axis { name: name.into(), whole: false };
        let line = Line { name: "one".into(), points };
        Plot { title: "a < b".into(), x: axis("seconds"), y: axis("photos/s"), lines: vec![line] }
    }

    /// The points of the first line as drawn.
    fn drawn(svg: &str) -> Vec<(f64, f64)> {
        let path = svg.split("class=\"line c0\" d=\"M").nth(1).unwrap().split('"').next().unwrap();
        let point = |text: &str| text.split_once(' ').map(|(x, y)| (x.parse().unwrap(), y.parse().unwrap())).unwrap();
        path.split('L').map(point).collect()
    }

    #[test]
    fn points_are_drawn_where_the_axes_say() {
        let svg = plot(vec![(0.0, 0.0), (50.0, 5.0), (100.0, 10.0)]).to_svg();
        let (right, bottom) = (WIDTH - RIGHT, HEIGHT - BOTTOM);
        let middle = (f64::midpoint(LEFT, right), f64::midpoint(TOP, bottom));
        assert_eq!(drawn(&svg), [(LEFT, bottom), middle, (right, TOP)]);
        for label in ["0", "20", "100", "2", "10"] {
            assert!(svg.contains(&format!(">{label}</text>")), "{label} is on no axis: {svg}");
        }
    }

    #[test]
    fn time_ends_where_the_run_does() {
        let svg = plot(vec![(0.0, 1.0), (10.9, 1.0)]).to_svg();
        assert_eq!(drawn(&svg).last().map(|(x, _)| *x), Some(WIDTH - RIGHT));
        let below = |label: &str| svg.contains(&format!("text-anchor=\"middle\">{label}</text>"));
        assert!(below("0") && below("2") && below("10") && !below("12"), "{svg}");
    }

    #[test]
    fn nothing_is_drawn_beyond_the_axes() {
        let svg = plot((0..500).map(|n| (f64::from(n) * 0.37, f64::from(n * 7919 % 613))).collect()).to_svg();
        for (x, y) in drawn(&svg) {
            assert!((LEFT..=WIDTH - RIGHT).contains(&x) && (TOP..=HEIGHT - BOTTOM).contains(&y), "{x} {y}");
        }
    }

    #[test]
    fn without_points_there_are_axes_and_no_line() {
        let svg = plot(vec![(f64::NAN, 1.0)]).to_svg();
        assert!(svg.contains("class=\"axis\"") && !svg.contains("class=\"line"), "{svg}");
        assert!(svg.contains("aria-label=\"a &lt; b\"") && !svg.contains("NaN"), "{svg}");
    }
}
