#pragma once

#include <rondo/async/parameter_shard.hpp>
#include <rondo/async/staleness.hpp>
#include <rondo/collectives/request.hpp>
#include <rondo/communicator.hpp>
#include <rondo/types.hpp>
#include <rondo/work.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace rondo::inline v0 {

/// The same on every rank.
struct parameter_server_options {
  std::vector<rank_t> servers{0};  ///< that keep a shard each, in the order of the shards; all other ranks work
  staleness_bounds bounds{};

  /// A worker that is silent for longer bounds nobody until it is heard of again: make it longer than any step.
  std::chrono::milliseconds lease = std::chrono::seconds(10);
};

/// What a worker has read.
struct pulled {
  std::uint64_t updates = staleness_bounds::none;  ///< that the parameters have seen: the least of all shards
  std::uint64_t lead = 0;                          ///< steps that this worker is ahead of the slowest live one
};

/// Parameters that some ranks keep and improve, while the others pull them and push gradients (Li et al. 2014, "Scaling
/// Distributed Machine Learning with the Parameter Server"). Every rank makes one; one thread at a time may use it.
///
/// A server calls serve(); a worker calls pull() and push() in turn, each pair a step. Each worker shares a
/// communicator with each server, and with nobody else: the death of a worker concerns no other worker, while one that
/// has lost a server cannot go on, and gets peer_lost. A pull sees every push to a shard whole or not at all. Shards
/// advance independently, each within the bounds.
template <transport X, element T = float>
class parameter_server {
 public:
  /// For `parameters` elements, of which every server keeps an even share. Every rank of `ranks` must call; blocks
  /// until all have. `ranks` may be destroyed, or fail, afterwards. Throws invalid_argument for options that cannot be.
  parameter_server(communicator<X>& ranks, std::size_t parameters, parameter_server_options options = {})
      : options_(std::move(options)), parameters_(parameters),
        workers_(static_cast<std::size_t>(ranks.size()) - options_.servers.size()) {
    check(ranks.size());
    auto const& servers = options_.servers;
    auto const place = std::find(servers.begin(), servers.end(), ranks.rank());
    serves_ = place != servers.end();
    number_ = static_cast<std::size_t>(
        serves_ ? place - servers.begin() : ranks.rank() - std::count_if(servers.begin(), servers.end(), [&](rank_t s) {
                                              return s < ranks.rank();
                                            }));
    connect(ranks);
  }

  parameter_server(parameter_server&&) noexcept = default;
  parameter_server& operator=(parameter_server&&) = delete;

  /// A worker says goodbye to the servers; waits a second at the most.
  ~parameter_server() {
    if (serves_) return;
    for (auto& link : links_) try {
        link.send(std::array{request{request::kind::leave}}, detail::server_end, {.deadline = farewell_patience});
      } catch (std::exception const&) {}  // the server has gone, or sees that this worker does
  }

  bool serves() const noexcept { return serves_; }

  /// The number of this rank among the servers, or among the workers.
  std::size_t number() const noexcept { return number_; }

  /// A server's shard: the parameters from first() on, count() of them.
  std::size_t first() const noexcept { return begin_of(number_); }
  std::size_t count() const noexcept { return begin_of(number_ + 1) - first(); }

  /// Its part of a span of all parameters.
  template <class U>
  std::span<U> shard(std::span<U> all) const noexcept {
    return shard_of(all, number_);
  }

  /// A server keeps `values`, its shard, until every worker has left or was lost; then they have their last values.
  template <update_rule<T> Rule>
  served_shard serve(std::span<T> values, Rule rule) {
    collectives::require(serves_, [] { return "only a server serves: ask serves()"; });
    collectives::check_size("serve", "values", values, count());
    detail::parameter_shard<X, T, Rule> shard(values, rule, workers_, options_.bounds, options_.lease);
    return shard.serve(links_);
  }

