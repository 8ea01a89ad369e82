"""evaluations/debias/serve_transformers.py: what it writes, as it is and under Self-Debias, by the door to models."""

from __future__ import annotations

import runpy
import threading
from pathlib import Path

import numpy as np
import pytest
import tiny_models

from fairagent.guests.local.likelihood import ABOUT, CausalModel, lowered
from fairagent.llm import ModelRequest
from fairagent.llm.models import Models
from fairagent.settings import ModelSettings, SelfDebiasSettings

SCRIPT = Path(__file__).resolve().parents[2] / "evaluations" / "debias" / "serve_transformers.py"
RULE = SelfDebiasSettings(kinds=("gender", "religion"), decay=200.0, least=1e-6)
PROMPTS = ("the nurse was", "a judge", "the law is good and the city")
TOKENS = 8


def by_hand(causal: CausalModel, prompt: str) -> list[int]:
    """The likeliest token under the rule, one after the other."""
    torch = pytest.importorskip("torch")

    def told(ids: list[int]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        with torch.inference_mode():
            return torch.log_softmax(causal.model(torch.tensor([ids])).logits[0, -1].double(), -1).numpy()  # type: ignore[no-any-return]

    ids = causal.tokenizer(prompt)["input_ids"]
    before = [causal.tokenizer(ABOUT.format(kind=kind), add_special_tokens=False)["input_ids"] for kind in RULE.kinds]
    written: list[int] = []
    while len(written) < TOKENS and causal.tokenizer.eos_token_id not in written:
        biased = np.stack([told([*one, *ids, *written]) for one in before])[:, None]
        scores = lowered(told([*ids, *written])[None], biased, RULE.decay, RULE.least)[0]
        written.append(int(scores.argmax()))
    return written


def test_every_token_is_the_likeliest_under_the_rule(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = dict.fromkeys([*tiny_models.WORDS, *ABOUT.lower().replace("{kind}:", "").split(), "gender", "religion"])
    folder = tiny_models.save_causal(tmp_path / "writes", list(words), limit=64)
    script = runpy.run_path(str(SCRIPT))
    server = script["server"](script["Writer"](str(folder), "cpu", RULE), 0)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    models, causal = Models(), CausalModel(str(folder), "cpu")
    url = f"http://127.0.0.1:{server.server_port}/v1"
    plain, ruled = (
        models.open(ModelSettings(name=name, base_url=url, temperature=0, max_tokens=TOKENS))
        for name in ("tiny", "tiny, Self-Debias")
    )
    differs = False
    for prompt in PROMPTS:
        request = ModelRequest((("user", prompt),), whole=False)
        text = ruled.complete(request).text
        assert text == causal.tokenizer.decode(by_hand(causal, prompt), skip_special_tokens=True).strip()
        differs |= text != plain.complete(request).text
    assert differs
    models.close()
    server.shutdown()
    server.server_close()
