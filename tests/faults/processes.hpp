#pragma once

#include <rondo/communicator.hpp>
#include <rondo/transports/any_transport.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <functional>
#include <gtest/gtest.h>
#include <iosfwd>
#include <memory>
#include <string>
#include <sys/types.h>
#include <thread>
#include <unistd.h>
#include <vector>

/// What the tests of faults share: ranks that may be killed, stopped or left alone, and what became of each.
namespace faults_test {

using namespace rondo;

using comm = communicator<any_transport>;
using clock = std::chrono::steady_clock;

/// What connects the ranks of a test; those of in_process are threads, the others processes. Over multi two ranks after
/// the other play that they share a host.
enum class medium { in_process, shm, tcp, multi };
inline constexpr std::array media{medium::in_process, medium::shm, medium::tcp};
inline constexpr std::array process_media{medium::shm, medium::tcp, medium::multi};
std::string name_of(medium);
any_transport connect(medium, std::shared_ptr<group> const&);

enum class ending : int { none, done, peer_lost, deadline, mismatch, other };
std::ostream& operator<<(std::ostream&, ending);

/// What became of a rank, and how far it has come. Lies in memory that all ranks and the test share.
struct seat {
  std::atomic<int> progress{0};  ///< for the body to count with
  std::atomic<bool> ended{false};
  ending how = ending::none;
  rank_t named = nobody;        ///< the rank at fault
  bool repeats = false;         ///< a further call threw the same error
  clock::time_point when{};     ///< of the error, or of the end of the body
  clock::duration repeating{};  ///< how long the further call took
  clock::duration leaving{};    ///< how long destroying everything took
  std::array<char, 1024> what{};

  std::string text() const { return what.data(); }
};

/// Throws what becomes ending::other unless `holds`; the way for a body to fail its test.
void demand(bool holds, std::string const& otherwise);

/// Ranks that run `body(communicator, seat)`, each in a process of its own, or on a thread if the medium says so.
class team {
 public:
  using body = std::function<void(comm&, seat&)>;
  using adaptor = std::function<any_transport(any_transport)>;
  using connector = std::function<any_transport(std::shared_ptr<group> const&)>;

  team(medium, int n, body const&, communicator_options const& = {.deadline = std::chrono::seconds(20)},
       adaptor const& = {});
  /// Processes that connect as they are told.
  team(connector const&, int n, body const&, communicator_options const& = {.deadline = std::chrono::seconds(20)});
  ~team();
  team(team const&) = delete;
  team& operator=(team const&) = delete;

  int size() const noexcept { return n_; }
  seat const& operator[](rank_t r) const noexcept { return seats_[r]; }
  pid_t pid(rank_t r) const noexcept { return pids_[static_cast<std::size_t>(r)]; }

  /// For ranks that are processes. Returns the time just before.
  clock::time_point signal(rank_t, int number);

  /// Waits until every rank has counted to `progress`.
  void await_progress(int progress) const;

  /// Waits until every rank has ended, or was killed here. A rank that does not within `limit` or that crashes is a
  /// failure of the test.
  void wait(std::chrono::seconds limit = std::chrono::seconds(30));

  /// Checks, after wait(), that every rank but those that `except` lists ended so, all with the same words, with the
  /// same error for a further call at once, and that nothing took long to destroy.
  void expect_all(ending, std::vector<rank_t> const& except = {}) const;

  /// Checks that the errors of all ranks but the culprit name it.
  void expect_named(rank_t culprit) const;

 private:
  explicit team(int n);
  void start_processes(connector const&, body const&, communicator_options const&);

  int n_;
  seat* seats_;
  std::vector<pid_t> pids_;
  std::vector<bool> killed_;
  std::vector<std::thread> threads_;
};

/// A test that ends its process rather than hang.
template <class Parameter = int>
class bounded : public testing::TestWithParam<Parameter> {
 protected:
  void SetUp() override { ::alarm(60); }
  void TearDown() override { ::alarm(0); }
};

inline double seconds(clock::duration d) { return std::chrono::duration<double>(d).count(); }

}  // namespace faults_test
