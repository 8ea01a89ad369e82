# Sourced by each script: an empty folder, a fresh environment with the light core, and the seconds of each step.
# NEWCOMER_BIN=DIR takes the programs of an environment that has fairagent already, and installs nothing.
set -eu
HERE=$(cd "$(dirname "$0")" && pwd)
SOURCE=$(cd "$HERE/../.." && pwd)
FOLDER=$(mktemp -d)
SERVER=
trap 'test -z "$SERVER" || kill "$SERVER"; rm -rf "$FOLDER"' EXIT
cd "$FOLDER"
BEGAN=$(date +%s.%N)

seconds() { echo "$1 $(date +%s.%N)" | awk '{printf "%.1f", $2 - $1}'; }

# step NAME COMMAND...: what the command prints, and how long it took.
step() {
    name=$1
    shift
    echo "--- $name: $*"
    began=$(date +%s.%N)
    "$@"
    echo "=== $name: $(seconds "$began") s"
}

# install EXTRAS: pip as it is configured, with no other file than the project's own.
install() {
    test -z "${NEWCOMER_BIN:-}" || { PATH="$NEWCOMER_BIN:$PATH"; return 0; }
    step "environment" "${PYTHON:-python3}" -m venv venv
    PATH="$FOLDER/venv/bin:$PATH"
    step "install" pip install --quiet --disable-pip-version-check "$SOURCE$1"
}

total() { echo "=== total: $(seconds "$BEGAN") s"; }
