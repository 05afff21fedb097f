"""Quality of variants: SSIM (Wang et al., 2004, doi:10.1109/TIP.2003.819861) against a reference in floating point.

The reference is Pillow's Lanczos in 32-bit floats, from the fully decoded original, upright and in sRGB: no
shrink-on-load, and no rounding between the steps.
"""

import hashlib
import io
import json
from concurrent.futures import ProcessPoolExecutor

import numpy
from PIL import Image, ImageCms, ImageOps

from installation import TARGET, log

LUMA = numpy.array([0.299, 0.587, 0.114], dtype=numpy.float32)
WINDOW = numpy.exp(-(numpy.arange(-5, 6) ** 2) / (2 * 1.5**2)).astype(numpy.float32)
WINDOW /= WINDOW.sum()
C1, C2 = (0.01 * 255) ** 2, (0.03 * 255) ** 2
# Part of the cache keys: increase it when the calculation of scores changes.
REVISION = 2


def measure(photos, row, folders, workers):
    """Returns `{engine: {photo name: {"large": (luma, rgb), "medium": ...}}}` for the WebPs in the engines' folders."""
    cache = _ScoreCache()
    jobs = [(photo, row, folders, cache.scores) for photo in photos]
    scores = {name: {} for name in folders}
    with ProcessPoolExecutor(workers) as pool:
        for photo, (found, computed) in zip(photos, pool.map(_measure_photo, jobs)):
            log(f"  measured {photo.name}")
            cache.scores.update(computed)
            for name, score in found.items():
                scores[name][photo.name] = score
    cache.save()
    return scores


def ssim(one, other):
    """Returns the mean SSIM of two channels of 0 to 255, with an 11 x 11 Gaussian window (sigma 1.5) inside the image."""
    return _Reference(one).ssim(other)


class _ScoreCache:
    """Scores by content, so that only changed variants are measured again."""

    def __init__(self):
        self.path = TARGET / "scores.json"
        self.scores = json.loads(self.path.read_text()) if self.path.exists() else {}

    def save(self):
        self.path.write_text(json.dumps(self.scores))


class _Reference:
    """A channel of the reference, with its mean and variance computed once for all comparisons."""

    def __init__(self, channel):
        self.channel = channel.astype(numpy.float32)
        self.mean = _blur(self.channel)
        self.variance = _blur(self.channel**2) - self.mean**2

    def ssim(self, other):
        other = other.astype(numpy.float32)
        mean = _blur(other)
        variance = _blur(other**2) - mean**2
        covariance = _blur(self.channel * other) - self.mean * mean
        similarity = (2 * self.mean * mean + C1) * (2 * covariance + C2)
        similarity /= (self.mean**2 + mean**2 + C1) * (self.variance + variance + C2)
        return float(similarity.mean(dtype=numpy.float64))


def _blur(channel):
    """Applies the separable window, without the border where it would exceed the image."""
    for axis in (0, 1):
        length = channel.shape[axis] - len(WINDOW) + 1
        parts = [channel[at : at + length] if axis == 0 else channel[:, at : at + length] for at in range(len(WINDOW))]
        channel = sum(part * weight for weight, part in zip(WINDOW, parts))
    return channel


def _measure_photo(job):
    photo, row, folders, cached = job
    original, digest = None, hashlib.sha256(photo.read_bytes()).hexdigest()[:16]
    found, computed, references = {}, {}, {}
    for name, folder in folders.items():
        found[name] = {}
        for variant, settings in (("large", row.large), ("medium", row.medium)):
            webp = (folder / f"{photo.name}.{variant}.webp").read_bytes()
            key = f"{REVISION} {digest} {settings.fit} {hashlib.sha256(webp).hexdigest()[:16]}"
            if key not in cached and key not in computed:
                if original is None:
                    original = _upright_channels(photo)
                computed[key] = _score(original, Image.open(io.BytesIO(webp)), settings.fit, references)
            found[name][variant] = computed.get(key) or cached[key]
    return found, computed


