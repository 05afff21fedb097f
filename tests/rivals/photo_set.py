"""The photos that all engines process."""

import hashlib
import math
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from PIL import Image, ImageOps

from installation import ROOT, TARGET, log

ENDINGS = {".jpg", ".jpeg", ".png", ".webp"}
ORIENTATION = 0x0112
# Rotation of the upright image before it is stored with this EXIF orientation.
ROTATIONS = {
    1: None,
    3: Image.Transpose.ROTATE_180,
    6: Image.Transpose.ROTATE_90,
    8: Image.Transpose.ROTATE_270,
}


@dataclass(frozen=True)
class Recipe:
    """A JPEG to make from real photos; width and height are those of the upright image."""

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
        rotated = f"-turned{self.orientation}" if self.orientation > 1 else ""
        return f"made-{megapixels:02}mp-{self.sampling.replace(':', '')}-{kind}{rotated}.jpg"


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
    """Returns the photos of a folder, or the default photos; `count` of them, spread over all sizes."""
    if folder and not Path(folder).is_dir():
        raise SystemExit(f"folder {folder} does not exist")
    found = _list(Path(folder)) if folder else _default_photos()
    if not found:
        raise SystemExit(f"folder {folder} has no photos ({', '.join(sorted(ENDINGS))})")
    if not count or count >= len(found):
        return found
    return [found[at * len(found) // count] for at in range(count)]


def describe(paths):
    """Returns a line with the number and size of the photos."""
    megapixels, megabytes = [], sum(path.stat().st_size for path in paths) / 1e6
    for path in paths:
        with Image.open(path) as photo:
            megapixels.append(photo.width * photo.height / 1e6)
    spread = f"{min(megapixels):.1f} to {max(megapixels):.1f} MP"
    return f"{len(paths)} photos, {spread}, {sum(megapixels):.0f} MP and {megabytes:.0f} MB in all"


def _list(folder):
    """Returns the photos of a folder, the largest first, so that no engine ends with a large photo on a single core."""
    found = (path.resolve() for path in folder.iterdir() if path.suffix.lower() in ENDINGS)
    return sorted(found, key=_by_size)


def _by_size(path):
    return -path.stat().st_size, path.name


def _default_photos():
    """Returns camera photos if there are any, and photos made from them, or else from tests/photos."""
    shared = Path(os.environ.get("SPARKS_TEST_DATA", ROOT.parent / "shared" / "data")) / "photos"
    cameras = _list(shared) if shared.is_dir() else []
    if not cameras:
        log(f"no camera photos in {os.path.relpath(shared, ROOT)}: all photos are made from tests/photos")
    sources = cameras or [path for path in _list(ROOT / "tests" / "photos") if path.suffix == ".jpg"]
    folder, digest = TARGET / "photos", _digest(sources)
    marker = folder / "made-of"
    if not marker.exists() or marker.read_text() != digest:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        for number, recipe in enumerate(RECIPES):
            log(f"making {recipe.name}")
            first = number % len(sources)
            _make(recipe, sources[first:] + sources[:first], folder)
        marker.write_text(digest)
    return sorted(cameras + _list(folder), key=_by_size)


def _digest(sources):
    texts = [repr((RECIPES, ROTATIONS)), Image.__version__, *(f"{path.name} {path.stat().st_size}" for path in sources)]
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()


def _make(recipe, sources, folder):
    """Makes a mosaic of the sources, with the fewest tiles that do not enlarge any source."""
    originals = [ImageOps.exif_transpose(Image.open(path)).convert("RGB") for path in sources]
    min_width, min_height = (min(getattr(photo, side) for photo in originals) for side in ("width", "height"))
    across, down = math.ceil(recipe.width / min_width), math.ceil(recipe.height / min_height)
    mosaic = Image.new("RGB", (recipe.width, recipe.height))
    for tile in range(across * down):
        left, right = (recipe.width * at // across for at in (tile % across, tile % across + 1))
        top, bottom = (recipe.height * at // down for at in (tile // across, tile // across + 1))
        photo = originals[tile % len(originals)]
        mosaic.paste(ImageOps.fit(photo, (right - left, bottom - top), Image.Resampling.LANCZOS), (left, top))
    if (rotation := ROTATIONS[recipe.orientation]) is not None:
        mosaic = mosaic.transpose(rotation)
    exif = Image.Exif()
    exif[ORIENTATION] = recipe.orientation
    options = {"quality": recipe.quality, "subsampling": recipe.sampling, "progressive": recipe.progressive}
    mosaic.save(folder / recipe.name, "JPEG", exif=exif, **options)
