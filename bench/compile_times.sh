#!/usr/bin/env bash
# Seconds that a compiler takes for rondo.hpp, and for a program with one all_reduce<ring>: the median of five each, in
# turn, beside what the standard headers among them take alone.
#
#   bench/compile_times.sh [COMPILER [ARGUMENTS …]]      g++ -O2, unless said otherwise
set -euo pipefail
cd "$(dirname "$0")/.."

compiler=("${@:-g++}")
(($# > 1)) || compiler+=(-O2)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

cat >"$folder/standard.cpp" <<'END'
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory_resource>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <variant>
#include <vector>
END
echo '#include <rondo/rondo.hpp>' >"$folder/rondo.hpp.cpp"
cat >"$folder/all_reduce.cpp" <<'END'
#include <rondo/communicator.hpp>
#include <rondo/ops.hpp>
#include <rondo/schedule/ring.hpp>
#include <rondo/transports/in_process.hpp>

int main() {
  rondo::in_process::run(2, [](auto& comm) {
    float values[8] = {};
    comm.template all_reduce<rondo::ring>(values, rondo::sum);
  });
}
END

export CCACHE_DISABLE=1 TIMEFORMAT=%R
programs=(standard rondo.hpp all_reduce)
for _ in 1 2 3 4 5; do
  for name in "${programs[@]}"; do
    { time "${compiler[@]}" -std=c++20 -Iinclude -Itransports -c "$folder/$name.cpp" -o "$folder/out.o"; } \
      2>>"$folder/$name.times"
  done
done
for name in "${programs[@]}"; do
  printf '%-12s %s s\n' "$name" "$(sort -n "$folder/$name.times" | sed -n 3p)"
done