def _upright_channels(path):
    photo = ImageOps.exif_transpose(Image.open(path))
    profile = photo.info.get("icc_profile")
    photo = photo.convert("RGB")
    if profile:
        srgb = ImageCms.createProfile("sRGB")
        photo = ImageCms.profileToProfile(photo, ImageCms.ImageCmsProfile(io.BytesIO(profile)), srgb)
    return _channels(photo)


def _channels(photo):
    """Returns luma, red, green and blue in floats."""
    pixels = numpy.asarray(photo, dtype=numpy.float32)
    return [Image.fromarray(channel) for channel in (pixels @ LUMA, *(pixels[..., at].copy() for at in range(3)))]


def _score(original, variant, fit, references):
    """Returns the SSIM of luma, and the mean SSIM of red, green and blue, against the aligned reference."""
    pixels = numpy.asarray(variant.convert("RGB"), dtype=numpy.float32)
    box = _Alignment(original[0], pixels @ LUMA).find(_boxes(original[0].size, variant.size, fit))
    luma, *colours = _references(original, variant.size, box, references)
    colour_scores = [reference.ssim(pixels[..., at]) for at, reference in enumerate(colours)]
    return luma.ssim(pixels @ LUMA), sum(colour_scores) / len(colour_scores)


def _references(original, size, box, references):
    """Returns the reference channels, from a cache of the last two: the boxes of most engines are equal."""
    key = (size, box)
    if key not in references:
        while len(references) > 1:
            del references[next(iter(references))]
        resized = [numpy.asarray(channel.resize(size, Image.Resampling.LANCZOS, box)) for channel in original]
        references[key] = [_Reference(channel) for channel in resized]
    return references[key]


