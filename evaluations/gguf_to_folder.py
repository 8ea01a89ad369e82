"""Writes the model in a GGUF file as a folder of transformers, for whatever asks how likely a text is.

    pip install gguf accelerate
    python evaluations/gguf_to_folder.py FILE.gguf FOLDER

llama.cpp's server returns no likelihoods of a prompt; the folder can be named wherever `kind: causal` is. Its weights
are 32-bit numbers, four bytes each (SmolLM2-135M: 538 MB, minutes); what quantization took does not come back, so that
they are those that are served. Nothing is left where it fails.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from fairagent.errors import UsageError
from fairagent.storage.folders import workshop


def convert(file: Path, folder: Path) -> Path:
    """Write the tokenizer and the weights of `file` to the new `folder`."""
    if folder.exists():
        raise UsageError(f"{folder} is there already; nothing is overwritten: name a new folder, or delete it")
    place = {"gguf_file": file.name, "local_files_only": True}
    with workshop(folder) as shop:
        AutoTokenizer.from_pretrained(file.parent, **place).save_pretrained(shop.new)
        model = AutoModelForCausalLM.from_pretrained(file.parent, dtype=torch.float32, **place)
        # What was quantized does not let itself be saved; a model of the same weights does.
        full = type(model)(model.config)
        full.load_state_dict(model.state_dict())
        full.save_pretrained(shop.new)
        shop.put()
    return folder


def main() -> None:
    """Convert, and print the folder."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path, metavar="FILE.gguf")
    parser.add_argument("folder", type=Path, metavar="FOLDER")
    options = parser.parse_args()
    try:
        print(convert(options.file, options.folder))
    except UsageError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
