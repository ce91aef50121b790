#include "connect.hpp"

#include "comm.hpp"
#include "cores.hpp"
#include "text.hpp"
#include <rondo/transports/bootstrap.hpp>
#include <rondo/transports/in_process.hpp>
#include <rondo/transports/multi.hpp>
#include <rondo/transports/shm.hpp>
#include <rondo/transports/tcp.hpp>
#ifdef RONDO_BENCH_UCX
#include <rondo/transports/ucx.hpp>
#endif
#ifdef RONDO_BENCH_VERBS
#include <rondo/transports/verbs.hpp>
#endif

#include <exception>
#include <fmt/format.h>
#include <memory>
#include <thread>
#include <unistd.h>

namespace rondo::bench {
namespace {

/// All that was built in: where TCP does, UCX has to be asked for (RONDO_TRANSPORTS=^tcp).
using every_transport = basic_multi<shm,
#ifdef RONDO_BENCH_VERBS
                                    verbs,
#endif
#ifdef RONDO_BENCH_UCX
                                    tcp, ucx>;
#else
                                    tcp>;
#endif

any_transport connected(std::string const& transport, std::shared_ptr<group> const& g,
                        group::clock::time_point deadline) {
  if (transport == "shm") return shm::connect(g, deadline);
  if (transport == "tcp") return tcp::connect(g, {}, deadline);
  if (transport == "multi") return every_transport::connect(g, {}, deadline);
#ifdef RONDO_BENCH_UCX
  if (transport == "ucx") return ucx::connect(g, {}, deadline);
#endif
#ifdef RONDO_BENCH_VERBS
  if (transport == "verbs") return verbs::connect(g, {}, deadline);
#endif
  throw usage_error(fmt::format("Ranks that are processes cannot be connected by {}: use shm or tcp.", transport));
}

/// The coordinator of ranks that a launcher started, perhaps on several hosts: by means of the library itself.
class library_coordinator final : public coordinator {
 public:
  explicit library_coordinator(comm& c) : c_(c) {}

  void barrier() override { c_.barrier(); }

  std::vector<std::uint64_t> gather(std::span<std::uint64_t const> mine) override {
    std::vector<std::uint64_t> all(mine.size() * static_cast<std::size_t>(c_.size()));
    c_.all_gather(mine, all);
    return all;
  }

 private:
  comm& c_;
};

}  // namespace

std::vector<std::string> transport_names() {
  auto names = usual_transports();
  names.emplace_back("multi");
#ifdef RONDO_BENCH_UCX
  names.emplace_back("ucx");
#endif
#ifdef RONDO_BENCH_VERBS
  names.emplace_back("verbs");
#endif
  return names;
}

std::vector<std::string> usual_transports() { return {"in_process", "shm", "tcp"}; }

void run_threads(int ranks, std::chrono::seconds deadline, connected_rank const& body) {
  auto const groups = in_process_group::make(ranks);
  std::vector<std::exception_ptr> errors(groups.size());
  {
    std::vector<std::jthread> threads;
    for (auto const& g : groups)
      threads.emplace_back([&errors, &body, g, deadline] {
        try {
          comm c(g, any_transport(in_process::connect(g, group::clock::now() + deadline)), {.deadline = deadline});
          body(g->rank(), c);
        } catch (...) { errors[static_cast<std::size_t>(g->rank())] = std::current_exception(); }
      });
  }
  for (auto const& e : errors)
    if (e) std::rethrow_exception(e);
}

void with_process_rank(environment const& who, std::string const& transport, std::chrono::seconds deadline,
                       connected_rank const& body) {
  auto const g = join(who, {.deadline = deadline});
  comm c(g, connected(transport, g, group::clock::now() + deadline), {.deadline = deadline});
  body(c.rank(), c);
}

bool launched_as_rank() { return environment::detect().size > 1; }

void join_world(world_spec const& spec, rank_body const& body, line_sink const& sink) {
  auto const who = environment::detect();
  if (spec.pin && who.local_size > 0) pin_rank(allowed_cores(), who.local_rank, who.local_size);
  try {
    with_process_rank(who, spec.transport, spec.deadline, [&](int, comm& c) {
      library_coordinator together(c);
      member me(c.rank(), c.size(), spec.transport, c, together, sink);
      body(me);
      c.barrier();
    });
  } catch (error const& e) {
    throw world_error(fmt::format("rank {} of {} failed over {}: {}", who.rank, who.size, spec.transport, e.what()));
  }
}

}  // namespace rondo::bench
