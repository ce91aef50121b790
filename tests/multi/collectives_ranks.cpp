#include "collectives.hpp"
#include <rondo/transports/in_process.hpp>
#include <rondo/transports/multi.hpp>
#include <rondo/transports/shm.hpp>
#include <rondo/transports/tcp.hpp>

#include <thread>

namespace collectives_test {

std::string name_of(medium m) {
  constexpr std::array names{"in_process", "shm", "tcp", "multi"};
  return names[static_cast<std::size_t>(m)];
}

void on_ranks(medium m, int n, std::function<void(comm&)> const& body, communicator_options const& options) {
  auto const connect = [m](std::shared_ptr<group> const& g) -> any_transport {
    if (m == medium::in_process) return in_process::connect(g);
    if (m == medium::shm) return shm::connect(g);
    if (m == medium::multi) return multi::connect(g, {.host = std::to_string(g->rank() / 2)});
    return tcp::connect(g);
  };
  auto groups = in_process_group::make(n);
  std::vector<std::thread> threads;
  for (auto& g : groups)
    threads.emplace_back([&body, &connect, &options, g = std::move(g)]() mutable {
      rank_t const rank = g->rank();
      try {
        comm c(g, connect(g), options);
        g.reset();
        body(c);
      } catch (std::exception const& e) { ADD_FAILURE() << "rank " << rank << " threw: " << e.what(); }
    });
  for (auto& t : threads) t.join();
}

}  // namespace collectives_test
