"""Compares the CPU time per photo of `sparks ingest` with that of sharp and dlib. Started by `faces`."""

import argparse
import json
import shutil
import statistics

import encode_settings
import engines
import installation
import photo_set
from installation import HOME, TARGET, log


def main():
    parser = argparse.ArgumentParser(prog="faces", description=__doc__)
    parser.add_argument("photos_dir", nargs="?", metavar="PHOTOS_DIR", help="folder of photos to use instead of the default photos")
    parser.add_argument("--rounds", type=int, default=3, help="rounds; both sides run once per round [3]")
    parser.add_argument("--photos", type=int, metavar="N", help="use only N of the photos, spread over all sizes")
    options = parser.parse_args()
    photos = photo_set.photos(options.photos_dir, options.photos)
    try:
        python, sparks, sharp = installation.python_with_dlib(), installation.sparks(), engines.engine("sharp-clones", 2)
    except installation.MissingDependency as missing:
        raise SystemExit(f"faces: {missing}") from None
    print(photo_set.describe(photos))
    sides = {"platform": lambda: _platform(photos, sharp, python), "ours": lambda: _ours(photos, sparks)}
    cpu_per_photo = {name: [] for name in sides}
    for number in range(options.rounds):
        for name, run in list(sides.items())[:: -1 if number % 2 else 1]:
            cpu, faces = run()
            cpu_per_photo[name].append(cpu / len(photos))
            log(f"  round {number + 1}/{options.rounds} {name:9} {cpu / len(photos) * 1000:6.0f} ms CPU per photo, {faces} faces")
    ratios = [ours / platform for ours, platform in zip(cpu_per_photo["ours"], cpu_per_photo["platform"])]
    for name, rounds in cpu_per_photo.items():
        print(f"{name:9} {statistics.median(rounds) * 1000:6.0f} ms CPU per photo")
    print(f"ratio ours / platform: {statistics.median(ratios):.2f} ({min(ratios):.2f}..{max(ratios):.2f})")


def _platform(photos, sharp, python):
    """Returns the CPU time of sharp for both variants and of dlib for the faces in the large ones, and the number of faces."""
    out = TARGET / "variants" / "faces"
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    usage = sharp.run(encode_settings.platform(4, True), photos, sharp.parallelism_options[0], out)
    large_variants = sorted(out.glob("*.large.webp"))
    dlib = installation.run_measured([python, "-B", HOME / "runners" / "dlib_faces.py", *large_variants])
    return usage["cpu"] + dlib["cpu"], int(dlib["output"])


def _ours(photos, sparks):
    """Returns the CPU time of `sparks ingest`, and the number of faces."""
    data = TARGET / "ingested"
    shutil.rmtree(data, ignore_errors=True)
    ingest = installation.run_measured([sparks, "ingest", "--data", data, "--faces", "local", "--json", *photos])
    shutil.rmtree(data)
    return ingest["cpu"], json.loads(ingest["output"].splitlines()[-1])["faces"]


if __name__ == "__main__":
    main()
