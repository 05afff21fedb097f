"""The race of `faces`."""

import argparse
import json
import shutil
import statistics

import album
import engines
import rows
import workshop
from workshop import HOME, SHOP, say


def main():
    parser = argparse.ArgumentParser(prog="faces", description=__doc__)
    parser.add_argument("photos_dir", nargs="?", metavar="PHOTOS_DIR", help="photos to use instead of our own set")
    parser.add_argument("--rounds", type=int, default=3, help="each side runs once a round, in turns [3]")
    parser.add_argument("--photos", type=int, metavar="N", help="only N of the photos, spread over all sizes")
    wishes = parser.parse_args()
    photos = album.photos(wishes.photos_dir, wishes.photos)
    try:
        python, sparks, sharp = workshop.python_with_dlib(), workshop.sparks(), engines.engine("sharp-clones", 2)
    except workshop.Missing as missing:
        raise SystemExit(f"faces: {missing}") from None
    print(album.describe(photos))
    sides = {"platform": lambda: _platform(photos, sharp, python), "ours": lambda: _ours(photos, sparks)}
    taken = {name: [] for name in sides}
    for number in range(wishes.rounds):
        for name, run in list(sides.items())[:: -1 if number % 2 else 1]:
            cpu, faces = run()
            taken[name].append(cpu / len(photos))
            say(f"  round {number + 1}/{wishes.rounds} {name:9} {taken[name][-1] * 1000:6.0f} ms of CPU a photo, {faces} faces")
    ratios = [ours / theirs for ours, theirs in zip(taken["ours"], taken["platform"])]
    for name, every in taken.items():
        print(f"{name:9} {statistics.median(every) * 1000:6.0f} ms of CPU a photo")
    print(f"ours is {statistics.median(ratios):.2f} ({min(ratios):.2f}..{max(ratios):.2f}) of it")


def _platform(photos, sharp, python):
    """Both pictures by sharp, then the faces in the large ones."""
    out = SHOP / "pictures" / "faces"
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    figures = sharp.run(rows.platform(4, True), photos, sharp.ways[0], out)
    larges = sorted(out.glob("*.large.webp"))
    found = workshop.taken([python, "-B", HOME / "contestants" / "dlib_faces.py", *larges])
    return figures["cpu"] + found["cpu"], int(found["said"])


def _ours(photos, sparks):
    data = SHOP / "ingested"
    shutil.rmtree(data, ignore_errors=True)
    found = workshop.taken([sparks, "ingest", "--data", data, "--faces", "local", "--json", *photos])
    shutil.rmtree(data)
    return found["cpu"], json.loads(found["said"].splitlines()[-1])["faces"]


if __name__ == "__main__":
    main()
