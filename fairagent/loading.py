"""Opening packages and transformers models that are on this machine."""

import importlib
import importlib.util
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from fairagent.errors import BackendUnavailable, UsageError

DTYPES = ("float32", "bfloat16", "float16")


def installed(package: str, what: str, module: str = "") -> Any:
    """The package, imported; BackendUnavailable, saying that `what` needs it, where it is not installed.

    `module` is the name under which it is imported, where that is not the package's own.
    """
    module = module or package.replace("-", "_")
    if importlib.util.find_spec(module) is None:
        raise BackendUnavailable(f"{what} needs the package {package}; install it with: pip install {package}")
    return importlib.import_module(module)


def load(
    kind: str, name: str, device: str = "", dtype: str = "", what: str = "language model", such_as: str = ""
) -> tuple[Any, Any]:
    """The tokenizer and the model, ready to be asked, of a folder or of a name in the Hugging Face cache.

    `kind` is the class of transformers that opens it, e.g. AutoModelForCausalLM. `device` is torch's, "" a GPU where
    there is one; `dtype` float32, bfloat16 or float16, "" the one that the model was saved in. `what` names the model
    in messages, `such_as` one that would do. Nothing is downloaded: BackendUnavailable says what is missing. Only
    tokenizers of the fast kind will do, since these say where in a text a token stands.
    """
    library = installed("transformers", f"a local {what}")
    torch = importlib.import_module("torch")
    if dtype and dtype not in DTYPES:
        raise UsageError(f"dtype: {dtype!r} is none of {', '.join(DTYPES)}")
    place = found_device(device)
    try:
        with without_progress(), _without_reports(library):
            tokenizer = library.AutoTokenizer.from_pretrained(name, local_files_only=True)
            model, told = getattr(library, kind).from_pretrained(
                name, local_files_only=True, dtype=getattr(torch, dtype) if dtype else "auto", output_loading_info=True
            )
    except OSError as error:
        raise _not_here(name, what, such_as) from error
    except (ValueError, KeyError) as error:
        raise BackendUnavailable(f"{name!r} cannot be opened as {kind}: {str(error).splitlines()[0]}") from error
    if missing := sorted(told["missing_keys"]):
        # The library would make them up at random.
        raise BackendUnavailable(f"{name!r} cannot be opened as {kind}: it has no weights {missing[0]}")
    if not tokenizer.is_fast:
        raise BackendUnavailable(f"the tokenizer of {name!r} is not a fast one, which says where its tokens stand")
    return tokenizer, model.to(place).eval()


def read_config(name: str, what: str = "language model") -> Any:
    """What a model's folder, or name in the Hugging Face cache, says of itself; its weights are not opened.

    Raises BackendUnavailable where it is not on this machine, or of an architecture that the library does not know.
    """
    library = installed("transformers", f"a local {what}")
    try:
        return library.AutoConfig.from_pretrained(name, local_files_only=True)
    except OSError as error:
        raise _not_here(name, what, "") from error
    except (ValueError, KeyError) as error:
        raise BackendUnavailable(
            f"transformers does not know the model {name!r}: {str(error).splitlines()[0]}"
        ) from error


def _not_here(name: str, what: str, such_as: str) -> BackendUnavailable:
    return BackendUnavailable(
        f"no {what} {name!r} on this machine; name a model's folder, or download it beforehand"
        + (f", such as {such_as}" if such_as else "")
    )


@contextmanager
def without_progress() -> Iterator[None]:
    """No progress bars of the model library: what is printed is the command line's business."""
    bars = importlib.import_module("transformers.utils.logging")
    shown = bars.is_progress_bar_enabled()
    bars.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            bars.enable_progress_bar()


@contextmanager
def _without_reports(library: Any) -> Iterator[None]:
    """No warnings of the model library about weights that are not there: those are errors here."""
    said = library.logging.get_verbosity()
    library.logging.set_verbosity_error()
    try:
        yield
    finally:
        library.logging.set_verbosity(said)


def found_device(device: str) -> str:
    """The device to work on; "" is a GPU where there is one. UsageError where it is none of this machine's."""
    torch = importlib.import_module("torch")
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
