#include "../cuda_ipc/backends.hpp"
#include "collectives.hpp"
#include <rondo/transports/in_process.hpp>
#include <rondo/transports/multi.hpp>
#include <rondo/transports/shm.hpp>
#include <rondo/transports/tcp.hpp>

#include <memory>
#include <optional>
#include <utility>

namespace collectives_test {

std::string name_of(medium m) {
  constexpr std::array names{"in_process", "shm", "tcp", "multi", "devices"};
  return names[static_cast<std::size_t>(m)];
}

namespace {

any_transport connect(medium m, std::shared_ptr<group> const& g) {
  if (m == medium::in_process) return in_process::connect(g);
  if (m == medium::shm) return shm::connect(g);
  if (m == medium::multi) return multi::connect(g, {.host = std::to_string(g->rank() / 2)});
  if (m == medium::devices) {
    using namespace rondo::testing;
    auto const own = places_of(g->size(), place::own_process)[static_cast<std::size_t>(g->rank())];
    return with_buffers<buffers::of_either>(own, transport_type::connect(g, own));
  }
  return tcp::connect(g);
}

}  // namespace

crew::crew(medium m, int n, communicator_options const& options) : size_(n), begin_(n + 1), end_(n + 1) {
  for (auto& g : in_process_group::make(n))
    threads_.emplace_back([this, m, options, g = std::move(g)]() mutable { serve(m, std::move(g), options); });
}

crew::~crew() {
  body_ = nullptr;
  begin_.arrive_and_wait();
  for (auto& t : threads_) t.join();
}

void crew::run(std::function<void(comm&)> const& body) {
  body_ = &body;
  begin_.arrive_and_wait();
  end_.arrive_and_wait();
}

void crew::serve(medium m, std::shared_ptr<group> g, communicator_options const& options) {
  rank_t const rank = g->rank();
  auto const attempt = [rank](auto&& f) {
    try {
      f();
    } catch (std::exception const& e) { ADD_FAILURE() << "rank " << rank << " threw: " << e.what(); }
  };
  std::optional<comm> c;
  attempt([&] { c.emplace(g, connect(m, g), options); });
  g.reset();
  for (;;) {
    begin_.arrive_and_wait();
    if (!body_) break;
    if (c) attempt([&] { (*body_)(*c); });
    end_.arrive_and_wait();
  }
}

void on_ranks(medium m, int n, std::function<void(comm&)> const& body, communicator_options const& options) {
  crew(m, n, options).run(body);
}

}  // namespace collectives_test
