"""pyvips at its work. The job comes as JSON in the first argument, the figures leave as JSON.

"clones": two thumbnails of the file, each of which decodes with shrink-on-load.
"chained": one thumbnail, kept in memory, is `large`; `medium` is made of its pixels.
"""

import json
import os
import sys

job = json.loads(sys.argv[1])
os.environ["VIPS_CONCURRENCY"] = str(job["concurrency"])

import crew  # noqa: E402
import pyvips  # noqa: E402: reads VIPS_CONCURRENCY

pyvips.cache_set_max(0)


def size(spec):
    crop = {"crop": "centre"} if spec["fit"] == "cover" else {}
    return {"height": spec["size"], "size": "down", **crop}


def webp(picture, spec):
    return picture.webpsave_buffer(
        Q=spec["quality"], effort=spec["effort"], smart_subsample=spec["sharp_yuv"], keep="none"
    )


def colours(file):
    """To sRGB where the photo says that it is something else; libvips would take all photos through that, at a cost."""
    profiled = pyvips.Image.new_from_buffer(file, "").get_typeof("icc-profile-data")
    return {"export_profile": "srgb"} if profiled else {}


def thumbnail(file, spec, into):
    return pyvips.Image.thumbnail_buffer(file, spec["size"], **size(spec), **into)


def clones(file):
    into = colours(file)
    return tuple(webp(thumbnail(file, spec, into), spec) for spec in (job["large"], job["medium"]))


def chained(file):
    large = thumbnail(file, job["large"], colours(file)).copy_memory()
    medium = large.thumbnail_image(job["medium"]["size"], **size(job["medium"]))
    return webp(large, job["large"]), webp(medium, job["medium"])


version = f"pyvips {pyvips.__version__} (libvips {'.'.join(str(pyvips.version(part)) for part in range(3))}"
version += f", Python {sys.version.split()[0]})"
crew.run(job, {"clones": clones, "chained": chained}[job["form"]], version)
