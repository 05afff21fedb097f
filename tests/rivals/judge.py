"""How near a picture is to the best that could be made: SSIM against a reference made in floating point.

The reference is Pillow's Lanczos in 32-bit floats, from the fully decoded original, upright and in sRGB: no
shrink-on-load, no rounding between the steps, and no code of any resizer that is judged.
"""

import hashlib
import io
import json
from concurrent.futures import ProcessPoolExecutor

import numpy
from PIL import Image, ImageCms, ImageOps

from workshop import SHOP, say

LUMA = numpy.array([0.299, 0.587, 0.114], dtype=numpy.float32)
WINDOW = numpy.exp(-(numpy.arange(-5, 6) ** 2) / (2 * 1.5**2)).astype(numpy.float32)
WINDOW /= WINDOW.sum()
C1, C2 = (0.01 * 255) ** 2, (0.03 * 255) ** 2
REVISION = 2


def judge(photos, row, folders, workers):
    """`{engine: {photo name: {"large": (luma, rgb), "medium": ...}}}` for the WebPs in the engines' folders."""
    memory = _Memory()
    jobs = [(photo, row, folders, memory.known) for photo in photos]
    scores = {name: {} for name in folders}
    with ProcessPoolExecutor(workers) as pool:
        for photo, (found, learnt) in zip(photos, pool.map(_judge_photo, jobs)):
            say(f"  judged {photo.name}")
            memory.known.update(learnt)
            for name, score in found.items():
                scores[name][photo.name] = score
    memory.keep()
    return scores


def ssim(one, other):
    """The mean over all places of the 11 x 11 Gaussian window (sigma 1.5) that lie within the picture, 0 to 255."""
    return _Reference(one).ssim(other)


class _Memory:
    """Scores by content, so that only new pictures are judged again."""

    def __init__(self):
        self.path = SHOP / "scores.json"
        self.known = json.loads(self.path.read_text()) if self.path.exists() else {}

    def keep(self):
        self.path.write_text(json.dumps(self.known))


class _Reference:
    """A channel whose own sums are made once for all pictures that are compared with it."""

    def __init__(self, channel):
        self.channel = channel.astype(numpy.float32)
        self.mean = _blurred(self.channel)
        self.variance = _blurred(self.channel**2) - self.mean**2

    def ssim(self, other):
        other = other.astype(numpy.float32)
        mean = _blurred(other)
        variance = _blurred(other**2) - mean**2
        covariance = _blurred(self.channel * other) - self.mean * mean
        likeness = (2 * self.mean * mean + C1) * (2 * covariance + C2)
        likeness /= (self.mean**2 + mean**2 + C1) * (self.variance + variance + C2)
        return float(likeness.mean(dtype=numpy.float64))


def _blurred(channel):
    """Both directions one after the other, without the border where the window would stand out."""
    for axis in (0, 1):
        length = channel.shape[axis] - len(WINDOW) + 1
        parts = [channel[at : at + length] if axis == 0 else channel[:, at : at + length] for at in range(len(WINDOW))]
        channel = sum(part * weight for weight, part in zip(WINDOW, parts))
    return channel


def _judge_photo(job):
    photo, row, folders, known = job
    original, digest = None, hashlib.sha256(photo.read_bytes()).hexdigest()[:16]
    found, learnt, references = {}, {}, {}
    for name, folder in folders.items():
        found[name] = {}
        for variant, picture in (("large", row.large), ("medium", row.medium)):
            webp = (folder / f"{photo.name}.{variant}.webp").read_bytes()
            key = f"{REVISION} {digest} {picture.fit} {hashlib.sha256(webp).hexdigest()[:16]}"
            if key not in known and key not in learnt:
                if original is None:
                    original = _upright_channels(photo)
                learnt[key] = _score(original, Image.open(io.BytesIO(webp)), picture.fit, references)
            found[name][variant] = learnt.get(key) or known[key]
    return found, learnt


def _upright_channels(path):
    photo = ImageOps.exif_transpose(Image.open(path))
    profile = photo.info.get("icc_profile")
    photo = photo.convert("RGB")
    if profile:
        srgb = ImageCms.createProfile("sRGB")
        photo = ImageCms.profileToProfile(photo, ImageCms.ImageCmsProfile(io.BytesIO(profile)), srgb)
    return _channels(photo)


def _channels(photo):
    """Luma, red, green and blue in floats."""
    pixels = numpy.asarray(photo, dtype=numpy.float32)
    return [Image.fromarray(channel) for channel in (pixels @ LUMA, *(pixels[..., at].copy() for at in range(3)))]


def _score(original, picture, fit, references):
    """Luma, and the mean of red, green and blue; against the reference that lies where this picture does."""
    pixels = numpy.asarray(picture.convert("RGB"), dtype=numpy.float32)
    box = _Place(original[0], pixels @ LUMA).find(_boxes(original[0].size, picture.size, fit))
    luma, *colours = _references(original, picture.size, box, references)
    of_colours = [reference.ssim(pixels[..., at]) for at, reference in enumerate(colours)]
    return luma.ssim(pixels @ LUMA), sum(of_colours) / len(of_colours)


def _references(original, size, box, references):
    """The last two are kept: most engines' pictures lie in the same place."""
    key = (size, box)
    if key not in references:
        while len(references) > 1:
            del references[next(iter(references))]
        shrunk = [numpy.asarray(channel.resize(size, Image.Resampling.LANCZOS, box)) for channel in original]
        references[key] = [_Reference(channel) for channel in shrunk]
    return references[key]


