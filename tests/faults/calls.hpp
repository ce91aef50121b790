#pragma once

#include "processes.hpp"
#include <rondo/algorithm.hpp>
#include <rondo/options.hpp>

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace faults_test {

enum class of : unsigned char { float32, float64, int32 };
enum class by : unsigned char { sum, max };

/// One call of one rank, as a value.
struct call {
  collective what = collective::all_reduce;
  std::size_t count = 2;  ///< elements of a buffer, or of each block
  of type = of::float32;  ///< of all_reduce; the others move float32
  by op = by::sum;        ///< of all_reduce; the others sum
  rank_t root = 0;
  call_options options{};
  std::vector<std::size_t> counts{};    ///< the _v form: the blocks that this rank sends, or that all ranks have
  std::vector<std::size_t> from{};      ///< all_to_all_v: the blocks that it gets
  rank_t to = nobody, sender = nobody;  ///< of send_receive, one of them
  bool starts = false;                  ///< all_reduce, send and receive: asynchronous, and waited for at once
};

/// Makes the call with buffers of its own and checks the result. Throws what the call throws.
void make(comm&, call const&);

/// True if `text` describes the call in words that leave nothing out.
bool describes(std::string_view text, call const&, int ranks);

/// The part of make() that folds.
void make_reduction(comm&, call const&);

/// The check of a result whose elements are all the same.
template <class T>
void demand_all(std::vector<T> const& data, T expected, char const* call) {
  auto const wrong = std::find_if(data.begin(), data.end(), [&](T x) { return x != expected; });
  if (wrong != data.end())
    demand(false, std::string(call) + " gave " + std::to_string(*wrong) + ", not " + std::to_string(expected));
}

}  // namespace faults_test
