#!/bin/sh
# Documents, topics (<top>) and judgments as TREC has them: docs/your_data.md, and an experiment as in docs/experiments.md.
. "$(dirname "$0")/steps.sh"
install ""

cat > docs.jsonl <<'JSON'
{"id": "d1", "text": "The union of miners went on strike for wages.", "leaning": "left"}
{"id": "d2", "text": "A strike of miners harms the economy, says the chamber.", "leaning": "right"}
{"id": "d3", "text": "Miners and their employers talk about the strike.", "leaning": "center"}
{"id": "d4", "text": "Wages of miners rose after the strike.", "leaning": "left"}
{"id": "d5", "text": "Tax cuts help small firms and the economy.", "leaning": "right"}
{"id": "d6", "text": "Tax cuts for the rich cost schools their money.", "leaning": "left"}
{"id": "d7", "text": "What tax cuts cost, and whom they help.", "leaning": "center"}
{"id": "d8", "text": "Firms ask for further tax cuts.", "leaning": "right"}
JSON
cat > topics.txt <<'TREC'
<top>
<num> Number: 1
<title> strike of miners
<desc> Description: What is said of the strike?
</top>
<top>
<num> Number: 2
<title> tax cuts
<desc> Description: Whom do tax cuts help?
</top>
TREC
printf '%s\n' "1 0 d1 1" "1 0 d2 1" "1 0 d3 1" "1 0 d4 0" "2 0 d5 1" "2 0 d6 1" "2 0 d7 1" "2 0 d8 0" > qrels.txt
cat > first.yaml <<'YAML'
name: first
collection: collection.yaml
settings: {target: uniform}
target: uniform
systems:
  engine: {profile: engine}
  agent: {}
YAML

step "collection file" fairagent init docs.jsonl --topics topics.txt --qrels qrels.txt --group leaning --yes
step "index" fairagent index -c collection.yaml
step "one topic" fairagent search --topic 1 -c collection.yaml --n 3 --target uniform
step "experiment" fairagent evaluate first.yaml
total
