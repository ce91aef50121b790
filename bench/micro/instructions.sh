#!/usr/bin/env bash
# Instructions of one all_reduce of 8 bytes between two ranks, waiting aside, under callgrind: the same on every run.
# Installs what is missing (Debian 12, as root); wants bench/run.sh --build-only to have run.
set -euo pipefail
cd "$(dirname "$0")/../.."

source tests/packages.sh
need valgrind

program=build/release/bench/small_message
[[ -x $program ]] || { echo "run bench/run.sh --build-only first" >&2 && exit 1; }

# count CALLS: the instructions of a whole run.
count() {
  valgrind --tool=callgrind --callgrind-out-file=/dev/null "$program" "$1" 2>&1 | sed -n 's/.*Collected : *//p'
}

few=$(count 1000) many=$(count 11000)
echo "$(((many - few) / 10000)) instructions a call"
