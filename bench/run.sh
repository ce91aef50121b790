#!/usr/bin/env bash
# Installs what is missing (Debian 12, as root), builds build/release/bench/rondo, and compares every algorithm over
# every interconnect of this machine: a table here, and report.html.
#
#   bench/run.sh                  all of it, in less than 10 minutes
#   bench/run.sh --build-only     stops after the build
#   bench/run.sh ARGUMENTS …      go to `rondo compare`; for --peers the drivers of other libraries are built too
set -euo pipefail
cd "$(dirname "$0")/.."

source tests/packages.sh
need g++ libbenchmark-dev libcli11-dev libfmt-dev meson ninja-build nlohmann-json3-dev pkg-config

[[ -f build/release/build.ninja ]] ||
  meson setup build/release --buildtype=release -Dbench=enabled -Dtests=disabled -Dexamples=disabled
meson compile -C build/release -j "$(nproc)"
[[ " $* " != *" --peers "* ]] || bench/peers/build.sh
[[ ${1-} != --build-only ]] || exit 0

exec build/release/bench/rondo compare "$@"
