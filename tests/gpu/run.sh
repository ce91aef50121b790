#!/usr/bin/env bash
# Builds and runs the tests of the kernels on a machine with an NVIDIA GPU: several ranks as the blocks of one launch,
# two ranks on streams of their own, graphs, and small cases under compute-sanitizer. The last line counts: N passed,
# N failed.
#
#   tests/gpu/run.sh              all of it, for the GPU that is here
#   tests/gpu/run.sh --dry-run    prints what would be done, and compiles everything for sm_90; needs no GPU
#
# Needs nvcc 13 (CUDA_HOME, else on the path, else /usr/local/cuda), g++ and GoogleTest.
set -euo pipefail
cd "$(dirname "$0")/../.."

dry=no
case ${1-} in
  --dry-run) dry=yes ;;
  "") ;;
  *) sed -n '2,11s/^# \?//p' tests/gpu/run.sh && exit 2 ;;
esac

home=${CUDA_HOME:-/usr/local/cuda}
nvcc=$(command -v nvcc || echo "$home/bin/nvcc")
[[ -x $nvcc ]] || { echo "nvcc is not installed: set CUDA_HOME to where the CUDA toolkit is" >&2 && exit 2; }
sanitizer=$(command -v compute-sanitizer || echo "$home/bin/compute-sanitizer")

if [[ $dry == yes ]]; then
  architecture=sm_90
else
  if ! command -v nvidia-smi >/dev/null; then
    echo "there is no GPU here: tests/gpu/run.sh --dry-run compiles" >&2
    exit 2
  fi
  architecture=sm_$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader | head -1 | tr -d .)
  nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader
fi

folder=build/gpu
mkdir -p "$folder"
includes=(-Iinclude -Itransports -Icuda -Itests/gpu -Itests/cuda_host)
flags=(-std=c++20 -O2 -arch="$architecture" --expt-relaxed-constexpr --extended-lambda -Xcompiler -pthread)
build() {  # NAME FILE …
  local name=$1 && shift
  echo "building $name"
  "$nvcc" "${flags[@]}" "${includes[@]}" -x cu "$@" -o "$folder/$name" -lgtest_main -lgtest
}
build all_reduce tests/cuda_host/all_reduce_test.cpp
build collectives tests/cuda_host/collectives_test.cpp
build fused tests/cuda_host/fused_test.cpp
build channel tests/gpu/channel_test.cu

passed=0 failed=0
run() {
  if [[ $dry == yes ]]; then
    echo "would run: $*"
  elif timeout 600 "$@"; then
    passed=$((passed + 1))
  else
    echo "FAILED: $*"
    failed=$((failed + 1))
  fi
}
export CUDA_MODULE_LOADING=EAGER  # loading a kernel waits for those that run, which wait for it
for name in all_reduce collectives fused channel; do
  run "$folder/$name" --gtest_brief=1
done
if [[ -x $sanitizer || $dry == yes ]]; then
  run "$sanitizer" --tool memcheck --error-exitcode 1 "$folder/all_reduce" --gtest_filter='*/0.*' --gtest_brief=1
  run "$sanitizer" --tool racecheck --error-exitcode 1 "$folder/fused" --gtest_filter='*sync_and_step*' --gtest_brief=1
else
  echo "compute-sanitizer is not installed: skipped"
fi
echo "$passed passed, $failed failed"
((failed == 0))
