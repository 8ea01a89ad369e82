"""Serves a causal model of transformers with OpenAI's chat completions, as it is and under Self-Debias.

    python evaluations/debias/serve_transformers.py FOLDER [--port 8720] [--device cpu]

No server of others has Self-Debias (Schick, Udupa and Schuetze, TACL 2021) while a model writes, which a row of
DebiasRAG's Table 1 needs. The name of a request's model says which it is: one that ends with `, Self-Debias` has every
token's probability lowered by the rule, and takes a forward pass more a token for each kind of bias. Replies are the
likeliest tokens, one request at a time.
"""

from __future__ import annotations

import argparse
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np
import torch

from fairagent.guests.local.likelihood import ABOUT, lowered
from fairagent.settings import SelfDebiasSettings
from fairagent.storage.packages import load

RULED = ", Self-Debias"
"""At the end of a model's name."""
RULE = SelfDebiasSettings()


class Writer:
    """A causal model that continues conversations; threads may share it."""

    def __init__(self, name: str, device: str = "", rule: SelfDebiasSettings = RULE) -> None:
        self.rule = rule
        self.tokenizer, self.model = load("AutoModelForCausalLM", name, device)
        self._turn = threading.Lock()
        self._before = [self._tokens(ABOUT.format(kind=kind)) for kind in rule.kinds]

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """The body of a chat completion."""
        with self._turn:
            ids, most = self._prompt(request["messages"]), int(request.get("max_tokens") or 100)
            rules = [self._lowered] if request["model"].endswith(RULED) else []
            with torch.inference_mode():
                row = self.model.generate(
                    torch.tensor([ids], device=self.model.device),
                    attention_mask=torch.ones((1, len(ids)), dtype=torch.long, device=self.model.device),
                    max_new_tokens=most,
                    do_sample=False,
                    pad_token_id=self.tokenizer.eos_token_id,
                    logits_processor=rules,
                )[0, len(ids) :].tolist()
            text = self.tokenizer.decode(row, skip_special_tokens=True).strip()
        message = {"role": "assistant", "content": text}
        whole = bool(row) and row[-1] == self.tokenizer.eos_token_id
        return {
            "id": "1",
            "object": "chat.completion",
            "created": 0,
            "model": request["model"],
            "choices": [{"index": 0, "message": message, "finish_reason": "stop" if whole else "length"}],
            "usage": {"prompt_tokens": len(ids), "completion_tokens": len(row), "total_tokens": len(ids) + len(row)},
        }

    def _prompt(self, messages: list[dict[str, str]]) -> list[int]:
        """The messages in the chat template, or, where there is none, one below the other."""
        if not self.tokenizer.chat_template:
            return list(self.tokenizer("\n\n".join(one["content"] for one in messages))["input_ids"])
        return self._tokens(self.tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True))

    def _tokens(self, text: str) -> list[int]:
        return list(self.tokenizer(text, add_special_tokens=False)["input_ids"])

    def _lowered(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """A logits processor: each sentence that asks for bias stands before the text, behind its beginning."""
        text = input_ids[0].tolist()
        begin = int(text[0] == self.tokenizer.bos_token_id)
        biased = []
        for before in self._before:
            ids = torch.tensor([[*text[:begin], *before, *text[begin:]]], device=self.model.device)
            biased.append(torch.log_softmax(self.model(ids, use_cache=False).logits[:, -1].float(), dim=-1))
        tables = np.stack([one.double().cpu().numpy() for one in biased])
        plain = torch.log_softmax(scores.float(), dim=-1).double().cpu().numpy()
        changed = lowered(plain, tables, self.rule.decay, self.rule.least)
        return torch.tensor(changed, dtype=scores.dtype, device=scores.device)


def server(writer: Writer, port: int) -> ThreadingHTTPServer:
    """A server on the loopback interface, which `serve_forever` starts."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            answer = json.dumps(writer.answer(json.loads(body))).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: object) -> None:
            """Nothing."""

    return ThreadingHTTPServer(("127.0.0.1", port), Handler)


def main() -> None:
    """Serve until Ctrl-C."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--port", type=int, default=8720)
    parser.add_argument("--device", default="")
    options = parser.parse_args()
    opened = server(Writer(options.folder, options.device), options.port)
    print(f"ready http://127.0.0.1:{options.port}/v1", flush=True)
    opened.serve_forever()


if __name__ == "__main__":
    main()
