#include "collective.hpp"

#include "text.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <string>

namespace rondo::bench {
namespace {

using enum collective;

std::string without_underscores(std::string_view name) {
  std::string plain(name);
  std::erase(plain, '_');
  return plain;
}

/// Inputs or outputs consist of one block for each rank.
bool blocked(collective what) {
  return what == reduce_scatter || what == all_gather || what == all_to_all || what == gather || what == scatter;
}

int next(int rank, int ranks) { return (rank + 1) % ranks; }

}  // namespace

std::vector<collective> all_collectives() {
  return {all_reduce, reduce_scatter, all_gather, broadcast, reduce,
          all_to_all, gather,         scatter,    barrier,   send_receive};
}

collective parse_collective(std::string_view name) {
  auto const plain = without_underscores(name);
  std::vector<std::string> names;
  for (auto const what : all_collectives()) {
    names.emplace_back(to_string(what));
    if (plain == without_underscores(names.back()) || (plain == "sendrecv" && what == send_receive)) return what;
  }
  throw usage_error(fmt::format("There is no collective '{}': choose {}.", name, one_of(names)));
}

double bus_factor(collective what, int ranks) noexcept {
  auto const others = static_cast<double>(ranks - 1) / ranks;
  if (what == all_reduce) return 2 * others;
  return blocked(what) ? others : 1;
}

bool reduces(collective what) noexcept { return what == all_reduce || what == reduce_scatter || what == reduce; }

bool has_root(collective what) noexcept {
  return what == broadcast || what == reduce || what == gather || what == scatter;
}

bool replicates(collective what) noexcept { return what == all_reduce || what == all_gather || what == broadcast; }

shape shape_of(collective what, std::size_t count, int ranks, int rank, int root) noexcept {
  if (what == barrier) return {};
  if (!blocked(what)) return {count, what == reduce && rank != root ? 0 : count, count, count};
  auto const p = static_cast<std::size_t>(ranks);
  auto const block = count == 0 ? 0 : std::max<std::size_t>(1, count / p);
  auto const all = block * p;
  switch (what) {
    case reduce_scatter: return {all, block, all, block};
    case all_gather: return {block, all, all, block};
    case gather: return {block, rank == root ? all : 0, all, block};
    case scatter: return {rank == root ? all : 0, block, all, block};
    default: return {all, all, all, block};
  }
}

std::vector<origin> origins(collective what, shape const& s, int ranks, int rank, int root) {
  auto const me = static_cast<std::size_t>(rank);
  std::vector<origin> found;
  auto const every_rank = [&](std::size_t offset) {
    for (int r = 0; r < ranks; ++r) found.push_back({static_cast<std::size_t>(r) * s.count, s.count, r, offset});
  };
  switch (what) {
    case all_reduce: return {{0, s.out, origin::everybody, 0}};
    case reduce: return {{0, s.out, origin::everybody, 0}};
    case reduce_scatter: return {{0, s.out, origin::everybody, me * s.count}};
    case broadcast: return {{0, s.out, root, 0}};
    case scatter: return {{0, s.out, root, me * s.count}};
    case send_receive: return {{0, s.out, (rank + ranks - 1) % ranks, 0}};
    case all_to_all: every_rank(me * s.count); return found;
    case all_gather: every_rank(0); return found;
    case gather:
      if (rank == root) every_rank(0);
      return found;
    case barrier: return found;
  }
  return found;
}

std::size_t link_bytes(collective what, std::size_t total, int ranks, int rank, int root) noexcept {
  auto const p = static_cast<std::size_t>(ranks);
  auto const others = total * (p - 1) / p;
  switch (what) {
    case all_reduce: return 2 * others;
    case reduce_scatter:
    case all_gather:
    case all_to_all: return others;
    case broadcast: return next(rank, ranks) == root ? 0 : total;
    case reduce: return rank == root ? 0 : total;
    case gather: return next(rank, ranks) == root ? others : 0;
    case scatter: return rank == root ? others : 0;
    case barrier: return 1;
    case send_receive: return total;
  }
  return 0;
}

}  // namespace rondo::bench
