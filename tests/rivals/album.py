"""The photos all engines get."""

import hashlib
import math
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from PIL import Image, ImageOps

from workshop import ROOT, SHOP, say

ENDINGS = {".jpg", ".jpeg", ".png", ".webp"}
ORIENTATION = 0x0112
# How an upright picture is turned before it is stored with that orientation.
STORED = {
    1: None,
    3: Image.Transpose.ROTATE_180,
    6: Image.Transpose.ROTATE_90,
    8: Image.Transpose.ROTATE_270,
}


@dataclass(frozen=True)
class Recipe:
    """A JPEG to be made of real photos; width and height are those of the upright picture."""

    width: int
    height: int
    sampling: str = "4:2:0"
    progressive: bool = False
    orientation: int = 1
    quality: int = 90

    @property
    def name(self):
        megapixels = round(self.width * self.height / 1e6)
        kind = "progressive" if self.progressive else "baseline"
        turned = f"-turned{self.orientation}" if self.orientation > 1 else ""
        return f"made-{megapixels:02}mp-{self.sampling.replace(':', '')}-{kind}{turned}.jpg"


RECIPES = [
    Recipe(1632, 1224),
    Recipe(1200, 1600, progressive=True),
    Recipe(2048, 1536, "4:4:4"),
    Recipe(2592, 1936, "4:2:2", orientation=8),
    Recipe(3264, 2448, progressive=True, orientation=6),
    Recipe(4032, 3024),
    Recipe(4032, 3024, orientation=6),
    Recipe(3024, 4032, "4:4:4", quality=95),
    Recipe(4624, 3468, "4:2:2"),
    Recipe(6000, 4000),
    Recipe(6000, 4000, "4:2:2", orientation=3),
    Recipe(6000, 4000, progressive=True),
]


def photos(folder, count):
    """Those of a folder, or our own; `count` of them spread over all."""
    if folder and not Path(folder).is_dir():
        raise SystemExit(f"{folder}: there is no such folder")
    found = _in(Path(folder)) if folder else _own()
    if not found:
        raise SystemExit(f"{folder}: there are no photos ({', '.join(sorted(ENDINGS))})")
    if not count or count >= len(found):
        return found
    return [found[at * len(found) // count] for at in range(count)]


def describe(paths):
    """One line about them."""
    megapixels, megabytes = [], sum(path.stat().st_size for path in paths) / 1e6
    for path in paths:
        with Image.open(path) as photo:
            megapixels.append(photo.width * photo.height / 1e6)
    spread = f"{min(megapixels):.1f} to {max(megapixels):.1f} MP"
    return f"{len(paths)} photos, {spread}, {sum(megapixels):.0f} MP and {megabytes:.0f} MB in all"


def _in(folder):
    """The largest files first, so that no engine ends with one large photo on one core."""
    found = (path.resolve() for path in folder.iterdir() if path.suffix.lower() in ENDINGS)
    return sorted(found, key=_by_size)


def _by_size(path):
    return -path.stat().st_size, path.name


def _own():
    """Camera photos as they are where they are to be had, and those made of them or of the repository's own."""
    shared = Path(os.environ.get("SPARKS_TEST_DATA", ROOT.parent / "shared" / "data")) / "photos"
    cameras = _in(shared) if shared.is_dir() else []
    if not cameras:
        say(f"no camera photos at {os.path.relpath(shared, ROOT)}: all are made of tests/photos")
    sources = cameras or [path for path in _in(ROOT / "tests" / "photos") if path.suffix == ".jpg"]
    folder, recipe_of_all = SHOP / "photos", _digest(sources)
    mark = folder / "made-of"
    if not mark.exists() or mark.read_text() != recipe_of_all:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        for turn, recipe in enumerate(RECIPES):
            say(f"making {recipe.name}")
            _make(recipe, sources[turn % len(sources) :] + sources[: turn % len(sources)], folder)
        mark.write_text(recipe_of_all)
    return sorted(cameras + _in(folder), key=_by_size)


def _digest(sources):
    texts = [repr((RECIPES, STORED)), Image.__version__, *(f"{path.name} {path.stat().st_size}" for path in sources)]
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()


def _make(recipe, sources, folder):
    """A mosaic with as few tiles as can be had without enlarging any."""
    originals = [ImageOps.exif_transpose(Image.open(path)).convert("RGB") for path in sources]
    least_width, least_height = (min(getattr(photo, side) for photo in originals) for side in ("width", "height"))
    across, down = math.ceil(recipe.width / least_width), math.ceil(recipe.height / least_height)
    mosaic = Image.new("RGB", (recipe.width, recipe.height))
    for tile in range(across * down):
        left, right = (recipe.width * at // across for at in (tile % across, tile % across + 1))
        top, bottom = (recipe.height * at // down for at in (tile // across, tile // across + 1))
        photo = originals[tile % len(originals)]
        mosaic.paste(ImageOps.fit(photo, (right - left, bottom - top), Image.Resampling.LANCZOS), (left, top))
    if (turn := STORED[recipe.orientation]) is not None:
        mosaic = mosaic.transpose(turn)
    exif = Image.Exif()
    exif[ORIENTATION] = recipe.orientation
    options = {"quality": recipe.quality, "subsampling": recipe.sampling, "progressive": recipe.progressive}
    mosaic.save(folder / recipe.name, "JPEG", exif=exif, **options)
