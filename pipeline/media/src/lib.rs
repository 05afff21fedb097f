//! Pixels: decode within limits, orient, resize, WebP, crops
