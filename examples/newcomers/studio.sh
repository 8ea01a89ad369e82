#!/bin/sh
# The studio: started on an index of one's own, asked for its health, and for a search as fairagent/studio/README.md says.
. "$(dirname "$0")/steps.sh"
install "[studio]"

cat > people.csv <<'CSV'
id,name,text,gender
p1,Ada Moreau,"A lawyer, known for long speeches.",female
p2,Ben Okoro,A lawyer and judge.,male
p3,Carl Lind,One of the famous lawyers of his time.,male
p4,Dan Reyes,He taught famous lawyers.,male
p5,Eve Tanaka,She was among the famous lawyers of Osaka.,female
CSV

step "collection file" fairagent init people.csv --yes
step "index" fairagent index -c collection.yaml

started() {
    fairagent serve -c collection.yaml --set target=uniform --port 0 > address 2> log &
    SERVER=$!
    until grep -q token= address; do kill -0 $SERVER && sleep 0.1; done
}
ask() { curl --silent --show-error --fail --noproxy '*' "$@"; echo; }
searched() {
    ask "$URL/api/search" -H "Authorization: Bearer $TOKEN" -H "Content-Type: application/json" \
        -d '{"query": "famous lawyers", "settings": {"n": 3}}' > found.json
    python -c 'import json; print(*(hit["id"] for hit in json.load(open("found.json"))["hits"]))'
}

step "start" started
URL=$(sed -n 's|^\(http://[^/]*\)/#token=.*|\1|p' address)
TOKEN=$(sed -n 's|^http.*#token=||p' address)
step "health" ask "$URL/health"
step "search" searched
total
