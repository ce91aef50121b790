#!/usr/bin/env bash
# Runs COMMAND in two guests on one wire, at the same time: pair.sh [OPTIONS of guest.sh] -- COMMAND …
# In the environment of COMMAND, GUEST is 0 or 1; guest 0 has the address 10.9.0.1, guest 1 10.9.0.2. Standard output is
# that of guest 0, all else goes to standard error. Fails if either does.
set -euo pipefail
here=$(realpath "$(dirname "$0")")

options=()
while (($#)) && [[ $1 != -- ]]; do
  options+=("$1")
  shift
done
shift

"$here/image.sh" >/dev/null
wire=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null || true; wait; rm -rf "$wire"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

"$here/guest.sh" "${options[@]}" -n "second=$wire/socket" -- env GUEST=1 "$@" > >(sed 's/^/[guest 1] /' >&2) &
second=$!
"$here/guest.sh" "${options[@]}" -n "first=$wire/socket" -- env GUEST=0 "$@" &
status=0
wait $! || status=$?
wait $second || status=$?
exit $status
