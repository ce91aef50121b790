#pragma once

#include <rondo/detail/text.hpp>
#include <rondo/transports/bootstrap/doorkeeper.hpp>
#include <rondo/transports/bootstrap/hosted_group.hpp>
#include <rondo/transports/bootstrap/wakeup.hpp>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <map>
#include <new>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace rondo::inline v0::detail {

/// The hub of the control plane, in the process of rank 0: one thread that sleeps in poll() until a rank speaks, dies
/// or joins. It owns the connections of all ranks, its own included, and one hosted_group for each group of the job.
class coordinator {
 public:
  /// `self`: one end of the connection of rank 0. `port_text`: where the job listens, for messages.
  coordinator(int size, std::string const& token, file_descriptor listener, file_descriptor self, std::string port_text)
      : size_(size), place_(std::move(port_text)), ranks_(static_cast<std::size_t>(size)),
        door_(
            std::move(listener), token, [this](settings const& s) { return decide(s); },
            [this](settings const& s, frame_stream stream) {
              take_in(s.rank, s.who, std::move(stream));
              service(s.rank, true);  // its first frames may have come with the proof
            }) {
    std::vector<rank_t> world(ranks_.size());
    for (rank_t r = 0; r < size; ++r) world[static_cast<std::size_t>(r)] = r;
    groups_.emplace(0, hosted_group(0, std::move(world), sender()));
    take_in(0, identity::own(), frame_stream(std::move(self), frame_stream::member_limit + 64));
    thread_ = quiet_thread([this] { run(); });
  }

  /// Tells the ranks that are still here that nobody died, and waits a moment for them to hang up.
  ~coordinator() {
    stop_.store(true, std::memory_order_relaxed);
    wakeup_.ring();
    thread_.join();
  }
  coordinator(coordinator const&) = delete;
  coordinator& operator=(coordinator const&) = delete;

  /// Lets nobody in any more and frees the port; goes on for the ranks that are here, until the last one has left.
  void retire() noexcept {
    retired_.store(true, std::memory_order_relaxed);
    wakeup_.ring();
  }
  bool deserted() const noexcept { return deserted_.load(std::memory_order_relaxed); }

 private:
  enum class state : std::uint8_t { absent, here, left, lost };
  struct member {
    state is = state::absent;
    identity who;
    frame_stream stream;
  };

  static constexpr auto farewell_patience = std::chrono::milliseconds(500);

  member& at(rank_t r) noexcept { return ranks_[static_cast<std::size_t>(r)]; }

  hosted_group::send_to sender() {
    return [this](rank_t to, message kind, std::uint64_t group, std::string_view payload) {
      if (at(to).is == state::here) at(to).stream.push(kind, group, payload);
    };
  }

  void run() noexcept {
    try {
      while (!stop_.load(std::memory_order_relaxed)) {
        bool const retired = retired_.load(std::memory_order_relaxed);
        if (retired) door_.close();
        if (retired && empty()) break;
        turn(next_deadline(), !retired);
      }
      for (int last = 0; last < 2; ++last) turn(steady::now(), false);  // what has been said is still passed on
      groups_.clear();                                                  // nobody is asked for anything more
      for (auto& m : ranks_)
        if (m.is == state::here) m.stream.push(message::farewell, 0, {});
      auto const until = steady::now() + farewell_patience;
      while (steady::now() < until && !empty()) turn(until, false);
    } catch (std::exception const&) {
    }  // out of memory: the connections close, and every rank learns that rank 0 is lost
    for (auto& m : ranks_) m.stream.close();
    deserted_.store(true, std::memory_order_relaxed);
  }

  bool empty() const noexcept {
    return std::none_of(ranks_.begin(), ranks_.end(), [](auto const& m) { return m.is == state::here; });
  }

  steady::time_point next_deadline() const noexcept {
    auto next = door_.next_deadline();
    for (auto const& [id, group] : groups_) next = std::min(next, group.next_deadline());
    return next;
  }

  /// Sleeps until something happens, and deals with it.
  void turn(steady::time_point until, bool door_open) {
    std::vector<pollfd> polled{{wakeup_.fd(), POLLIN, 0}};
    flush();
    for (auto const& m : ranks_) polled.push_back({m.is == state::here ? m.stream.fd() : -1, m.stream.events(), 0});
    if (door_open) door_.watch(polled);
    if (::poll(polled.data(), polled.size(), poll_timeout(until)) < 0) {
      if (errno == EINTR) return;
      throw std::bad_alloc();
    }
    if (polled[0].revents != 0) wakeup_.hush();
    for (rank_t r = 0; r < size_; ++r)
      if (auto const events = polled[static_cast<std::size_t>(r) + 1].revents; events != 0)
        service(r, (events & ~POLLOUT) != 0);
    if (door_open) door_.serve(&polled[ranks_.size() + 1]);
    auto const now = steady::now();
    for (auto& [id, group] : groups_) group.expire(now);
    std::erase_if(groups_, [](auto const& entry) { return entry.first != 0 && entry.second.deserted(); });
  }

  /// This process last: whatever it does next, the others have had the same news. A broken connection shows when it is
  /// read, because a goodbye may still be waiting there.
  void flush() {
    for (rank_t r = size_ - 1; r >= 0; --r)
      if (at(r).is == state::here) (void)at(r).stream.flush();
  }

