#!/usr/bin/env bash
# Runs what needs RDMA in guests with Soft-RoCE, and what needs several hosts in network namespaces (Debian 12, as root;
# installs what is missing). The first run builds the image of the guest, which stays in build/vm. The last line counts:
# N passed, N failed.
#
#   tests/vm/run.sh                all of it
#   tests/vm/run.sh --trimmed      a part of it, in less than 5 minutes
#   tests/vm/run.sh TEST …         only these, by the names in tests/vm/meson.build
set -euo pipefail
cd "$(dirname "$0")/../.."

suite=vm tests=()
while (($#)); do
  case $1 in
    --trimmed) suite=vm-trimmed ;;
    -*) sed -n '2,9s/^# \?//p' tests/vm/run.sh && exit 2 ;;
    *) tests+=("$1") ;;
  esac
  shift
done

source tests/packages.sh
source tests/vm/prepare.sh

folder=build/guests
rm -f "$folder"/*.xml "$folder"/meson-logs/testlog*.json
# shellcheck disable=SC2086 # several arguments
[[ -f $folder/build.ninja ]] || meson setup "$folder" -Dwerror=true $guests
meson test -C "$folder" --print-errorlogs --setup all --suite "$suite" --suite net "${tests[@]}" || true
exec tests/count.py "$folder"
