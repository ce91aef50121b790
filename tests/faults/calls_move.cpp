#include "calls.hpp"

#include <numeric>

namespace faults_test {

namespace {

std::size_t total(std::vector<std::size_t> const& counts) {
  return std::accumulate(counts.begin(), counts.end(), std::size_t{0});
}

/// What `from` has for `to`.
float value(rank_t from, rank_t to) { return static_cast<float>(100 * from + to); }

/// Blocks of these sizes, block r of value_of(r).
template <class F>
std::vector<float> blocks(std::vector<std::size_t> const& counts, F&& value_of) {
  std::vector<float> all;
  for (std::size_t r = 0; r < counts.size(); ++r) all.insert(all.end(), counts[r], value_of(static_cast<rank_t>(r)));
  return all;
}

void demand_same(std::vector<float> const& a, std::vector<float> const& b, char const* call) {
  demand(a == b, std::string(call) + " has moved blocks to the wrong place");
}

void move_message(comm& c, call const& what) {
  bool const sends = what.to != nobody;
  std::vector<float> data(what.count, sends ? value(c.rank(), what.to) : -1);
  if (what.starts)
    (sends ? c.start_send(data, what.to, what.options) : c.start_receive(data, what.sender, what.options)).wait();
  else if (sends)
    c.send(data, what.to, what.options);
  else
    c.receive(data, what.sender, what.options);
  if (!sends) demand_all<float>(data, value(what.sender, c.rank()), "receive");
}

}  // namespace

void make(comm& c, call const& what) {
  using enum collective;
  rank_t const me = c.rank();
  bool const is_root = me == what.root;
  std::vector<std::size_t> const even(static_cast<std::size_t>(c.size()), what.count);
  auto const& counts = what.counts.empty() ? even : what.counts;
  auto const mine = counts[static_cast<std::size_t>(me)];
  auto const from_me = [me](rank_t q) { return value(me, q); };
  auto const to_me = [me](rank_t q) { return value(q, me); };
  auto const to_root = [&](rank_t q) { return value(q, what.root); };
  switch (what.what) {
    case all_reduce:
    case reduce_scatter:
    case reduce: return make_reduction(c, what);
    case barrier: return c.barrier(what.options);
    case send_receive: return move_message(c, what);
    case broadcast: {
      std::vector<float> data(what.count, static_cast<float>(me));
      c.broadcast(data, what.root, what.options);
      return demand_all<float>(data, static_cast<float>(what.root), "broadcast");
    }
    case gather: {
      std::vector<float> const in(what.count, to_root(me));
      std::vector<float> out(is_root ? total(even) : 0);
      c.gather(in, out, what.root, what.options);
      if (is_root) demand_same(out, blocks(even, to_root), "gather");
      return;
    }
    case scatter: {
      auto const in = is_root ? blocks(even, from_me) : std::vector<float>{};
      std::vector<float> out(what.count);
      c.scatter(in, out, what.root, what.options);
      return demand_all<float>(out, value(what.root, me), "scatter");
    }
    case all_gather: {
      std::vector<float> const in(mine, value(me, 0));
      std::vector<float> out(total(counts));
      if (what.counts.empty())
        c.all_gather(in, out, what.options);
      else
        c.all_gather_v(in, out, counts, what.options);
      return demand_same(out, blocks(counts, [](rank_t q) { return value(q, 0); }), "all_gather");
    }
    case all_to_all: {
      auto const& from = what.counts.empty() ? even : what.from;
      auto const in = blocks(counts, from_me);
      std::vector<float> out(total(from));
      if (what.counts.empty())
        c.all_to_all(in, out, what.options);
      else
        c.all_to_all_v(in, counts, out, from, what.options);
      return demand_same(out, blocks(from, to_me), "all_to_all");
    }
  }
}

bool describes(std::string_view text, call const& what, int ranks) {
  auto const says = [&](std::string const& part) { return text.find(part) != text.npos; };
  constexpr std::array types{"float32", "float64", "int32"};
  std::string const elements = std::string(types[static_cast<std::size_t>(what.type)]) + " x ";
  std::string const count = std::to_string(what.count);
  std::string const root = "root " + std::to_string(what.root);
  if (!text.starts_with(to_string(what.what))) return false;
  if (what.options.algorithm != algorithm::automatic && !says(std::string(to_string(what.options.algorithm))))
    return false;
  if (says("ordered)") != what.options.ordered) return false;
  switch (what.what) {
    case collective::barrier: return !says(" x ");
    case collective::all_reduce: return says(elements + count + ", " + (what.op == by::sum ? "sum" : "max"));
    case collective::reduce: return says(elements + count + ", sum, " + root);
    case collective::broadcast:
    case collective::gather:
    case collective::scatter: return says(elements + count + ", " + root);
    case collective::reduce_scatter:
    case collective::all_gather:
      return says(elements + std::to_string(what.counts.empty() ? what.count * static_cast<std::size_t>(ranks)
                                                                : total(what.counts)));
    case collective::send_receive: return says(elements + count + ")");
    case collective::all_to_all: return says(elements);
  }
  return false;
}

}  // namespace faults_test
