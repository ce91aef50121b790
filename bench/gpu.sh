#!/usr/bin/env bash
# Measures the kernels on a machine with an NVIDIA GPU: the cost of a barrier, all-reduces of several sizes, a training
# step in one launch against one in several and against the memory, and NCCL beside them. All ranks share one GPU, so
# nothing here says anything about links.
#
#   bench/gpu.sh              prints the tables
#   bench/gpu.sh --dry-run    prints what would be done, and compiles everything for sm_90; needs no GPU
#
# Needs nvcc 13 (CUDA_HOME, else on the path, else /usr/local/cuda), and NCCL for the comparison.
set -euo pipefail
cd "$(dirname "$0")/.."

dry=no
case ${1-} in
  --dry-run) dry=yes ;;
  "") ;;
  *) sed -n '2,9s/^# \?//p' bench/gpu.sh && exit 2 ;;
esac

nvcc=$(command -v nvcc || echo "${CUDA_HOME:-/usr/local/cuda}/bin/nvcc")
[[ -x $nvcc ]] || { echo "nvcc is not installed: set CUDA_HOME to where the CUDA toolkit is" >&2 && exit 2; }
if [[ $dry == yes ]]; then
  architecture=sm_90
else
  if ! command -v nvidia-smi >/dev/null; then
    echo "there is no GPU here: bench/gpu.sh --dry-run compiles" >&2
    exit 2
  fi
  architecture=sm_$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader | head -1 | tr -d .)
fi

folder=build/gpu
mkdir -p "$folder"
includes=(-Iinclude -Itransports -Icuda -Itests/gpu)
flags=(-std=c++20 -O3 -arch="$architecture" --expt-relaxed-constexpr --extended-lambda)
run() {
  if [[ $dry == yes ]]; then echo "would run: $*"; else timeout 600 "$@"; fi
}

echo "building bench/gpu/kernels.cu"
"$nvcc" "${flags[@]}" "${includes[@]}" bench/gpu/kernels.cu -o "$folder/bench_kernels"
run env CUDA_MODULE_LOADING=EAGER "$folder/bench_kernels"

if echo '#include <nccl.h>' | g++ -E -x c++ -I"${CUDA_HOME:-/usr/local/cuda}/include" - &>/dev/null; then
  echo "building bench/gpu/nccl.cu"
  "$nvcc" "${flags[@]}" -Xcompiler -pthread bench/gpu/nccl.cu -o "$folder/bench_nccl" -lnccl
  run env NCCL_MULTI_RANK_GPU_ENABLE=1 NCCL_MAX_CTAS=4 "$folder/bench_nccl"
else
  echo "NCCL is not installed: skipped"
fi
