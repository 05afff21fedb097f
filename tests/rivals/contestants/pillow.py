"""Pillow at its work. The job comes as JSON in the first argument, the figures leave as JSON.

`draft` lets libjpeg decode at a fraction of the size, Lanczos does the rest, and `medium` is made of `large`.
`reducing_gap` has nothing to do here: after `draft` no step shrinks so far that it would act at a gap of 2 or more.
Pillow has no sharp YUV.
"""

import io
import json
import sys

import crew
from PIL import Image, ImageCms, ImageOps, features

job = json.loads(sys.argv[1])
SRGB = ImageCms.createProfile("sRGB")


def develop(file):
    photo = Image.open(io.BytesIO(file))
    photo.draft("RGB", _inside(photo.size, job["large"]["size"]))
    if photo.mode not in ("RGB", "RGBA"):
        photo = photo.convert("RGBA" if photo.has_transparency_data else "RGB")
    large = ImageOps.exif_transpose(_shrink(photo, job["large"]))
    if profile := photo.info.get("icc_profile"):
        large = ImageCms.profileToProfile(large, ImageCms.ImageCmsProfile(io.BytesIO(profile)), SRGB)
    return _webp(large, job["large"]), _webp(_shrink(large, job["medium"]), job["medium"])


def _inside(size, side):
    scale = min(side / size[0], side / size[1], 1)
    return tuple(max(1, round(length * scale)) for length in size)


def _shrink(photo, spec):
    side = spec["size"]
    if spec["fit"] == "cover":
        return ImageOps.fit(photo, (min(side, photo.width), min(side, photo.height)), Image.Resampling.LANCZOS)
    size = _inside(photo.size, side)
    return photo if size == photo.size else photo.resize(size, Image.Resampling.LANCZOS)


def _webp(picture, spec):
    file = io.BytesIO()
    picture.save(file, "WEBP", quality=spec["quality"], method=spec["effort"], icc_profile=b"")
    return file.getvalue()


libraries = f"libjpeg-turbo {features.version('libjpeg_turbo')}, libwebp {features.version('webp')}"
crew.run(job, develop, f"Pillow {Image.__version__} ({libraries}, Python {sys.version.split()[0]})")
