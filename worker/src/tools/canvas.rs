//! Draws detected faces on a photo.

use std::convert::Infallible;

use embedded_graphics::{
    Drawable, Pixel,
    mono_font::{MonoTextStyleBuilder, iso_8859_1::FONT_10X20},
    pixelcolor::Rgb888,
    prelude::{DrawTarget, OriginDimensions, Point, RgbColor, Size},
    primitives::{Circle, Primitive, PrimitiveStyle, Rectangle},
    text::{Baseline, Text},
};
use image::{ImageError, ImageFormat, RgbImage};
use sparks_domain::DetectedFace;
use sparks_engine::Pixels;

/// A photo to draw on. Strokes and letters scale with the size of the photo.
pub struct Canvas {
    photo: RgbImage,
    pen: u32,
}

/// The colours of the eyes, the nose and the corners of the mouth.
const LANDMARK_COLOURS: [Rgb888; 5] = [Rgb888::CYAN, Rgb888::CYAN, Rgb888::YELLOW, Rgb888::MAGENTA, Rgb888::MAGENTA];

impl Canvas {
    /// Creates a canvas with the photo on it; `None` if the photo has no pixels.
    pub fn new(pixels: &Pixels) -> Option<Self> {
        let photo = RgbImage::from_raw(pixels.width, pixels.height, pixels.rgb.clone())?;
        let pen = (pixels.width.max(pixels.height) / 900).max(1);
        Some(Self { photo, pen })
    }

    /// Draws the box and landmarks of a face with a label.
    pub fn draw_face(&mut self, face: &DetectedFace, colour: Rgb888, label: &str) {
        let bounds = face.bounds;
        let (from, to) =
            (self.point_at(bounds.x, bounds.y), self.point_at(bounds.x + bounds.width, bounds.y + bounds.height));
        let thickness = 2;
        self.draw(&Rectangle::with_corners(from, to).into_styled(PrimitiveStyle::with_stroke(colour, thickness)));
        for (landmark, colour) in face.landmarks.iter().zip(LANDMARK_COLOURS) {
            let dot = Circle::with_center(self.point_at(landmark.x, landmark.y), 7);
            self.draw(&dot.into_styled(PrimitiveStyle::with_fill(colour)));
        }
        let style = MonoTextStyleBuilder::new().font(&FONT_10X20).text_color(Rgb888::BLACK).background_color(colour);
        let height = FONT_10X20.character_size.height.cast_signed();
        let above = if from.y >= height { from.y - height } else { to.y + 1 };
        self.draw(&Text::with_baseline(label, Point::new(from.x, above), style.build(), Baseline::Top));
    }

    /// Encodes the photo as PNG.
    pub fn to_png(&self) -> Result<Vec<u8>, ImageError> {
        let mut png = std::io::Cursor::new(Vec::new());
        self.photo.write_to(&mut png, ImageFormat::Png)?;
        Ok(png.into_inner())
    }

    fn draw(&mut self, shape: &impl Drawable<Color = Rgb888>) {
        let Ok(_) = shape.draw(self);
    }

    /// Converts fractions of the photo's size to canvas coordinates, whose unit is the pen.
    fn point_at(&self, x: f32, y: f32) -> Point {
        let Size { width, height } = self.size();
        Point::new((x * width as f32) as i32, (y * height as f32) as i32)
    }
}

impl OriginDimensions for Canvas {
    fn size(&self) -> Size {
        Size::new(self.photo.width().div_ceil(self.pen), self.photo.height().div_ceil(self.pen))
    }
}

impl DrawTarget for Canvas {
    type Color = Rgb888;
    type Error = Infallible;

    fn draw_iter<I: IntoIterator<Item = Pixel<Rgb888>>>(&mut self, pixels: I) -> Result<(), Infallible> {
        for Pixel(Point { x, y }, colour) in pixels {
            let (Ok(x), Ok(y)) = (u32::try_from(x), u32::try_from(y)) else { continue };
            for (dx, dy) in (0..self.pen).flat_map(|dy| (0..self.pen).map(move |dx| (dx, dy))) {
                if let Some(pixel) = self.photo.get_pixel_mut_checked(x * self.pen + dx, y * self.pen + dy) {
                    pixel.0 = [colour.r(), colour.g(), colour.b()];
                }
            }
        }
        Ok(())
    }
}
