#pragma once

#include "peers/protocol.hpp"

#include <chrono>
#include <cstddef>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <vector>

namespace rondo::bench::peers {

/// What a system did in a turn.
struct outcome_of_turn {
  std::vector<double> slowest_us;  ///< of each timed call the time of the slowest rank
  std::uint64_t wrong = 0;         ///< elements on all ranks
};

/// The ranks of one library, which some launcher has started, and which do what they are told turn by turn. Between
/// turns they sleep.
class system {
 public:
  using clock = std::chrono::steady_clock;

  /// Starts `command` with two more arguments: where the ranks find this process, and the memory that they share with
  /// it, of which `shared_bytes` are the system's own. Does not wait for them.
  system(std::string id, std::vector<std::string> command, int ranks, std::size_t shared_bytes, bool pin);

  /// Hangs up, so that the ranks end; those that do not within some seconds are killed.
  ~system();

  system(system const&) = delete;
  system& operator=(system const&) = delete;

  /// Returns when all ranks are there. Throws world_error.
  void welcome(clock::time_point deadline);

  /// Throws world_error when a rank fails, ends, or does not answer in time; the system is of no use then.
  outcome_of_turn play(turn const& t, clock::time_point deadline);

  std::string const& id() const { return id_; }
  std::string const& name() const { return name_; }  ///< of the library and its version, after welcome()

 private:
  struct member {
    int socket = -1;
    pid_t pid = 0;
  };

  int rank_of(greeting const& hello, int socket);
  void start(std::vector<std::string> command, std::string_view address);
  bool ended() const;
  [[noreturn]] void give_up(std::string const& why);
  std::string last_words() const;

  std::string id_, name_;
  std::vector<member> members_;
  int listener_ = -1, memory_ = -1;
  region* region_ = nullptr;
  pid_t launcher_ = 0;
  std::chrono::seconds patience_{5};  ///< with ranks that are asked to end
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> output_;
};

}  // namespace rondo::bench::peers
