#include "algorithms.hpp"

#include "text.hpp"
#include <rondo/run/families.hpp>
#include <rondo/transports/in_process.hpp>
#include <rondo/transports/shm.hpp>

#include <algorithm>
#include <fmt/format.h>

namespace rondo::bench {

std::vector<algorithm> all_algorithms() {
  std::vector<algorithm> all;
  for (auto const& [value, name] : detail::algorithm_names)
    if (value != algorithm::automatic && value != algorithm::custom) all.push_back(value);
  return all;
}

std::vector<algorithm> algorithms_of(std::vector<std::string> const& names, collective what, int ranks,
                                     std::string_view transport) {
  if (what == collective::send_receive) return {algorithm::automatic};
  std::vector<algorithm> able;
  std::vector<std::string> able_names;
  for (auto const a : all_algorithms())
    if (supports(a, what, ranks, transport == shm::name || transport == in_process::name)) {
      able.push_back(a);
      able_names.emplace_back(to_string(a));
    }
  if (std::find(names.begin(), names.end(), "all") != names.end()) return able;
  std::vector<algorithm> chosen;
  for (auto const& name : names) {
    auto const a = algorithm_from(name);
    if (a != algorithm::automatic && std::find(able.begin(), able.end(), a) == able.end())
      throw usage_error(fmt::format("{} does not provide {} for {} ranks: choose {}.", name, to_string(what), ranks,
                                    one_of(able_names, {"automatic", "all"})));
    chosen.push_back(a);
  }
  return chosen;
}

}  // namespace rondo::bench
