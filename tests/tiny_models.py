"""Tiny models of random weights, made here and kept in a folder: local models are tested without any download."""

from __future__ import annotations

from collections.abc import Sequence
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
    config = GPT2Config(
        vocab_size=len(tokens),
        n_embd=16,
        n_layer=2,
        n_head=2,
        n_positions=limit,
        initializer_range=1.0,
        bos_token_id=tokens.bos_token_id,
        eos_token_id=tokens.eos_token_id,
    )
    return _saved(folder, tokens, GPT2LMHeadModel(config))


def save_masked(folder: Path, words: Sequence[str] = WORDS, seed: int = 3, limit: int = 128) -> Path:
    """A BERT of two layers that fills in masks."""
    return _bert("BertForMaskedLM", folder, words, seed, limit)


def save_next_sentence(folder: Path, words: Sequence[str] = WORDS, seed: int = 3, limit: int = 128) -> Path:
    """A BERT of two layers that says whether one sentence follows another, and fills in masks."""
    return _bert("BertForPreTraining", folder, words, seed, limit)


def save_cross_encoder(folder: Path, words: Sequence[str] = WORDS, seed: int = 3, limit: int = 128) -> Path:
    """A BERT of two layers that gives a pair of texts one number."""
    return _bert("BertForSequenceClassification", folder, words, seed, limit, num_labels=1)


def save_classifier(
    folder: Path, labels: Sequence[str], words: Sequence[str] = WORDS, seed: int = 3, limit: int = 128
) -> Path:
    """A BERT of two layers that puts a text into one of some classes."""
    named = {"id2label": dict(enumerate(labels)), "label2id": {label: place for place, label in enumerate(labels)}}
    return _bert("BertForSequenceClassification", folder, words, seed, limit, num_labels=len(labels), **named)


def save_bert(folder: Path, words: Sequence[str] = WORDS, seed: int = 3, limit: int = 128) -> Path:
    """A BERT of two layers without a head."""
    return _bert("BertModel", folder, words, seed, limit)


def _bert(kind: str, folder: Path, words: Sequence[str], seed: int, limit: int, **more: Any) -> Path:
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