class _Alignment:
    """Finds the region of the original that a variant shows, to an eighth of its pixels.

    Shrink-on-load rounds sizes. An offset of a fraction of a pixel is invisible but lowers SSIM, so each variant is compared with
    the region that it shows.
    """

    STEPS = (0.5, 0.25, 0.125)
    # Moves of the left and right (or top and bottom) edges: both, or one of them.
    MOVES = ((1, 1), (-1, -1), (0, 1), (0, -1), (1, 0), (-1, 0))
    MIN_GAIN = 0.001

    def __init__(self, original, luma):
        self.original, self.luma = original, luma
        height, width = luma.shape
        self.patch = min(64, width, height)
        positions = lambda side: sorted({0, (side - self.patch) // 2, side - self.patch})
        self.patches = [(x, y) for x in positions(width) for y in positions(height)]
        self.cache = {}

    def find(self, boxes):
        """Returns the best box near the best of these, or that one itself unless another is clearly better (hill climbing)."""
        start = best = max(boxes, key=self._similarity)
        for step in self.STEPS:
            for axis in (0, 1):
                pixel = (best[axis + 2] - best[axis]) / self.luma.shape[1 - axis]
                candidates = [self._moved(best, axis, [move * step * pixel for move in moves]) for moves in self.MOVES]
                best = max([best, *candidates], key=self._similarity)
        return best if self._similarity(best) > self._similarity(start) + self.MIN_GAIN else start

    def _moved(self, box, axis, by):
        """Returns the box with moved edges, clamped to the original as Pillow requires."""
        edges, limit = list(box), float(self.original.size[axis])
        edges[axis] = max(0.0, edges[axis] + by[0])
        edges[axis + 2] = min(limit, edges[axis + 2] + by[1])
        return tuple(edges)

    def _similarity(self, box):
        """Returns the mean SSIM of nine patches; the whole image would take too long."""
        if box not in self.cache:
            self.cache[box] = sum(self._patch_ssim(box, *patch) for patch in self.patches) / len(self.patches)
        return self.cache[box]

    def _patch_ssim(self, box, x, y):
        left, top, right, bottom = box
        height, width = self.luma.shape
        across, down = (right - left) / width, (bottom - top) / height
        region = (left + x * across, top + y * down)
        region += (min(right, region[0] + self.patch * across), min(bottom, region[1] + self.patch * down))
        size = (self.patch, self.patch)
        reference = numpy.asarray(self.original.resize(size, Image.Resampling.LANCZOS, region))
        return ssim(reference, self.luma[y : y + self.patch, x : x + self.patch])


def _boxes(full, size, fit):
    """Returns the regions of the original that a variant may show.

    With `cover` the centre may fall between two pixels: engines may round it to either side.
    """
    if fit == "inside":
        return [(0.0, 0.0, float(full[0]), float(full[1]))]
    scale = max(size[0] / full[0], size[1] / full[1])
    spare = [round(length * scale) - side for length, side in zip(full, size)]
    offsets = [[(length - side / scale) / 2] for length, side in zip(full, size)]
    for at in (0, 1):
        if spare[at] > 0:
            stretch = full[at] / (spare[at] + size[at])
            offsets[at] += [offset * stretch for offset in {spare[at] // 2, (spare[at] + 1) // 2}]
    boxes = []
    for left in offsets[0]:
        for top in offsets[1]:
            right, bottom = min(full[0], left + size[0] / scale), min(full[1], top + size[1] / scale)
            boxes.append((max(0.0, left), max(0.0, top), right, bottom))
    return boxes


def self_test():
    """Checks SSIM on known images, and the alignment of the reference."""
    noise = numpy.random.default_rng(7)
    grey = noise.integers(0, 256, (64, 80)).astype(numpy.float32)
    smooth = numpy.add.outer(numpy.arange(64), numpy.arange(80)).astype(numpy.float32)
    assert abs(ssim(grey, grey) - 1) < 1e-6, "an image equals itself"
    assert ssim(grey[:, 1:], grey[:, :-1]) < 0.2, "noise moved by a pixel is dissimilar"
    assert ssim(smooth[:, 1:], smooth[:, :-1]) > 0.99, "a gradient moved by a pixel is nearly equal"
    assert abs(ssim(grey, smooth) - ssim(smooth, grey)) < 1e-6, "SSIM is symmetric"

    # Flat fields have no variance, so only the luminance term remains.
    flat = [numpy.full((20, 20), level, dtype=numpy.float32) for level in (100, 120)]
    expected = (2 * 100 * 120 + C1) / (100**2 + 120**2 + C1)
    assert abs(ssim(*flat) - expected) < 1e-3, "flat fields have the SSIM of the formula"
    assert abs(ssim(grey, grey + 10) - ssim(grey + 10, grey)) < 1e-6
    noisier = [ssim(grey, grey + noise.normal(0, deviation, grey.shape)) for deviation in (2, 10, 50)]
    assert noisier == sorted(noisier, reverse=True), "more noise lowers SSIM"

    photo = Image.fromarray(noise.integers(0, 256, (300, 400, 3)).astype(numpy.uint8)).resize((1200, 900))
    channels = _channels(photo)
    small = photo.resize((400, 300), Image.Resampling.LANCZOS)
    assert min(_score(channels, small, "inside", {})) > 0.999, "8-bit rounding costs little"
    assert min(_score(channels, ImageOps.fit(photo, (150, 150), Image.Resampling.LANCZOS), "cover", {})) > 0.999
    moved = photo.crop((12, 0, 1200, 900)).resize((400, 300), Image.Resampling.LANCZOS)
    assert max(_score(channels, moved, "inside", {})) < 0.9, "another region of the original is dissimilar"
    shifted = photo.resize((400, 300), Image.Resampling.LANCZOS, (0, 0, 1199, 898.5))
    assert min(_score(channels, shifted, "inside", {})) > 0.995, "an offset of half a pixel is aligned"
