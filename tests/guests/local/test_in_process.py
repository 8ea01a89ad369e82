"""Models that run in this process: tiny ones of random weights, sequence-to-sequence and causal."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tiny_models import save_causal, save_t5

from fairagent.errors import (
    BudgetExceeded,
    ReplyInvalid,
    ReplyTruncated,
)
from fairagent.guests.local.in_process import InProcessModel, Weights
from fairagent.llm import ModelRequest, Reply, ask
from fairagent.llm.budget import ledger
from fairagent.llm.models import Models
from fairagent.settings import BudgetSettings, ModelSettings, Price, TransformersSettings

PROMPTS = (
    "the judge",
    "a woman wrote the book . she was",
    "the river",
    "the doctor is a man",
    "law",
    "good city , bad",
)


@pytest.fixture(scope="module")
def causal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_causal(tmp_path_factory.mktemp("local") / "causal")


@pytest.fixture(scope="module")
def t5(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_t5(tmp_path_factory.mktemp("local") / "t5")


@pytest.fixture(params=["causal", "t5"])
def folder(request: pytest.FixtureRequest) -> Path:
    pytest.importorskip("transformers")
    return request.getfixturevalue(request.param)


def settings(folder: Path, beams: int = 1, batch: int = 8, **more: Any) -> ModelSettings:
    own = TransformersSettings(beams=beams, batch=batch, device="cpu")
    return ModelSettings(**{"name": str(folder), "temperature": 0, "max_tokens": 12, "transformers": own, **more})


def asked(text: str, **more: Any) -> ModelRequest:
    return ModelRequest((("user", text),), **{"whole": False, **more})


def local(folder: Path, **more: Any) -> InProcessModel:
    return InProcessModel(settings(folder, **more), Weights(str(folder), "cpu"))


def by_hand(folder: Path, text: str, steps: int) -> str:
    """The likeliest tokens one after the other, by the model's own forward pass."""
    import torch
    import transformers

    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    ids = tokenizer(text, return_tensors="pt").input_ids
    said: list[int] = []
    config = transformers.AutoConfig.from_pretrained(folder)
    kind = transformers.AutoModelForSeq2SeqLM if config.is_encoder_decoder else transformers.AutoModelForCausalLM
    model = kind.from_pretrained(folder).eval()
    with torch.inference_mode():
        for _ in range(steps):
            if config.is_encoder_decoder:
                logits = model(input_ids=ids, decoder_input_ids=torch.tensor([[0, *said]])).logits
            else:
                logits = model(input_ids=torch.cat([ids, torch.tensor([said], dtype=torch.long)], dim=1)).logits
            best = int(logits[0, -1].argmax())
            if best == tokenizer.eos_token_id:
                break
            said.append(best)
    return str(tokenizer.decode(said, skip_special_tokens=True)).strip()


@pytest.mark.slow
def test_at_temperature_0_it_says_the_likeliest_tokens(folder: Path) -> None:
    model = local(folder)
    for text in PROMPTS[:2]:
        assert model.complete(asked(text)).text == by_hand(folder, text, 12)


def test_a_batch_says_what_each_prompt_gets_alone(folder: Path) -> None:
    model = local(folder, batch=4)
    alone = [model.complete(asked(text)).text for text in PROMPTS]
    sizes: list[int] = []
    generate = model.weights._generate
    model.weights._generate = lambda batch: (sizes.append(len(batch)), generate(batch))  # type: ignore[assignment,func-returns-value]
    with ThreadPoolExecutor(len(PROMPTS)) as threads:
        # All of them wait while somebody else has the model.
        with model.weights._turn:
            found = [threads.submit(model.complete, asked(text)) for text in PROMPTS]
            while len(model.weights._waiting) < len(PROMPTS):
                threading.Event().wait(0.01)
        assert [one.result().text for one in found] == alone
    assert sorted(sizes) == [2, 4]
    assert model.weights._waiting == []


