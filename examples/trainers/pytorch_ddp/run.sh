#!/usr/bin/env bash
# Installs what is missing (Debian 12, as root), builds rondo's backend for PyTorch, and trains on scikit-learn's digits
# over rondo and over gloo, by turns, with 2 and 4 ranks. Fails unless both reach the same accuracy, with the same bits
# at 2 ranks.
#
#   run.sh [EPOCHS]
set -euo pipefail
cd "$(dirname "$0")/../../.."
source tests/packages.sh
need g++ libtorch-dev pybind11-dev python3-dev python3-setuptools python3-sklearn python3-torch

here=examples/trainers/pytorch_ddp folder=build/pytorch
"$here/build.sh" "$folder"
export PYTHONPATH=$PWD/$folder OMP_NUM_THREADS=1
for ranks in 2 4; do
  python3 -m torch.distributed.run --standalone --nproc_per_node "$ranks" "$here/train.py" --epochs "${1:-16}"
done | tee "$folder/report.txt"

awk '
  { accuracy[$2, $4] = $6; weights[$2, $4] = $8; step[$2, $4] = $10 }
  END {
    for (ranks = 2; ranks <= 4; ranks += 2) {
      if (accuracy[ranks, "rondo"] == "" || accuracy[ranks, "rondo"] != accuracy[ranks, "gloo"]) wrong = 1
      printf "%d ranks: a step over rondo takes %.2f of what it takes over gloo\n", ranks,
             step[ranks, "rondo"] / step[ranks, "gloo"]
    }
    if (weights[2, "rondo"] != weights[2, "gloo"]) wrong = 1
    print wrong ? "the results differ" : "same accuracy, and the same bits at 2 ranks"
    exit wrong
  }' "$folder/report.txt"
