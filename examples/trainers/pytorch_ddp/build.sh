#!/usr/bin/env bash
# Builds the Python package rondo_torch into FOLDER, against the PyTorch of $PYTHON, Debian's unless said otherwise.
#
#   build.sh FOLDER
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
folder=$(mkdir -p "${1:?build.sh needs a folder}" && cd "$1" && pwd)
cd "$here"
"${PYTHON:-/usr/bin/python3}" setup.py -q build --force --build-lib "$folder" --build-temp "$folder/objects"