def test_beams_find_what_the_library_finds_and_draw_nothing(folder: Path) -> None:
    import torch
    import transformers

    weights = Weights(str(folder), "cpu")
    greedy = InProcessModel(settings(folder, max_tokens=12), weights)
    beams = InProcessModel(settings(folder, beams=4, max_tokens=12, temperature=0.9), weights)
    tokenizer, model = weights._open()
    differs = False
    for text in PROMPTS[:1] if weights.causal else PROMPTS[1:2]:
        ids = tokenizer(text, return_tensors="pt").input_ids
        config = transformers.GenerationConfig(
            max_new_tokens=12,
            num_beams=4,
            pad_token_id=0,
            eos_token_id=tokenizer.eos_token_id,
            decoder_start_token_id=0,
        )
        with torch.inference_mode():
            row = model.generate(input_ids=ids, attention_mask=torch.ones_like(ids), generation_config=config)[0]
        expected = tokenizer.decode(row[ids.shape[1] if weights.causal else 1 :], skip_special_tokens=True).strip()
        found = [beams.complete(asked(text)).text for _ in range(2)]
        assert found == [expected, expected]
        differs |= expected != greedy.complete(asked(text)).text
    assert differs


def test_biased_words_are_said_less_often(causal: Path) -> None:
    weights = Weights(str(causal), "cpu")
    plain = InProcessModel(settings(causal), weights)
    said = plain.complete(asked("the judge")).text.split()
    own = TransformersSettings(device="cpu", biased_words=(said[0],), alpha=1e-9)
    changed = InProcessModel(settings(causal, transformers=own), weights)
    assert said[0] not in changed.complete(asked("the judge")).text.split()
    mild = InProcessModel(settings(causal, transformers=own.model_copy(update={"alpha": 1.0})), weights)
    assert mild.complete(asked("the judge")).text.split() == said
    assert plain.identity(asked("the judge")) != changed.identity(asked("the judge"))


def test_what_is_drawn_depends_on_the_seed_alone(folder: Path) -> None:
    import torch

    model = local(folder, temperature=1.0)
    state = torch.random.get_rng_state()
    found = {seed: model.complete(asked(PROMPTS[1], seed=seed)).text for seed in (0, 1, 2)}
    assert len(set(found.values())) > 1
    assert all(model.complete(asked(PROMPTS[1], seed=seed)).text == text for seed, text in found.items())
    assert model.complete(asked(PROMPTS[1])).text == found[0]
    assert torch.equal(torch.random.get_rng_state(), state)


def test_tokens_are_counted_and_limits_told(causal: Path) -> None:
    reply = local(causal).complete(asked("the judge is a woman"))
    assert (reply.input_tokens, reply.output_tokens, reply.finish, reply.estimated) == (5, 12, "length", False)
    with pytest.raises(ReplyTruncated, match=r"cut off after 12 tokens; raise model\.max_tokens") as fault:
        local(causal).complete(asked("the judge is a woman", whole=True))
    assert (fault.value.usage.input_tokens, fault.value.usage.output_tokens) == (5, 12)
    assert fault.value.raw == reply.text
    assert local(causal).complete(asked("law", max_tokens=3)).output_tokens == 3


def test_a_reply_ends_where_the_model_ends_it(causal: Path) -> None:
    model = local(causal)
    tokenizer, opened = model.weights._open()
    first, second, end, *_ = model.complete(asked("the judge")).text.split()
    assert end not in (first, second)
    # A model may have several ends.
    opened.generation_config.eos_token_id = [tokenizer.eos_token_id, tokenizer.convert_tokens_to_ids(end)]
    reply = model.complete(asked("the judge", whole=True))
    assert (reply.text, reply.output_tokens, reply.finish) == (f"{first} {second}", 3, "stop")
    opened.generation_config.eos_token_id = tokenizer.convert_tokens_to_ids(first)
    with pytest.raises(ReplyInvalid, match="empty reply") as fault:
        model.complete(asked("the judge"))
    assert fault.value.usage.output_tokens == 1