class _Place:
    """Finds the part of the original that a picture shows, to an eighth of its pixels.

    Shrink-on-load rounds sizes, and a picture that is off by a fraction of a pixel is as good to look at; its SSIM is
    not. What is judged is what a picture looks like, so everybody is compared where they are.
    """

    STEPS = (0.5, 0.25, 0.125)
    # Left and right edge, or top and bottom: moved, or stretched at one of them.
    MOVES = ((1, 1), (-1, -1), (0, 1), (0, -1), (1, 0), (-1, 0))
    WORTHWHILE = 0.001

    def __init__(self, original, luma):
        self.original, self.luma = original, luma
        height, width = luma.shape
        self.patch = min(64, width, height)
        spread = lambda side: sorted({0, (side - self.patch) // 2, side - self.patch})
        self.patches = [(x, y) for x in spread(width) for y in spread(height)]
        self.known = {}

    def find(self, boxes):
        """From the best of these on; a box of theirs is kept unless another is clearly better."""
        start = best = max(boxes, key=self._likeness)
        for step in self.STEPS:
            for axis in (0, 1):
                pixel = (best[axis + 2] - best[axis]) / self.luma.shape[1 - axis]
                tried = [self._moved(best, axis, [move * step * pixel for move in moves]) for moves in self.MOVES]
                best = max([best, *tried], key=self._likeness)
        return best if self._likeness(best) > self._likeness(start) + self.WORTHWHILE else start

    def _moved(self, box, axis, by):
        """Within the original, as Pillow wants it."""
        edges, limit = list(box), float(self.original.size[axis])
        edges[axis] = max(0.0, edges[axis] + by[0])
        edges[axis + 2] = min(limit, edges[axis + 2] + by[1])
        return tuple(edges)

    def _likeness(self, box):
        """Of nine patches, because the whole would take too long."""
        if box not in self.known:
            self.known[box] = sum(self._of_patch(box, *patch) for patch in self.patches) / len(self.patches)
        return self.known[box]

    def _of_patch(self, box, x, y):
        left, top, right, bottom = box
        height, width = self.luma.shape
        across, down = (right - left) / width, (bottom - top) / height
        part = (left + x * across, top + y * down)
        part += (min(right, part[0] + self.patch * across), min(bottom, part[1] + self.patch * down))
        size = (self.patch, self.patch)
        reference = numpy.asarray(self.original.resize(size, Image.Resampling.LANCZOS, part))
        return ssim(reference, self.luma[y : y + self.patch, x : x + self.patch])


def _boxes(full, size, fit):
    """The part of the original that the picture may show.

    `cover` has a middle that may fall between two pixels: some cut there, others beside it, all rightly.
    """
    if fit == "inside":
        return [(0.0, 0.0, float(full[0]), float(full[1]))]
    scale = max(size[0] / full[0], size[1] / full[1])
    spare = [round(length * scale) - side for length, side in zip(full, size)]
    middles = [[(length - side / scale) / 2] for length, side in zip(full, size)]
    for at in (0, 1):
        if spare[at] > 0:
            stretch = full[at] / (spare[at] + size[at])
            middles[at] += [offset * stretch for offset in {spare[at] // 2, (spare[at] + 1) // 2}]
    boxes = []
    for left in middles[0]:
        for top in middles[1]:
            right, bottom = min(full[0], left + size[0] / scale), min(full[1], top + size[1] / scale)
            boxes.append((max(0.0, left), max(0.0, top), right, bottom))
    return boxes


def self_test():
    """SSIM tells what is the same from what is not, and the reference lies where a picture does."""
    noise = numpy.random.default_rng(7)
    grey = noise.integers(0, 256, (64, 80)).astype(numpy.float32)
    smooth = numpy.add.outer(numpy.arange(64), numpy.arange(80)).astype(numpy.float32)
    assert abs(ssim(grey, grey) - 1) < 1e-6, "a picture is like itself"
    assert ssim(grey[:, 1:], grey[:, :-1]) < 0.2, "noise moved by a pixel is not"
    assert ssim(smooth[:, 1:], smooth[:, :-1]) > 0.99, "a slope moved by a pixel nearly is"
    assert abs(ssim(grey, smooth) - ssim(smooth, grey)) < 1e-6, "either way round it is the same"

    # By hand: flat fields have no variance, so only the term of the means is left.
    flat = [numpy.full((20, 20), level, dtype=numpy.float32) for level in (100, 120)]
    by_hand = (2 * 100 * 120 + C1) / (100**2 + 120**2 + C1)
    assert abs(ssim(*flat) - by_hand) < 1e-3, "flat fields are as far apart as the formula says"
    assert abs(ssim(grey, grey + 10) - ssim(grey + 10, grey)) < 1e-6
    fainter = [ssim(grey, grey + noise.normal(0, deviation, grey.shape)) for deviation in (2, 10, 50)]
    assert fainter == sorted(fainter, reverse=True), "more noise is less alike"

    photo = Image.fromarray(noise.integers(0, 256, (300, 400, 3)).astype(numpy.uint8)).resize((1200, 900))
    channels = _channels(photo)
    small = photo.resize((400, 300), Image.Resampling.LANCZOS)
    assert min(_score(channels, small, "inside", {})) > 0.999, "eight bits are close to floats"
    assert min(_score(channels, ImageOps.fit(photo, (150, 150), Image.Resampling.LANCZOS), "cover", {})) > 0.999
    moved = photo.crop((12, 0, 1200, 900)).resize((400, 300), Image.Resampling.LANCZOS)
    assert max(_score(channels, moved, "inside", {})) < 0.9, "what shows another part is not alike"
    drifted = photo.resize((400, 300), Image.Resampling.LANCZOS, (0, 0, 1199, 898.5))
    assert min(_score(channels, drifted, "inside", {})) > 0.995, "half a pixel's drift is no fault"
