"""A GGUF file's model as a folder that transformers opens: its weights in full, for likelihoods."""

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fairagent.errors import BackendUnavailable, DataError, UsageError
from fairagent.folders import workshop
from fairagent.llm.local.header import read_header
from fairagent.loading import EXTRAS, expect_installed, without_progress

EXTRA = "local"


def convert(file: Path, folder: Path, on_step: Callable[[str], None] = lambda step: None) -> Path:
    """Write the model in `file` to the new `folder`: the tokenizer of its metadata, its weights as 32-bit numbers.

    llama.cpp's server does not tell how likely a prompt is; this folder can be named wherever likelihoods are asked
    for (`CausalModel`). What quantization took from the weights does not come back: they are those that are served.
    `on_step` is told what is being done. Nothing is left where it fails.

    Raises UsageError where the folder is there, BackendUnavailable without gguf, accelerate or the file, DataError for
    a damaged file or an architecture that transformers does not read from GGUF files.
    """
    if folder.exists():
        raise UsageError(f"{folder} is there already; nothing is overwritten: name a new folder, or delete it")
    header = read_header(file)
    for package in EXTRAS[EXTRA][1:]:
        expect_installed(package, "reading the weights of a GGUF file", EXTRA)
    library, torch = importlib.import_module("transformers"), importlib.import_module("torch")
    place: dict[str, Any] = {"gguf_file": file.name, "local_files_only": True}
    with workshop(folder) as shop, without_progress():
        try:
            shop.begin()
            on_step(f"reading the tokenizer of {header.name}")
            library.AutoTokenizer.from_pretrained(file.parent, **place).save_pretrained(shop.new)
            on_step("reading and dequantizing the weights")
            read = library.AutoModelForCausalLM.from_pretrained(file.parent, dtype=torch.float32, **place)
            on_step(f"writing {sum(one.numel() for one in read.parameters()) * 4 / 1e6:,.0f} MB to {folder}")
            # What was quantized does not let itself be saved; a model of the same weights does.
            full = type(read)(read.config)
            full.load_state_dict(read.state_dict())
            full.save_pretrained(shop.new)
            shop.put()
        except (ValueError, KeyError, NotImplementedError) as error:
            said = str(error).strip().splitlines() or [type(error).__name__]
            raise DataError(
                f"transformers cannot read {file} (architecture {header.architecture!r}): {said[0]}"
            ) from error
        except OSError as error:
            raise BackendUnavailable(f"{file} cannot be converted: {str(error).splitlines()[0]}") from error
        finally:
            shop.clear()
    return folder
