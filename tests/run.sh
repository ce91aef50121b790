#!/usr/bin/env bash
# Installs what is missing (Debian 12, as root), builds and runs the tests. The last line counts: N passed, N failed.
#
#   tests/run.sh                  everything that runs by default
#   tests/run.sh --ci             also internal headers, hosts as network namespaces, a trainer that calls NCCL and, in
#                                 short, faults in kernels, PyTorch and what needs RDMA, in guests; then again with
#                                 sanitizers
#   tests/run.sh --suite NAME …   only these: unit static conformance multi faults nccl cuda_host cuda_ipc launchers
#                                 headers fail consumers style examples sanitizers, and soak, big, net, cuda, torch,
#                                 which nothing else here runs; vm has tests/vm/run.sh
set -euo pipefail
cd "$(dirname "$0")/.."

ci=no sanitizers=no suites=()
while (($#)); do
  case $1 in
    --ci) ci=yes sanitizers=yes ;;
    --suite)
      if [[ ${2:?--suite needs a name} == sanitizers ]]; then sanitizers=only; else suites+=("$2"); fi
      shift
      ;;
    *) sed -n '2,10s/^# \?//p' tests/run.sh && exit 2 ;;
  esac
  shift
done

source tests/packages.sh
need g++ clang clang-format cmake dataset-fashion-mnist libcli11-dev libeigen3-dev libfmt-dev \
  libgtest-dev libibverbs-dev libssl-dev meson ninja-build nlohmann-json3-dev pkg-config python3 zlib1g-dev

# check NAME "ARGUMENTS OF meson setup" ARGUMENTS OF meson test …, which builds what they need. What fails here is
# found by count.py afterwards.
folders=()
check() {
  local folder=build/$1 setup=$2 && shift 2
  folders+=("$folder")
  rm -f "$folder"/*.xml "$folder"/meson-logs/testlog*.json
  # shellcheck disable=SC2086 # several arguments
  if [[ ! -f $folder/build.ninja ]]; then meson setup "$folder" -Dwerror=true $setup; fi &&
    meson test -C "$folder" --print-errorlogs "$@" || true
}

# Sources of one program compile four at a time, as one: two thirds of the time.
quick="-Ddebug=false -Dunity=on -Dunity_size=4"
plain="$quick -Doptimization=1 -Dverbs=disabled"  # what needs RDMA is tests/vm/run.sh's
sanitizer="$quick -Dbench=disabled -Dexamples=disabled -Dverbs=disabled"

if [[ $ci == yes || " ${suites[*]} " == *" torch "* ]]; then
  need libtorch-dev pybind11-dev python3-dev python3-setuptools python3-sklearn python3-torch
  suites+=(torch-trimmed)
fi
if [[ $ci == yes ]]; then
  source tests/vm/prepare.sh
  check guests "$guests" --setup ci
elif ((${#suites[@]})); then
  for suite in "${suites[@]}"; do asked+=(--suite "$suite"); done
  check tests "$plain" --setup all "${asked[@]}"
elif [[ $sanitizers != only ]]; then
  check tests "$plain"
fi
if [[ $sanitizers != no ]]; then
  # What compiles soonest: line numbers name a place well enough; optimised code with both of asan takes four times as
  # long, and with g++ twice as long; with thread g++ is quicker.
  need libclang-rt-dev
  export CXXFLAGS="-g1 -fno-sanitize-recover=all" UBSAN_OPTIONS=print_stacktrace=1
  CXX=clang++ check asan "-Db_sanitize=address,undefined -Db_lundef=false -Doptimization=0 $sanitizer"
  check tsan "-Db_sanitize=thread -Doptimization=1 $sanitizer" --setup threads
fi

exec tests/count.py "${folders[@]}"
