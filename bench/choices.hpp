#pragma once

#include "row.hpp"
#include <rondo/policy.hpp>

#include <span>
#include <string>
#include <vector>

namespace rondo::bench {

/// One row of each series that was measured several times: the one with the smallest median, because disturbances only
/// add time, and come in bursts that do not last from one pass over all sizes to the next.
std::vector<row> least_disturbed(std::span<row const> rows);

/// What a policy should say after these measurements on so many cores: one line for each size, rank count, transport
/// and collective, each good as far as the middle of the way, by factors, to the next size. So that noise makes no
/// islands, the built-in choice stays unless another algorithm has a median that is 5 % better and a better minimum,
/// and among those that are level the one of the next smaller size comes first.
std::vector<policy::line> lines_of(std::span<row const> rows, int cores);

/// The algorithm that a communicator without a policy takes for the size of the line on so many cores.
algorithm built_in_choice(policy::line const& l, int cores);

/// Where the lines differ from the built-in choice, by how much they are better and for which sizes: one line of text
/// for each transport and number of ranks that has any.
std::vector<std::string> changes_in(std::span<policy::line const> lines, std::span<row const> rows, int cores);

}  // namespace rondo::bench
