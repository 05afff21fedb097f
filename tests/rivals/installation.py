"""Installs the other libraries and builds the programs of this repository, all under `target/rivals`."""

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
TARGET = ROOT / "target" / "rivals"
PYTHON = TARGET / "python"
NODE = TARGET / "node"
PROGRAMS = TARGET / "programs"
# face_recognition_models imports pkg_resources, which setuptools 81 removed.
DLIB = ["dlib-bin==20.0.1", "face_recognition_models==0.3.0", "numpy==2.4.6", "Pillow==13.0.0", "setuptools<81"]


class MissingDependency(Exception):
    """A dependency has to be installed by hand; the text says which and how."""


def log(text):
    """Prints progress to standard error; standard output contains the tables only."""
    print(text, file=sys.stderr, flush=True)


def python_with_libraries():
    """Returns the interpreter of a virtual environment with the packages of requirements.txt."""
    python = PYTHON / "bin" / "python"
    listing = (HOME / "requirements.txt").read_bytes()
    if not _is_installed(PYTHON, listing):
        log("installing pyvips, Pillow, numpy and matplotlib under target/rivals/python")
        _make_venv(PYTHON)
        _run([python, "-m", "pip", "install", "--quiet", "-r", HOME / "requirements.txt"])
        _mark_installed(PYTHON, listing)
    return python


def python_with_dlib():
    """Returns the interpreter of a virtual environment with dlib and its models: 100 MB that only `faces` needs."""
    python = TARGET / "dlib" / "bin" / "python"
    listing = "\n".join(DLIB).encode()
    if not _is_installed(TARGET / "dlib", listing):
        log("installing dlib and its models under target/rivals/dlib")
        _make_venv(TARGET / "dlib")
        _run([python, "-m", "pip", "install", "--quiet", *DLIB])
        _mark_installed(TARGET / "dlib", listing)
    return python


def run_measured(command):
    """Runs a command and returns its output, and the CPU time of its process and children in seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("SPARKS_")}
    process = subprocess.run([str(part) for part in command], capture_output=True, text=True, env=environment)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if process.returncode:
        raise SystemExit(f"{command[0]} exited with {process.returncode}:\n{process.stderr[-2000:]}")
    return {"output": process.stdout.strip(), "cpu": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime}


def node_with_sharp():
    """Returns the folder whose node_modules contains sharp."""
    if not shutil.which("node") or not shutil.which("npm"):
        raise MissingDependency("sharp needs node and npm: install Node.js 20.9 or later, or leave sharp out of --engines")
    listing = (HOME / "package.json").read_bytes()
    if not _is_installed(NODE, listing):
        log("installing sharp under target/rivals/node")
        NODE.mkdir(parents=True, exist_ok=True)
        shutil.copy(HOME / "package.json", NODE)
        _run(["npm", "install", "--no-fund", "--no-audit", "--loglevel=error"], cwd=NODE)
        _mark_installed(NODE, listing)
    return NODE


def render():
    """Builds the image processor alone and returns its program."""
    return _build("render", "sparks-media", ["--example", "render"], "examples/render")


def render_turbo():
    """Builds the image processor with libjpeg-turbo (feature `turbo`) and returns its program."""
    features = tomllib.loads((ROOT / "pipeline/media/Cargo.toml").read_text()).get("features", {})
    if "turbo" not in features:
        raise MissingDependency("sparks-media has no feature `turbo`")
    if not shutil.which("nasm"):
        raise MissingDependency("libjpeg-turbo needs nasm for SIMD: apt install nasm")
    if not shutil.which("cmake") and not (PYTHON / "bin" / "cmake").exists():
        _run([PYTHON / "bin" / "python", "-m", "pip", "install", "--quiet", "cmake"])
    flags = ["--example", "render", "--features", "turbo"]
    return _build("render-turbo", "sparks-media", flags, "examples/render")


def sparks():
    """Builds the worker and returns its program."""
    return _build("sparks", "sparks-worker", ["--bin", "sparks"], "sparks")


def sparks_versions():
    """Returns the version of sparks and of its image crates, from Cargo.lock."""
    packages = tomllib.loads((ROOT / "Cargo.lock").read_text())["package"]
    versions = {package["name"]: package["version"] for package in packages}
    parts = ["fast_image_resize", "libwebp-sys"]
    commit = subprocess.run(["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True)
    sparks_version = f"sparks {versions['sparks-media']} {commit.stdout.strip()}".strip()
    return f"{sparks_version} ({', '.join(f'{part} {versions[part]}' for part in parts if part in versions)})"


def _build(name, package, flags, path):
    """Builds a program and copies it, because the next build with other features overwrites the file."""
    log(f"building {name} (release)")
    path_with_tools = f"{os.environ['PATH']}{os.pathsep}{PYTHON / 'bin'}"
    command = ["cargo", "build", "--release", "--quiet", "-p", package, *flags, "--message-format=json"]
    build = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, env=os.environ | {"PATH": path_with_tools})
    if build.returncode:
        raise MissingDependency(f"failed to build {name}: {' '.join(command[:-1])}")
    messages = [json.loads(line) for line in build.stdout.splitlines()]
    executables = [Path(message["executable"]) for message in messages if message.get("executable")]
    program = next(executable for executable in executables if executable.as_posix().endswith(path))
    PROGRAMS.mkdir(parents=True, exist_ok=True)
    return shutil.copy(program, PROGRAMS / name)


def _make_venv(folder):
    """Creates a virtual environment with `python -m venv`, whose error message names a missing package."""
    try:
        _run([sys.executable, "-m", "venv", "--clear", folder])
    except MissingDependency as missing:
        raise MissingDependency(f"failed to create a virtual environment (on Debian: apt install python3-venv): {missing}") from None


def _is_installed(folder, listing):
    """Returns whether these packages were installed completely: the marker file is written last."""
    marker = folder / "installed"
    return marker.exists() and marker.read_text() == _digest(listing)


def _mark_installed(folder, listing):
    (folder / "installed").write_text(_digest(listing))


def _digest(listing):
    return hashlib.sha256(listing).hexdigest()


def _run(command, **options):
    command = [str(part) for part in command]
    try:
        subprocess.run(command, check=True, stdout=sys.stderr, **options)
    except (OSError, subprocess.CalledProcessError) as error:
        cause = f"exit code {error.returncode}" if isinstance(error, subprocess.CalledProcessError) else error
        raise MissingDependency(f"`{' '.join(command)}` failed: {cause}") from None