TEMPLATE = (
    "{% for m in messages %}{{ m['role'] }} : {{ m['content'] }} . {% endfor %}"
    "{% if add_generation_prompt %}yes{% endif %}"
)


def test_messages_take_the_form_of_the_chat_template(causal: Path) -> None:
    weights = Weights(str(causal), "cpu")
    tokenizer, _ = weights._open()
    messages = (("system", "the law"), ("user", "a judge"))
    assert tokenizer.decode(weights.read(messages)) == "the law a judge"
    tokenizer.chat_template = TEMPLATE
    assert tokenizer.decode(weights.read(messages)).split()[-1] == "yes"
    # A template that knows no system: both are said by the user.
    tokenizer.chat_template = (
        "{% if messages[0]['role'] == 'system' %}{{ raise_exception('no system') }}{% endif %}" + TEMPLATE
    )
    read = weights.read(messages)
    assert tokenizer.decode(read).replace("[UNK] ", "") == "the law a judge . yes"
    with pytest.raises(Exception, match="no system"):
        weights.read(messages[:1])


class Verdict(Reply):
    """A reply."""

    good: bool


def test_structured_replies_are_asked_for_in_the_prompt_and_checked(causal: Path, tmp_path: Path) -> None:
    models = Models(tmp_path / "replies")
    door = models.open(settings(causal))
    written = iter(["good", '{"good": 3}', '{"good": true}'])
    weights = door.model.weights  # type: ignore[attr-defined]
    write, prompts = weights.write, []

    def scripted(ids: list[int], decoding: Any) -> Any:
        prompts.append(ids)
        return replace(write(ids, decoding), text=next(written), whole=True)

    weights.write = scripted
    found, usage = ask(door, asked("good ?", whole=True), Verdict)
    assert found.good
    assert usage.calls == 3
    assert len(prompts[0]) < len(prompts[1])  # the fault was named
    again, kept = ask(door, asked("good ?", whole=True), Verdict)
    assert again == found
    assert (kept.calls, kept.saved.calls if kept.saved else 0) == (0, 3)
    models.close()


def test_replies_are_kept_by_everything_that_they_depend_on(causal: Path, t5: Path, tmp_path: Path) -> None:
    models = Models(tmp_path / "replies", prices={str(causal): Price(input=2, output=10)})
    with ledger() as spent:
        first = models.open(settings(causal)).complete(asked("the judge"))
        again = models.open(settings(causal, batch=2)).complete(asked("the judge"))
    assert (first.cached, again.cached, again.text) == (False, True, first.text)
    assert (spent.usage.calls, spent.usage.input_tokens, spent.usage.output_tokens) == (1, 2, 12)
    assert spent.usage.cost == pytest.approx((2 * 2 + 12 * 10) / 1e6)
    others = [
        models.open(settings(t5)),
        models.open(settings(causal, beams=2)),
        models.open(settings(causal, temperature=0.5)),
        models.open(settings(causal, max_tokens=5)),
    ]
    assert not any(door.complete(asked("the judge")).cached for door in others)
    models.close()


def test_new_weights_in_a_folder_are_asked_again(tmp_path: Path) -> None:
    folder = save_causal(tmp_path / "model", seed=3)
    found = []
    for seed in (3, 5):
        save_causal(folder, seed=seed)
        models = Models(tmp_path / "replies")
        found.append(models.open(settings(folder)).complete(asked("the judge")))
        models.close()
    assert not found[1].cached
    assert found[0].text != found[1].text


def test_budgets_count_the_tokens_of_the_tokenizer(causal: Path) -> None:
    models = Models("", BudgetSettings(tokens=30))
    door = models.open(settings(causal))
    assert door.complete(asked("the judge")).usage.input_tokens == 2  # 14 of 30
    door.complete(asked("the judge"))  # 28
    with pytest.raises(BudgetExceeded, match="28 are used, the next call may take 14"):
        door.complete(asked("the judge"))
    models.close()
