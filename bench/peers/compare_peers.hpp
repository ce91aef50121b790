#pragma once

#include "compare.hpp"

namespace rondo::bench::peers {

/// `rondo compare --peers`: all-reduce of floats by rondo and by every library that bench/peers/build.sh has built,
/// turn by turn at each size in one run, with the machine's limit as a row; a table here. Every result is checked. A
/// peer that fails is left out with a sentence. Returns the exit status: 1 if a result was wrong or rondo failed.
int compare(compare_options const& options);

}  // namespace rondo::bench::peers
