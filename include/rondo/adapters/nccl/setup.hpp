#pragma once

#include <rondo/adapters/nccl/comm.hpp>
#include <rondo/adapters/nccl/lobby.hpp>
#include <rondo/adapters/nccl/status.hpp>
#include <rondo/transports/environment.hpp>
#include <rondo/transports/in_process.hpp>
#include <rondo/transports/multi.hpp>

#include <chrono>
#include <cstdlib>
#include <exception>
#include <limits>
#include <memory>
#include <thread>
#include <vector>

/// How communicators come into being.
namespace rondo::inline v0::nccl {

/// NCCL knows no deadlines, and trainers let their ranks wait while one of them writes a file: so half an hour, or the
/// seconds in RONDO_NCCL_DEADLINE. A rank that dies is noticed at once anyway.
inline communicator_options options_from_environment() {
  environment::lookup const get = [](char const* name) { return static_cast<char const*>(std::getenv(name)); };
  auto const seconds = detail::variables(get).number("RONDO_NCCL_DEADLINE", 1, std::numeric_limits<int>::max());
  return {.deadline = std::chrono::seconds(seconds.value_or(1800))};
}

/// Throws refusal for a configuration that was not begun with NCCL_CONFIG_INITIALIZER. What it asks of GPUs, networks
/// and names is of no concern here, and a call never returns before it is done, whatever `blocking` says.
inline void check(ncclConfig_t const* config) {
  ncclConfig_t const made = NCCL_CONFIG_INITIALIZER;
  require(!config || (config->magic == made.magic && config->size == made.size), ncclInvalidArgument,
          "the ncclConfig_t was not begun with NCCL_CONFIG_INITIALIZER: begin it so, and build all of the program with "
          "this nccl.h");
}

inline void check_place(int ranks, int rank) {
  if (ranks >= 1 && rank >= 0 && rank < ranks) return;
  throw refusal(ncclInvalidArgument, "rank " + std::to_string(rank) + " of " + std::to_string(ranks) +
                                         " cannot be: ranks go from 0 to nranks - 1");
}

/// A rank of the communicator of those that have the id, connected as multi connects them. Blocks until all are there.
inline std::shared_ptr<comm> make_comm(ncclUniqueId const& id, int size, rank_t rank) {
  auto const options = options_from_environment();
  auto const end = group::clock::now() + options.deadline;
  auto ranks = lobby::join(id, size, rank, end);
  any_transport link(multi::connect(ranks, {}, end));
  return std::make_shared<comm>(std::move(ranks), std::move(link), devices ? devices->current() : 0, options);
}

/// All ranks of a communicator within this process.
inline std::vector<std::shared_ptr<comm>> make_all_comms(int size, int const* device_list) {
  auto const options = options_from_environment();
  auto groups = in_process_group::make(size);
  std::vector<std::shared_ptr<comm>> made(groups.size());
  std::vector<std::exception_ptr> errors(groups.size());
  {
    std::vector<std::jthread> threads;  // the ranks wait for each other
    for (std::size_t r = 0; r < groups.size(); ++r)
      threads.emplace_back([&, r] {
        try {
          any_transport link(in_process::connect(groups[r]));
          int const device = device_list ? device_list[r] : static_cast<int>(r);
          made[r] = std::make_shared<comm>(std::move(groups[r]), std::move(link), device, options);
        } catch (...) { errors[r] = std::current_exception(); }
      });
  }
  for (auto const& e : errors)
    if (e) std::rethrow_exception(e);
  return made;
}

}  // namespace rondo::inline v0::nccl
