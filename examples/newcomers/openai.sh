#!/bin/sh
# A program with plain OpenAI calls: the first block of docs/plain_openai.md, asking a server on the loopback interface.
. "$(dirname "$0")/steps.sh"
install ""

awk '/^```python$/ {on = 1; next} /^```$/ {if (on) exit} on' "$SOURCE/docs/plain_openai.md" > program.py

python "$HERE/openai_server.py" > address &
SERVER=$!
until test -s address; do sleep 0.1; done
export OPENAI_API_KEY=none OPENAI_BASE_URL="$(cat address)" NO_PROXY=127.0.0.1

step "program" python program.py
total
