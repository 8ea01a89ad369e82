"""Tiny models of random weights, made here and kept in a folder: local models are tested without any download."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

_WORDS = "the a judge court woman man nurse doctor law city river she he was is born wrote book good bad yes no"
WORDS = tuple(_WORDS.split())
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "<|endoftext|>"]
SIZE = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}


def tokenizer(words: Sequence[str] = WORDS, limit: int = 128, pairs: bool = True) -> Any:
    """A token a word, in lower case; with `pairs` texts stand between [CLS] and [SEP]."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    vocabulary = {word: number for number, word in enumerate([*SPECIAL, *words, ".", ",", "?"])}
    found = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    found.normalizer = normalizers.Lowercase()
    found.pre_tokenizer = pre_tokenizers.Whitespace()
    if pairs:
        found.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    names = {"pad_token": "[PAD]", "unk_token": "[UNK]"}
    if pairs:
        names |= {"cls_token": "[CLS]", "sep_token": "[SEP]", "mask_token": "[MASK]"}
    else:
        names |= {"bos_token": "<|endoftext|>", "eos_token": "<|endoftext|>"}
    return PreTrainedTokenizerFast(tokenizer_object=found, model_max_length=limit, **names)


def save_causal(folder: Path, words: Sequence[str] = WORDS, seed: int = 3, limit: int = 128) -> Path:
    """A GPT-2 of two layers."""
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel

    tokens = tokenizer(words, limit, pairs=False)
    torch.manual_seed(seed)
    sizes = {"vocab_size": len(tokens), "n_embd": 16, "n_layer": 2, "n_head": 2, "n_positions": limit}
    ends = {"bos_token_id": tokens.bos_token_id, "eos_token_id": tokens.eos_token_id}
    return _saved(folder, tokens, GPT2LMHeadModel(GPT2Config(**sizes, **ends, initializer_range=1.0)))


def _bert(kind: str, folder: Path, words: Sequence[str] = WORDS, seed: int = 3, limit: int = 128, **more: Any) -> Path:
    import torch
    import transformers

    tokens = tokenizer(words, limit)
    torch.manual_seed(seed)
    config = transformers.BertConfig(
        vocab_size=len(tokens), max_position_embeddings=limit, initializer_range=1.0, **SIZE, **more
    )
    return _saved(folder, tokens, getattr(transformers, kind)(config))


def _saved(folder: Path, tokens: Any, model: Any) -> Path:
    tokens.save_pretrained(folder)
    model.save_pretrained(folder)
    return folder


save_bert = partial(_bert, "BertModel")
"""A BERT of two layers without a head."""
save_masked = partial(_bert, "BertForMaskedLM")
"""One that fills in masks."""
save_next_sentence = partial(_bert, "BertForPreTraining")
"""One that says whether one sentence follows another, and fills in masks."""
save_cross_encoder = partial(_bert, "BertForSequenceClassification", num_labels=1)
"""One that gives a pair of texts one number."""


def save_classifier(folder: Path, labels: Sequence[str], words: Sequence[str] = WORDS, limit: int = 128) -> Path:
    """One that puts a text into one of some classes."""
    named = {"id2label": dict(enumerate(labels)), "label2id": {label: place for place, label in enumerate(labels)}}
    kind = "BertForSequenceClassification"
    return _bert(kind, folder, words, limit=limit, num_labels=len(labels), **named)
