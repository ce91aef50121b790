#!/usr/bin/env bash
# Installs what is missing (Debian 12, as root), builds rondo's backend for PyTorch, and trains on scikit-learn's digits
# over rondo and over gloo, by turns, with 2 and 4 ranks: with DistributedDataParallel, and with FSDP where PyTorch has
# that for processors. Fails if the results differ.
#
#   run.sh [ARGUMENTS OF train.py …]
#   PYTHON=… run.sh               with another PyTorch than Debian's: a Python that has torch, setuptools, scikit-learn
set -euo pipefail
cd "$(dirname "$0")/../../.."
source tests/packages.sh
need g++ libtorch-dev pybind11-dev python3-dev python3-setuptools python3-sklearn python3-torch

python=${PYTHON:-/usr/bin/python3}
here=examples/trainers/pytorch_ddp folder=build/pytorch
"$here/build.sh" "$folder"
export PYTHONPATH=$PWD/$folder OMP_NUM_THREADS=1
ways=("")
if "$python" -c "from torch.distributed.fsdp import fully_shard" 2>/dev/null; then ways+=(--fsdp); fi
for way in "${ways[@]}"; do
  for ranks in 2 4; do
    "$python" "$here/train.py" --ranks "$ranks" ${way:+"$way"} "$@"
  done
done
