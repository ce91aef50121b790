#include "processes.hpp"

#include "../multi/bootstrap_job.hpp"
#include "calls.hpp"
#include <rondo/transports/in_process.hpp>
#include <rondo/transports/multi.hpp>
#include <rondo/transports/shm.hpp>
#include <rondo/transports/tcp.hpp>

#include <cstring>
#include <new>
#include <optional>
#include <ostream>
#include <stdexcept>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace faults_test {

namespace {

void note(seat& s, ending how, std::string const& what, rank_t named = nobody) {
  s.when = clock::now();
  s.how = how;
  s.named = named;
  what.copy(s.what.data(), s.what.size() - 1);
}

/// Runs the body and notes what became of it. `c` is destroyed only when a further call has been tried.
void run(team::connector const& connect, std::shared_ptr<group> g, team::body const& body,
         communicator_options const& options, seat& s) {
  std::optional<comm> c;
  try {
    c.emplace(g, connect(g), options);
    body(*c, s);
    note(s, ending::done, "");
  } catch (error const& e) {
    auto const how = dynamic_cast<peer_lost const*>(&e)             ? ending::peer_lost
                     : dynamic_cast<deadline_exceeded const*>(&e)   ? ending::deadline
                     : dynamic_cast<collective_mismatch const*>(&e) ? ending::mismatch
                                                                    : ending::other;
    note(s, how, e.what(), e.rank());
  } catch (std::exception const& e) { note(s, ending::other, e.what()); }
  auto const broken = clock::now();
  if (c && s.how != ending::done && s.how != ending::other) try {
      make(*c, {.what = collective::barrier});
    } catch (error const& e) { s.repeats = s.text() == e.what() && s.named == e.rank(); }
  s.repeating = clock::now() - broken;
  auto const leaving = clock::now();
  c.reset();
  g.reset();
  s.leaving = clock::now() - leaving;
  s.ended.store(true, std::memory_order_release);
}

template <class Done>
bool within(clock::duration limit, Done&& done) {
  for (auto const until = clock::now() + limit; !done();) {
    if (clock::now() > until) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return true;
}

}  // namespace

std::string name_of(medium m) {
  constexpr std::array names{"in_process", "shm", "tcp", "multi"};
  return names[static_cast<std::size_t>(m)];
}

any_transport connect(medium m, std::shared_ptr<group> const& g) {
  if (m == medium::in_process) return in_process::connect(g);
  if (m == medium::shm) return shm::connect(g);
  if (m == medium::multi) return multi::connect(g, {.host = std::to_string(g->rank() / 2)});
  return tcp::connect(g);
}

std::ostream& operator<<(std::ostream& out, ending e) {
  constexpr std::array names{"no end", "a good end", "peer_lost", "deadline_exceeded", "collective_mismatch", "other"};
  return out << names[static_cast<std::size_t>(e)];
}

void demand(bool holds, std::string const& otherwise) {
  if (!holds) throw std::runtime_error(otherwise);
}

team::team(int n) : n_(n), pids_(static_cast<std::size_t>(n), -1), killed_(static_cast<std::size_t>(n)) {
  void* const shared = ::mmap(nullptr, static_cast<std::size_t>(n) * sizeof(seat), PROT_READ | PROT_WRITE,
                              MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) throw std::bad_alloc();
  seats_ = static_cast<seat*>(shared);
  for (rank_t r = 0; r < n; ++r) new (seats_ + r) seat;
}

team::team(medium m, int n, body const& work, communicator_options const& options, adaptor const& adapt) : team(n) {
  auto const join = [m, adapt](std::shared_ptr<group> const& g) {
    return adapt ? adapt(connect(m, g)) : connect(m, g);
  };
  if (m != medium::in_process) {
    start_processes(join, work, options);
    return;
  }
  auto groups = in_process_group::make(n);
  for (rank_t r = 0; r < n; ++r)
    threads_.emplace_back([join, work, options, g = std::move(groups[static_cast<std::size_t>(r)]),
                           &s = seats_[r]]() mutable { run(join, std::move(g), work, options, s); });
}

team::team(connector const& join, int n, body const& work, communicator_options const& options) : team(n) {
  start_processes(join, work, options);
}

void team::start_processes(connector const& join, body const& work, communicator_options const& options) {
  bootstrap_test::job job(n_);
  for (rank_t r = 0; r < n_; ++r) {
    pid_t const pid = ::fork();
    if (pid < 0) throw std::runtime_error("no process for a rank");
    if (pid > 0) {
      pids_[static_cast<std::size_t>(r)] = pid;
      continue;
    }
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (r != 0) job.release();
    try {
      run(join, job.join(r), work, options, seats_[r]);
    } catch (std::exception const& e) {
      note(seats_[r], ending::other, e.what());
      seats_[r].ended = true;
    }
    ::_exit(0);
  }
}

team::~team() {
  for (auto const pid : pids_)
    if (pid > 0) ::kill(pid, SIGKILL);
  for (auto const pid : pids_)
    while (pid > 0 && ::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {}
  for (auto& t : threads_) t.join();
  ::munmap(seats_, static_cast<std::size_t>(n_) * sizeof(seat));
}

clock::time_point team::signal(rank_t r, int number) {
  auto const before = clock::now();
  if (number == SIGKILL) killed_[static_cast<std::size_t>(r)] = true;
  ::kill(pid(r), number);
  return before;
}

void team::await_progress(int progress) const {
  for (rank_t r = 0; r < n_; ++r)
    ASSERT_TRUE(within(std::chrono::seconds(20), [&] { return seats_[r].progress >= progress || seats_[r].ended; }))
        << "rank " << r << " has come to " << seats_[r].progress << " of " << progress;
}

void team::wait(std::chrono::seconds limit) {
  auto const until = clock::now() + limit;
  for (rank_t r = 0; r < n_; ++r) {
    auto& pid = pids_[static_cast<std::size_t>(r)];
    int status = 0;
    bool const ended = within(until - clock::now(), [&] {
      return pid > 0 ? ::waitpid(pid, &status, WNOHANG) == pid : seats_[r].ended.load(std::memory_order_acquire);
    });
    EXPECT_TRUE(ended) << "rank " << r << " hangs";
    if (!ended && pid <= 0) std::abort();  // a thread cannot be ended
    if (!ended || pid <= 0) continue;
    pid = -1;
    EXPECT_TRUE(killed_[static_cast<std::size_t>(r)] || status == 0) << "rank " << r << " crashed: " << status;
  }
}

void team::expect_all(ending how, std::vector<rank_t> const& except) const {
  using namespace std::chrono_literals;
  seat const* first = nullptr;
  for (rank_t r = 0; r < n_; ++r) {
    if (std::find(except.begin(), except.end(), r) != except.end()) continue;
    auto const& s = seats_[r];
    EXPECT_EQ(s.how, how) << "rank " << r << ": " << s.text();
    EXPECT_LT(seconds(s.leaving), 1.0) << "rank " << r << " took long to destroy its communicator";
    if (how == ending::done) continue;
    if (!first) first = &s;
    EXPECT_EQ(s.text(), first->text()) << "rank " << r << " says something else";
    EXPECT_TRUE(s.repeats) << "rank " << r << " threw another error, or none, from a further call";
    EXPECT_LT(seconds(s.repeating), 0.5) << "rank " << r << " took long to fail a further call";
  }
}

void team::expect_named(rank_t culprit) const {
  for (rank_t r = 0; r < n_; ++r)
    EXPECT_TRUE(r == culprit || seats_[r].named == culprit) << "rank " << r << ": " << seats_[r].text();
}

}  // namespace faults_test
