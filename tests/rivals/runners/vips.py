"""Renders variants with pyvips. Reads the job as JSON from the first argument and prints the figures as JSON.

"clones": two thumbnails of the file, each of which decodes with shrink-on-load.
"chained": one thumbnail, copied to memory, is `large`; `medium` is made from its pixels.
"""

import json
import os
import sys

job = json.loads(sys.argv[1])
os.environ["VIPS_CONCURRENCY"] = str(job["concurrency"])

import pool  # noqa: E402
import pyvips  # noqa: E402: reads VIPS_CONCURRENCY when it is imported

pyvips.cache_set_max(0)


def size(spec):
    crop = {"crop": "centre"} if spec["fit"] == "cover" else {}
    return {"height": spec["size"], "size": "down", **crop}


def webp(image, spec):
    return image.webpsave_buffer(
        Q=spec["quality"], effort=spec["effort"], smart_subsample=spec["sharp_yuv"], keep="none"
    )


def colour_options(file):
    """Returns options that convert photos with an ICC profile to sRGB; libvips would convert all photos, which costs time."""
    has_profile = pyvips.Image.new_from_buffer(file, "").get_typeof("icc-profile-data")
    return {"export_profile": "srgb"} if has_profile else {}


def thumbnail(file, spec, options):
    return pyvips.Image.thumbnail_buffer(file, spec["size"], **size(spec), **options)


def clones(file):
    options = colour_options(file)
    return tuple(webp(thumbnail(file, spec, options), spec) for spec in (job["large"], job["medium"]))


def chained(file):
    large = thumbnail(file, job["large"], colour_options(file)).copy_memory()
    medium = large.thumbnail_image(job["medium"]["size"], **size(job["medium"]))
    return webp(large, job["large"]), webp(medium, job["medium"])


version = f"pyvips {pyvips.__version__} (libvips {'.'.join(str(pyvips.version(part)) for part in range(3))}"
version += f", Python {sys.version.split()[0]})"
pool.run(job, {"clones": clones, "chained": chained}[job["form"]], version)
