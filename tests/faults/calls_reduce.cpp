#include "calls.hpp"

#include <numeric>

namespace faults_test {

namespace {

/// What the contributions rank + 1 of all ranks add up to.
float sum_of_all(comm& c) { return static_cast<float>(c.size() * (c.size() + 1) / 2); }

template <class T, class Op>
void reduce_all(comm& c, call const& what, Op const& op) {
  std::vector<T> data(what.count, static_cast<T>(c.rank() + 1));
  if (what.starts)
    c.start_all_reduce(data, op, what.options).wait();
  else
    c.all_reduce(data, op, what.options);
  demand_all<T>(data, what.op == by::max ? static_cast<T>(c.size()) : static_cast<T>(sum_of_all(c)), "all_reduce");
}

}  // namespace

void make_reduction(comm& c, call const& what) {
  auto const n = static_cast<std::size_t>(c.size()), me = static_cast<std::size_t>(c.rank());
  auto const mine = static_cast<float>(c.rank() + 1);
  if (what.what == collective::all_reduce) {
    if (what.type == of::float64) return reduce_all<double>(c, what, sum);
    if (what.type == of::int32) return reduce_all<int>(c, what, sum);
    if (what.op == by::max) return reduce_all<float>(c, what, max);
    return reduce_all<float>(c, what, sum);
  }
  if (what.what == collective::reduce) {
    std::vector<float> const in(what.count, mine);
    std::vector<float> out(what.count);
    c.reduce(in, out, sum, what.root, what.options);
    if (c.rank() == what.root) demand_all<float>(out, sum_of_all(c), "reduce");
    return;
  }
  auto const counts = what.counts.empty() ? std::vector<std::size_t>(n, what.count) : what.counts;
  std::vector<float> const in(std::accumulate(counts.begin(), counts.end(), std::size_t{0}), mine);
  std::vector<float> out(counts[me]);
  if (what.counts.empty())
    c.reduce_scatter(in, out, sum, what.options);
  else
    c.reduce_scatter_v(in, out, counts, sum, what.options);
  demand_all<float>(out, sum_of_all(c), "reduce_scatter");
}

}  // namespace faults_test
