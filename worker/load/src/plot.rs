//! Line plots as SVG.

use std::fmt::Write;

use super::ticks::Ticks;

/// Series over two axes that start at 0.
#[derive(Debug, Clone, PartialEq)]
pub struct Plot {
    /// The title.
    pub title: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// The series, the first in front.
    pub series: Vec<Series>,
}

/// One axis.
#[derive(Debug, Clone, PartialEq)]
pub struct Axis {
    /// The quantity or unit.
    pub name: String,
    /// Whether the axis has integer ticks only.
    pub whole: bool,
}

/// A line. Its name is in the legend if there are several.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// The name.
    pub name: String,
    /// The points, from left to right.
    pub points: Vec<(f64, f64)>,
}

const WIDTH: f64 = 480.0;
const HEIGHT: f64 = 250.0;
const LEFT: f64 = 54.0;
const RIGHT: f64 = 18.0;
const TOP: f64 = 28.0;
const BOTTOM: f64 = 44.0;
/// Maximum number of tick steps, so that labels do not overlap.
const STEPS_ACROSS: u32 = 6;
const STEPS_UP: u32 = 5;

/// Number of colours in the style sheet.
pub const COLOURS: usize = 6;

impl Plot {
    /// Returns the plot as SVG. The style sheet of the page defines its classes.
    pub fn to_svg(&self) -> String {
        let maximum = |of: fn(&(f64, f64)) -> f64| {
            self.series.iter().flat_map(|series| &series.points).map(of).filter(|n| n.is_finite()).fold(0.0, f64::max)
        };
        let (across, up) = (maximum(|point| point.0), maximum(|point| point.1));
        let (x, y) = (Ticks::up_to(across, STEPS_ACROSS, self.x.whole), Ticks::up_to(up, STEPS_UP, self.y.whole));
        // The horizontal axis ends with the data, the vertical one at a round number.
        let frame = Frame { across: if across > 0.0 { across } else { x.end() }, up: y.end() };
        let mut svg = format!(
            "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{}\" xmlns=\"http://www.w3.org/2000/svg\">",
            escape_html(&self.title)
        );
        self.grid(&mut svg, &frame, &x, &y);
        for (n, series) in self.series.iter().enumerate().rev() {
            let path = frame.path(&series.points);
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
        let _ = write!(svg, "<text class=\"unit\" x=\"4\" y=\"14\">{}</text>", escape_html(&self.y.name));
        let middle = f64::midpoint(LEFT, right);
        let name = escape_html(&self.x.name);
        let _ = write!(
            svg,
            "<text class=\"unit\" x=\"{middle}\" y=\"{}\" text-anchor=\"middle\">{name}</text>",
            HEIGHT - 6.0
        );
    }
}

/// Maps values to coordinates.
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

/// Escapes the characters that are markup in HTML and SVG.
pub fn escape_html(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plot(points: Vec<(f64, f64)>) -> Plot {
        let axis = |name: &str| Axis { name: name.into(), whole: false };
        let series = vec![Series { name: "one".into(), points }];
        Plot { title: "a < b".into(), x: axis("seconds"), y: axis("photos/s"), series }
    }

    /// Returns the coordinates of the first series.
    fn drawn(svg: &str) -> Vec<(f64, f64)> {
        let path = svg.split("class=\"line c0\" d=\"M").nth(1).unwrap().split('"').next().unwrap();
        let point = |text: &str| text.split_once(' ').map(|(x, y)| (x.parse().unwrap(), y.parse().unwrap())).unwrap();
        path.split('L').map(point).collect()
    }

    #[test]
    fn points_are_drawn_to_the_scale_of_the_axes() {
        let svg = plot(vec![(0.0, 0.0), (50.0, 5.0), (100.0, 10.0)]).to_svg();
        let (right, bottom) = (WIDTH - RIGHT, HEIGHT - BOTTOM);
        let middle = (f64::midpoint(LEFT, right), f64::midpoint(TOP, bottom));
        assert_eq!(drawn(&svg), [(LEFT, bottom), middle, (right, TOP)]);
        for label in ["0", "20", "100", "2", "10"] {
            assert!(svg.contains(&format!(">{label}</text>")), "no axis has the label {label}: {svg}");
        }
    }

    #[test]
    fn the_horizontal_axis_ends_with_the_data() {
        let svg = plot(vec![(0.0, 1.0), (10.9, 1.0)]).to_svg();
        assert_eq!(drawn(&svg).last().map(|(x, _)| *x), Some(WIDTH - RIGHT));
        let below = |label: &str| svg.contains(&format!("text-anchor=\"middle\">{label}</text>"));
        assert!(below("0") && below("2") && below("10") && !below("12"), "{svg}");
    }

    #[test]
    fn all_points_are_within_the_axes() {
        let svg = plot((0..500).map(|n| (f64::from(n) * 0.37, f64::from(n * 7919 % 613))).collect()).to_svg();
        for (x, y) in drawn(&svg) {
            assert!((LEFT..=WIDTH - RIGHT).contains(&x) && (TOP..=HEIGHT - BOTTOM).contains(&y), "{x} {y}");
        }
    }

    #[test]
    fn a_plot_without_points_has_axes_only() {
        let svg = plot(vec![(f64::NAN, 1.0)]).to_svg();
        assert!(svg.contains("class=\"axis\"") && !svg.contains("class=\"line"), "{svg}");
        assert!(svg.contains("aria-label=\"a &lt; b\"") && !svg.contains("NaN"), "{svg}");
    }
}
