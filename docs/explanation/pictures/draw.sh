#!/usr/bin/env bash
# Draws the pictures of the manual again, with the built command.
#
#   docs/explanation/pictures/draw.sh [path of rondo]     build/release/bench/rondo if not given
set -euo pipefail
cd "$(dirname "$0")"
rondo=${1:-../../../build/release/bench/rondo}

draw() { # name of the picture, ranks, algorithm, collective
  "$rondo" schedule "$3" --collective "$4" --ranks "$2" --svg "$1.svg" >/dev/null
}

draw ring 5 ring all_reduce
draw bidirectional_ring 5 bidirectional_ring all_reduce
draw tree 7 tree all_reduce
draw double_tree 6 double_tree all_reduce
draw recursive_doubling 6 recursive_doubling all_reduce
draw recursive_halving 6 recursive_halving all_reduce
draw ordered_halving 8 ordered_halving all_reduce
draw mixed_radix 9 mixed_radix all_reduce
draw binomial 6 binomial all_reduce
draw hierarchical 6 hierarchical all_reduce
draw chain 5 ring broadcast
draw direct 5 direct all_to_all