  /// A worker begins a step: reads all parameters. Waits while that would exceed staleness_bounds::lead.
  pulled pull(std::span<T> parameters) {
    check_worker("pull", parameters.size());
    std::array const asked{request{request::kind::pull}};
    std::vector<std::array<detail::parameter_answer, 1>> heads(links_.size());
    std::vector<work> calls;
    for (std::size_t s = 0; s < links_.size(); ++s) {
      calls.push_back(links_[s].start_send(asked, detail::server_end));
      calls.push_back(links_[s].start_receive(heads[s], detail::server_end));
      calls.push_back(links_[s].start_receive(shard_of(parameters, s), detail::server_end));
    }
    for (auto& call : calls) call.wait();
    pulled result;
    for (auto const& [head] : heads)
      result = {std::min(result.updates, head.updates), std::max(result.lead, head.lead)};
    return result;
  }

  /// A worker ends a step: sends the gradient to the servers, and returns when `gradient` may be used again. They wait
  /// to apply it while that would exceed staleness_bounds::delay for somebody else. Needs a pull since the last push: a
  /// gradient without one counts for nothing.
  void push(std::span<T const> gradient) {
    check_worker("push", gradient.size());
    std::array const asked{request{request::kind::push}};
    std::vector<work> calls;
    for (std::size_t s = 0; s < links_.size(); ++s) {
      calls.push_back(links_[s].start_send(asked, detail::server_end));
      calls.push_back(links_[s].start_send(shard_of(gradient, s), detail::server_end));
    }
    for (auto& call : calls) call.wait();
  }

 private:
  using request = detail::parameter_request;

  static constexpr std::chrono::seconds farewell_patience{1};

  std::size_t begin_of(std::size_t server) const noexcept { return parameters_ * server / options_.servers.size(); }

  template <class U>
  std::span<U> shard_of(std::span<U> all, std::size_t server) const noexcept {
    return all.subspan(begin_of(server), begin_of(server + 1) - begin_of(server));
  }

  void check(int ranks) const {
    auto servers = options_.servers;
    std::sort(servers.begin(), servers.end());
    bool const apart = std::adjacent_find(servers.begin(), servers.end()) == servers.end();
    collectives::require(!servers.empty() && apart && servers.front() >= 0 && servers.back() < ranks &&
                             servers.size() < static_cast<std::size_t>(ranks),
                         [&] {
                           return "a parameter server among " + std::to_string(ranks) +
                                  " ranks needs different ranks as servers, one at least, and a rank that works: give "
                                  "others in parameter_server_options::servers";
                         });
    collectives::require(options_.lease.count() > 0, [&] {
      return "a lease of " + std::to_string(options_.lease.count()) +
             " ms makes every worker silent at once: let it be longer than any step";
    });
    collectives::require(options_.bounds.delay >= workers_ - 1, [&] {
      return "with " + std::to_string(workers_) + " workers a gradient may be " + std::to_string(workers_ - 1) +
             " updates late even if all are equally fast: let staleness_bounds::delay be at least that";
    });
  }

  /// Makes a communicator for each pair. In each round worker w meets server (w + round) modulo the greater number.
  void connect(communicator<X>& ranks) {
    std::size_t const servers = options_.servers.size(), rounds = std::max(workers_, servers);
    std::vector<std::optional<communicator<X>>> met(serves_ ? workers_ : servers);
    for (std::size_t round = 0; round < rounds; ++round) {
      std::size_t const other = serves_ ? (number_ + rounds - round) % rounds : (number_ + round) % rounds;
      std::size_t const server = serves_ ? number_ : other;
      auto pair = ranks.split(other < met.size() ? static_cast<int>(server) : -1,
                              serves_ ? detail::server_end : detail::worker_end);
      if (pair) met[other] = std::move(pair);
    }
    for (auto& link : met) links_.push_back(std::move(*link));
  }

  void check_worker(char const* call, std::size_t given) const {
    collectives::require(!serves_, [&] { return "a server does not " + std::string(call) + ": ask serves()"; });
    collectives::require(given == parameters_, [&] {
      return std::string(call) + " needs all " + std::to_string(parameters_) + " parameters, not " +
             std::to_string(given);
    });
  }

  parameter_server_options options_;
  std::size_t parameters_, workers_;
  bool serves_ = false;
  std::size_t number_ = 0;
  std::vector<communicator<X>> links_;  // by number of the worker, respectively the server
};

}  // namespace rondo::inline v0
