#!/usr/bin/env bash
# Installs what is missing (Debian 12, as root), builds rondo's backend for PyTorch, and trains on scikit-learn's digits
# over rondo and over gloo, by turns, with 2 and 4 ranks. Fails if the results differ.
#
#   run.sh [ARGUMENTS OF train.py …]
set -euo pipefail
cd "$(dirname "$0")/../../.."
source tests/packages.sh
need g++ libtorch-dev pybind11-dev python3-dev python3-setuptools python3-sklearn python3-torch

here=examples/trainers/pytorch_ddp folder=build/pytorch
"$here/build.sh" "$folder"
export PYTHONPATH=$PWD/$folder OMP_NUM_THREADS=1
for ranks in 2 4; do
  "${PYTHON:-/usr/bin/python3}" "$here/train.py" --ranks "$ranks" "$@"
done
