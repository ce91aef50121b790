#!/usr/bin/env bash
# Installs what is missing (Debian 12, as root), builds and runs the tests. The last line counts: N passed, N failed.
#
#   tests/run.sh                  everything that runs by default, then again with sanitizers
#   tests/run.sh --quick          without the sanitizers
#   tests/run.sh --suite NAME …   only these: unit conformance multi faults launchers headers fail consumers
#                                 style examples sanitizers, and soak, big, net, which nothing else here runs;
#                                 vm has tests/vm/run.sh
set -euo pipefail
cd "$(dirname "$0")/.."

quick=no suites=()
while (($#)); do
  case $1 in
    --quick) quick=yes ;;
    --suite) suites+=("${2:?--suite needs a name}") && shift ;;
    *) sed -n '2,8s/^# \?//p' tests/run.sh && exit 2 ;;
  esac
  shift
done

source tests/packages.sh
need g++ clang clang-format cmake dataset-fashion-mnist libcli11-dev libeigen3-dev libfmt-dev \
  libgtest-dev libibverbs-dev libssl-dev meson ninja-build nlohmann-json3-dev pkg-config python3 zlib1g-dev

# check NAME "ARGUMENTS OF meson setup" ARGUMENTS OF meson test …: what fails here is found by count.py afterwards.
folders=()
check() {
  local folder=build/$1 setup=$2 && shift 2
  folders+=("$folder")
  rm -f "$folder"/*.xml "$folder"/meson-logs/testlog*.json
  # shellcheck disable=SC2086 # several arguments
  if [[ ! -f $folder/build.ninja ]]; then meson setup "$folder" -Dwerror=true $setup; fi &&
    meson compile -C "$folder" -j "$(nproc)" &&
    meson test -C "$folder" --print-errorlogs "$@" || true
}

plain="-Doptimization=1 -Ddebug=false -Dverbs=disabled"  # what needs RDMA is tests/vm/run.sh's
sanitizer="-Ddebug=false -Dbench=disabled -Dexamples=disabled -Dverbs=disabled"

if ((${#suites[@]})); then
  for suite in "${suites[@]}"; do [[ $suite == sanitizers ]] || asked+=(--suite "$suite"); done
  [[ -z ${asked-} ]] || check tests "$plain" --setup all "${asked[@]}"
else
  check tests "$plain" --no-rebuild  # what is not built by default is not run by default
fi
if [[ " ${suites[*]-} " == *" sanitizers "* || ( ${#suites[@]} == 0 && $quick == no ) ]]; then
  # Line numbers name a place well enough, and optimised code with both of asan takes four times as long to compile.
  export CXXFLAGS="-g1 -fno-sanitize-recover=all" UBSAN_OPTIONS=print_stacktrace=1
  check asan "-Db_sanitize=address,undefined -Doptimization=0 $sanitizer"
  check tsan "-Db_sanitize=thread -Doptimization=1 $sanitizer" --setup threads
fi

exec tests/count.py "${folders[@]}"
