#!/bin/sh
# A file of one's own: docs/your_data.md, "On the command line".
. "$(dirname "$0")/steps.sh"
install ""

cat > people.csv <<'CSV'
id,name,text,gender,regions
p1,Ada Moreau,"A jazz pianist, known for long solos.",female,Europe
p2,Ben Okoro,A jazz drummer and composer.,male,Africa|Europe
p3,Carl Lind,A jazz pianist who played jazz in every club.,male,Europe
p4,Dan Reyes,He taught jazz and wrote on jazz.,male,Northern America
p5,Eve Tanaka,"She recorded jazz standards, mostly at night.",female,Asia
p6,F. Winter,A collector of jazz records.,,Europe
p7,Gil Novak,A jazz bassist of the jazz age.,male,Europe
p8,Hal Brandt,A jazz critic; his jazz columns ran for years.,male,Europe
CSV

step "collection file" fairagent init people.csv --yes
step "index" fairagent index -c collection.yaml
step "search" fairagent search "jazz" -c collection.yaml --n 5 --target uniform
total
