"""Renders variants with Pillow. Reads the job as JSON from the first argument and prints the figures as JSON.

`draft` makes libjpeg decode at a fraction of the size, Lanczos resizes to `large`, and `medium` is made from `large`.
`reducing_gap` is not used: after `draft` no resize is large enough for a gap of 2 or more to have an effect. Pillow does not
support sharp YUV.
"""

import io
import json
import sys

import pool
from PIL import Image, ImageCms, ImageOps, features

job = json.loads(sys.argv[1])
SRGB = ImageCms.createProfile("sRGB")


def render(file):
    photo = Image.open(io.BytesIO(file))
    photo.draft("RGB", _fit_inside(photo.size, job["large"]["size"]))
    if photo.mode not in ("RGB", "RGBA"):
        photo = photo.convert("RGBA" if photo.has_transparency_data else "RGB")
    large = ImageOps.exif_transpose(_resize(photo, job["large"]))
    if profile := photo.info.get("icc_profile"):
        large = ImageCms.profileToProfile(large, ImageCms.ImageCmsProfile(io.BytesIO(profile)), SRGB)
    return _webp(large, job["large"]), _webp(_resize(large, job["medium"]), job["medium"])


def _fit_inside(size, side):
    scale = min(side / size[0], side / size[1], 1)
    return tuple(max(1, round(length * scale)) for length in size)


def _resize(photo, spec):
    side = spec["size"]
    if spec["fit"] == "cover":
        return ImageOps.fit(photo, (min(side, photo.width), min(side, photo.height)), Image.Resampling.LANCZOS)
    size = _fit_inside(photo.size, side)
    return photo if size == photo.size else photo.resize(size, Image.Resampling.LANCZOS)


def _webp(image, spec):
    file = io.BytesIO()
    image.save(file, "WEBP", quality=spec["quality"], method=spec["effort"], icc_profile=b"")
    return file.getvalue()


libraries = f"libjpeg-turbo {features.version('libjpeg_turbo')}, libwebp {features.version('webp')}"
pool.run(job, render, f"Pillow {Image.__version__} ({libraries}, Python {sys.version.split()[0]})")