  void service(rank_t r, bool readable) {
    auto& m = at(r);
    if (m.is != state::here || !readable) return;
    bool open = false;
    try {
      open = m.stream.fill();
      while (m.is == state::here) {
        auto const f = m.stream.pop();
        if (!f) break;
        handle(r, *f);
      }
    } catch (malformed const&) { open = false; }
    if (!open && m.is == state::here) lose(r);
  }

  void handle(rank_t r, frame const& f) {
    unpacker in(f.payload);
    auto const now = steady::now();
    if (f.kind == message::open && !groups_.empty()) return open(r, f.group, in);
    if (f.kind == message::goodbye) {
      at(r).is = state::left;
      for (auto& [id, group] : groups_)
        if (auto const mine = group.find(r); mine != nobody) group.leave(mine, 0, now);
      flush();  // it may be this process, which ends as soon as its rank is hung up on
      at(r).stream.close();
      return;
    }
    auto const found = groups_.find(f.group);
    if (found == groups_.end()) return;  // all others have left it
    auto& group = found->second;
    auto const mine = group.find(r);
    if (mine == nobody) throw malformed{};
    switch (f.kind) {
      case message::contribute: {
        auto const round = in.number<std::uint64_t>();
        return group.contribute(mine, round, in.text());
      }
      case message::overdue: return group.overdue(in.number<std::uint64_t>());
      case message::report: {
        auto why = unpack_failure(in, static_cast<int>(group.members().size()));
        return group.report(mine, std::move(why), in.number<std::uint64_t>(), now);
      }
      case message::progress: {
        auto const probe = in.number<std::uint64_t>(), entered = in.number<std::uint64_t>();
        return group.answer(mine, probe, entered, in.number<std::uint64_t>(), now);
      }
      case message::leave: return group.leave(mine, in.number<std::uint64_t>(), now);
      default: throw malformed{};
    }
  }

  /// The first member that opens a group brings it into being, with those that are dead or gone already.
  void open(rank_t r, std::uint64_t id, unpacker& in) {
    auto found = groups_.find(id);
    if (found == groups_.end()) {
      auto const n = in.number<std::uint32_t>();
      if (n == 0 || n > ranks_.size()) throw malformed{};
      std::vector<rank_t> members;
      for (std::uint32_t i = 0; i < n; ++i) {
        auto const member = in.number<rank_t>();
        if (member < 0 || member >= size_ || std::count(members.begin(), members.end(), member)) throw malformed{};
        members.push_back(member);
      }
      found = groups_.emplace(id, hosted_group(id, std::move(members), sender())).first;
      for (rank_t i = 0; i < static_cast<rank_t>(n); ++i) {
        auto const& m = at(found->second.members()[static_cast<std::size_t>(i)]);
        if (m.is == state::left) found->second.leave(i, 0, steady::now());
        if (m.is == state::lost) found->second.lose(i, obituary(m));
      }
    }
    auto const mine = found->second.find(r);
    if (mine == nobody) throw malformed{};
    found->second.open(mine);
  }

  void lose(rank_t r) {
    auto& m = at(r);
    m.is = state::lost;
    m.stream.close();
    for (auto& [id, group] : groups_)
      if (auto const mine = group.find(r); mine != nobody) group.lose(mine, obituary(m));
  }

  static std::string obituary(member const& m) {
    return text_of({"(", m.who.text(), ") died: its control connection broke without a goodbye"});
  }

  void take_in(rank_t r, identity who, frame_stream stream) {
    at(r) = {state::here, std::move(who), std::move(stream)};
    groups_.at(0).open(r);
  }

  doorkeeper::decision decide(settings const& s) {
    auto& world = groups_.at(0);
    auto const self = text_of({"rank ", s.rank, " (", s.who.text(), ")"});
    auto const& verdict = world.verdict();
    if (verdict.why != failure::kind::none)
      return {refusal::final, text_of({"the job has failed already: ", verdict.what})};
    bool const running = world.complete();
    auto const disagree = [&](std::string what) -> doorkeeper::decision {
      if (!running) world.fail({failure::kind::other, s.rank >= 0 && s.rank < size_ ? s.rank : nobody, what});
      return {refusal::final, std::move(what)};
    };
    if (s.version != RONDO_VERSION)
      return disagree(text_of({self, " was built with rondo ", s.version, " but rank 0 with ", RONDO_VERSION,
                               ": build all ranks with the same version"}));
    if (s.size != size_)
      return disagree(text_of({self, " was started with a world size of ", s.size, " but rank 0 with ", size_,
                               ": set WORLD_SIZE to the same number on all ranks"}));
    if (s.rank < 0 || s.rank >= size_)
      return {refusal::final, text_of({"rank ", s.rank, " is not one of 0 to ", size_ - 1, ": correct RANK"})};
    auto const& m = at(s.rank);
    if (m.is == state::here)
      return {refusal::final,
              text_of({"rank ", s.rank, " is already taken by ", m.who.text(),
                       ": is RANK set twice to the same number, or does another job use ", place_, "?"})};
    if (m.is != state::absent) return {refusal::busy, text_of({"an earlier job at ", place_, " has not ended yet"})};
    return {};
  }

  int size_;
  std::string place_;
  std::vector<member> ranks_;
  std::map<std::uint64_t, hosted_group> groups_;
  doorkeeper door_;
  wakeup wakeup_;
  std::atomic<bool> stop_{false}, retired_{false}, deserted_{false};
  std::thread thread_;
};

}  // namespace rondo::inline v0::detail
