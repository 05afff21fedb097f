"""Where rivals are installed and our own programs are built: everything under `target/rivals`."""

import hashlib
import json
import os
import resource
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

HOME = Path(__file__).resolve().parent
ROOT = HOME.parents[1]
SHOP = ROOT / "target" / "rivals"
PYTHON = SHOP / "python"
NODE = SHOP / "node"
PROGRAMS = SHOP / "programs"
# The models' package asks for pkg_resources, which newer setuptools no longer have.
DLIB = ["dlib-bin==20.0.1", "face_recognition_models==0.3.0", "numpy==2.4.6", "Pillow==13.0.0", "setuptools<81"]


class Missing(Exception):
    """Something has to be installed by hand; the text says what and how."""


def say(text):
    """Progress goes to standard error; the tables alone go to standard output."""
    print(text, file=sys.stderr, flush=True)


def python_with_libraries():
    """The interpreter of a virtual environment with what requirements.txt lists."""
    python = PYTHON / "bin" / "python"
    listing = (HOME / "requirements.txt").read_bytes()
    if _is_new(PYTHON, listing):
        say("installing pyvips, Pillow, numpy and matplotlib under target/rivals/python")
        _make_venv(PYTHON)
        _run([python, "-m", "pip", "install", "--quiet", "-r", HOME / "requirements.txt"])
        _remember(PYTHON, listing)
    return python


def python_with_dlib():
    """The interpreter of another one, with dlib and its models: 100 MB that only `faces` needs."""
    python = SHOP / "dlib" / "bin" / "python"
    listing = "\n".join(DLIB).encode()
    if _is_new(SHOP / "dlib", listing):
        say("installing dlib and its models under target/rivals/dlib")
        _make_venv(SHOP / "dlib")
        _run([python, "-m", "pip", "install", "--quiet", *DLIB])
        _remember(SHOP / "dlib", listing)
    return python


def taken(command):
    """What a command said, and the CPU of all of its process and children."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("SPARKS_")}
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, env=environment)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise SystemExit(f"{command[0]} ended with {done.returncode}:\n{done.stderr[-2000:]}")
    return {"said": done.stdout.strip(), "cpu": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime}


def node_with_sharp():
    """The folder whose node_modules has sharp."""
    if not shutil.which("node") or not shutil.which("npm"):
        raise Missing("node and npm are missing, for sharp: install Node.js 20.9 or later, or leave sharp out of --engines")
    listing = (HOME / "package.json").read_bytes()
    if _is_new(NODE, listing):
        say("installing sharp under target/rivals/node")
        NODE.mkdir(parents=True, exist_ok=True)
        shutil.copy(HOME / "package.json", NODE)
        _run(["npm", "install", "--no-fund", "--no-audit", "--loglevel=error"], cwd=NODE)
        _remember(NODE, listing)
    return NODE


def develop():
    """Our photo engine alone."""
    return _built("develop", "sparks-media", ["--example", "develop"], "examples/develop")


def develop_turbo():
    """The same with the C decoder of the `turbo` feature."""
    features = tomllib.loads((ROOT / "pipeline/media/Cargo.toml").read_text()).get("features", {})
    if "turbo" not in features:
        raise Missing("sparks-media has no feature `turbo`")
    if not shutil.which("nasm"):
        raise Missing("nasm is missing, without which libjpeg-turbo has no SIMD: apt install nasm")
    if not shutil.which("cmake") and not (PYTHON / "bin" / "cmake").exists():
        _run([PYTHON / "bin" / "python", "-m", "pip", "install", "--quiet", "cmake"])
    flags = ["--example", "develop", "--features", "turbo"]
    return _built("develop-turbo", "sparks-media", flags, "examples/develop")


def sparks():
    """The whole worker."""
    return _built("sparks", "sparks-worker", ["--bin", "sparks"], "sparks")


def our_versions():
    """What our engine is made of, as Cargo.lock has it."""
    packages = tomllib.loads((ROOT / "Cargo.lock").read_text())["package"]
    versions = {package["name"]: package["version"] for package in packages}
    parts = ["fast_image_resize", "libwebp-sys"]
    commit = subprocess.run(["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True)
    own = f"sparks {versions['sparks-media']} {commit.stdout.strip()}".strip()
    return f"{own} ({', '.join(f'{part} {versions[part]}' for part in parts if part in versions)})"


def _built(name, package, flags, path):
    """Kept under a name of its own, because the next build with other features takes the place of this one."""
    say(f"building {name} (release)")
    path_with_tools = f"{os.environ['PATH']}{os.pathsep}{PYTHON / 'bin'}"
    command = ["cargo", "build", "--release", "--quiet", "-p", package, *flags, "--message-format=json"]
    built = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, env=os.environ | {"PATH": path_with_tools})
    if built.returncode:
        raise Missing(f"{name} does not build: {' '.join(command[:-1])}")
    messages = [json.loads(line) for line in built.stdout.splitlines()]
    executables = [Path(message["executable"]) for message in messages if message.get("executable")]
    program = next(executable for executable in executables if executable.as_posix().endswith(path))
    PROGRAMS.mkdir(parents=True, exist_ok=True)
    return shutil.copy(program, PROGRAMS / name)


def _make_venv(folder):
    """By another process, whose complaint about a missing part of Python is shown."""
    try:
        _run([sys.executable, "-m", "venv", "--clear", folder])
    except Missing as missing:
        raise Missing(f"no virtual environment can be made (on Debian: apt install python3-venv): {missing}") from None


def _is_new(folder, listing):
    """What was installed to its end has a mark; what was not is made anew."""
    mark = folder / "installed"
    return not mark.exists() or mark.read_text() != _digest(listing)


def _remember(folder, listing):
    (folder / "installed").write_text(_digest(listing))


def _digest(listing):
    return hashlib.sha256(listing).hexdigest()


def _run(command, **options):
    command = [str(part) for part in command]
    try:
        subprocess.run(command, check=True, stdout=sys.stderr, **options)
    except (OSError, subprocess.CalledProcessError) as error:
        why = f"it ended with {error.returncode}" if isinstance(error, subprocess.CalledProcessError) else error
        raise Missing(f"`{' '.join(command)}`: {why}") from None
