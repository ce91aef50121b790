#pragma once

#include <rondo/communicator.hpp>
#include <rondo/detail/ring_streams.hpp>
#include <rondo/group.hpp>
#include <rondo/transports/in_process_group.hpp>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <exception>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

namespace rondo::inline v0 {

/// Byte streams between ranks that are threads of one process.
class in_process : public detail::ring_streams {
 public:
  static constexpr std::string_view name = "in_process";

  /// Connects the threads of a group. Every rank must call; blocks until all have.
  static in_process connect(std::shared_ptr<group> const& g,
                            group::clock::time_point deadline = group::clock::now() + std::chrono::minutes(5)) {
    auto const layout = detail::inbox_layout::of(g->size());
    auto const mine = detail::make_inbox(layout);
    struct {
      ::pid_t process;
      detail::inbox const* inbox;
    } const here{::getpid(), &mine};
    auto there = here;
    std::vector<detail::inbox> inboxes;
    for (std::string const& blob : g->exchange({reinterpret_cast<char const*>(&here), sizeof here}, deadline)) {
      std::memcpy(&there, blob.data(), std::min(blob.size(), sizeof there));
      if (there.process != here.process)
        throw connect_error("in_process connects threads of one process only: use shm for processes on one host");
      inboxes.push_back(*there.inbox);
    }
    g->exchange("shared", deadline);  // nobody leaves before the others have their part of its inbox
    return in_process(g->rank(), layout, inboxes);
  }

  /// Runs f(communicator&) on `ranks` threads and waits for all of them; rethrows the error of the lowest rank that had
  /// one.
  template <class F>
  static void run(int ranks, F&& f) {
    auto const groups = in_process_group::make(ranks);
    std::vector<std::exception_ptr> errors(static_cast<std::size_t>(ranks));
    {
      std::vector<std::jthread> threads;
      for (rank_t r = 0; r < ranks; ++r)
        threads.emplace_back([&, r, g = groups[static_cast<std::size_t>(r)]]() mutable {
          try {
            communicator<in_process> comm(g, connect(g));
            g.reset();
            f(comm);
          } catch (...) { errors[static_cast<std::size_t>(r)] = std::current_exception(); }
        });
    }
    for (auto const& e : errors)
      if (e) std::rethrow_exception(e);
  }

 private:
  using ring_streams::ring_streams;
};

}  // namespace rondo::inline v0
