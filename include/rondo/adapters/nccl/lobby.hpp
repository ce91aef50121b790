#pragma once

#include <rondo/adapters/nccl/unique_id.hpp>
#include <rondo/transports/bootstrap/any_door.hpp>
#include <rondo/transports/bootstrap/doorkeeper.hpp>
#include <rondo/transports/bootstrap/hosted_group.hpp>
#include <rondo/transports/bootstrap/knock.hpp>
#include <rondo/transports/bootstrap/wakeup.hpp>

#include <algorithm>
#include <chrono>
#include <exception>
#include <memory>
#include <poll.h>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace rondo::inline v0::nccl {

/// Where the ranks that have an id meet: a thread in the process that made the id, which need not be one of them.
///
/// Each rank proves that it has the id, as in handshake.hpp. When all are there, all are told where rank 0 listens, and
/// the lobby is closed: an id serves one communicator. If one leaves before, or has another idea of their number, all
/// are told that.
///
///     rank     contribute  rank 0: where it listens
///     rank     overdue     it has waited long enough
///     lobby    gathered    where rank 0 listens               or refusal: a sentence
class lobby {
 public:
  /// Opens one, and returns the id that leads to it. The thread ends with the process at the latest.
  static ncclUniqueId open() {
    auto door = detail::any_door::open("the process that makes the id");
    unique_id id{detail::fresh_nonce(), std::move(door.place)};
    std::unique_ptr<lobby> hall(new lobby(std::move(door.socket), id.secret));
    detail::quiet_thread([own = std::move(hall)] { own->run(); }).detach();
    return id.pack();
  }

  /// Joins the ranks that have the id. Every rank must call; blocks until all have.
  static std::shared_ptr<group> join(ncclUniqueId const& bytes, int size, rank_t rank, detail::steady::time_point end) {
    auto const id = unique_id::unpack(bytes);
    environment who;
    who.rank = rank;
    who.size = size;
    who.token = id.secret;
    detail::any_door door;
    if (rank == 0) door = detail::any_door::open("rank 0", 0);
    auto const hub = ask(id, who, door, end);
    if (size == 1) return std::make_shared<solo_group>();
    return detail::join_at(detail::tcp_wiring::decode(hub, 0), std::move(who), door, end);
  }

 private:
  /// A rank that has come in.
  struct guest {
    rank_t rank;
    detail::identity who;
    detail::frame_stream stream;
    bool told = false;

    std::string name() const { return "rank " + std::to_string(rank) + " (" + who.text() + ")"; }
  };

  /// The lobby is there before the id is: a rank that does not find it will not find it later either.
  static constexpr auto patience = std::chrono::seconds(10);

  lobby(detail::file_descriptor door, std::string const& secret)
      : door_(
            std::move(door), secret, [this](detail::settings const& s) { return decide(s); },
            [this](detail::settings const& s, detail::frame_stream stream) {
              guests_.push_back({s.rank, s.who, std::move(stream)});
              hear(guests_.back(), false);  // its first frames may have come with the proof
            }) {}

  void run() noexcept {
    try {
      while (!met_ || !guests_.empty()) turn();
    } catch (std::exception const&) {}  // out of memory: the connections close, and every rank learns it
  }

  void turn() {
    met_ = met_ || (wrong_.empty() && !hub_.empty() && guests_.size() == static_cast<std::size_t>(size_));
    for (auto& g : guests_) tell(g);
    std::erase_if(guests_, [](guest const& g) { return g.stream.fd() < 0; });
    std::vector<pollfd> polled;
    for (auto const& g : guests_) polled.push_back({g.stream.fd(), g.stream.events(), 0});
    auto const guests = polled.size();
    door_.watch(polled);
    if (::poll(polled.data(), polled.size(), detail::poll_timeout(door_.next_deadline())) < 0) return;
    for (std::size_t i = 0; i < guests; ++i)
      if ((polled[i].revents & ~POLLOUT) != 0) hear(guests_[i], true);
    door_.serve(&polled[guests]);
  }

  void tell(guest& g) {
    if (!g.told && !wrong_.empty()) g.stream.push(detail::message::refusal, 0, wrong_);
    if (!g.told && met_) g.stream.push(detail::message::gathered, 0, hub_);
    g.told = met_ || !wrong_.empty();
    if (g.stream.fd() >= 0 && !g.stream.flush()) see_off(g);
  }

  void hear(guest& g, bool readable) {
    bool open = true;
    try {
      if (readable) open = g.stream.fill();
      while (auto const f = g.stream.pop()) {
        if (f->kind == detail::message::contribute && g.rank == 0) hub_ = f->payload;
        if (f->kind == detail::message::overdue)
          complain(missing() + " did not call ncclCommInitRank in time, with "
                               "this id and the same nranks");
      }
    } catch (detail::malformed const&) { open = false; }
    if (!open) see_off(g);
  }

  void see_off(guest& g) {
    g.stream.close();
    if (!g.told) complain(g.name() + " left before all ranks had met");
  }

  /// The first complaint is the one that all hear.
  void complain(std::string what) {
    if (!met_ && wrong_.empty()) wrong_ = std::move(what);
  }

  bool is_here(rank_t r) const {
    return std::any_of(guests_.begin(), guests_.end(),
                       [r](guest const& g) { return g.rank == r && g.stream.fd() >= 0; });
  }

  std::string missing() const {
    std::vector<rank_t> late;
    for (rank_t r = 0; r < size_; ++r)
      if (!is_here(r)) late.push_back(r);
    return detail::name_ranks(late);
  }

  detail::doorkeeper::decision decide(detail::settings const& s) {
    auto const self = "rank " + std::to_string(s.rank) + " (" + s.who.text() + ")";
    if (s.version != RONDO_VERSION)
      complain(self + " was built with rondo " + std::to_string(s.version) + " but the process that made the id with " +
               std::to_string(RONDO_VERSION) + ": build all ranks with the same version");
    if (size_ != 0 && s.size != size_)
      complain(self + " wants a communicator of " + std::to_string(s.size) + " ranks, but others want one of " +
               std::to_string(size_) + ": pass the same nranks on all ranks");
    if (!wrong_.empty()) return {detail::refusal::final, wrong_};
    if (s.rank < 0 || s.rank >= s.size || is_here(s.rank))
      return {detail::refusal::final,
              self + " is there already, or not one of the ranks: give every rank a number of its own"};
    size_ = s.size;
    return {};
  }

  /// Where rank 0 listens.
  static std::string ask(unique_id const& id, environment who, detail::any_door const& door,
                         detail::steady::time_point end) {
    auto const self = "rank " + std::to_string(who.rank);
    std::string const there = "the process that made the id";
    auto const soon = std::min(end, detail::steady::now() + patience);
    who.address =
        detail::reachable_address(id.place, self, there + " (has it ended, or have all ranks of this id met already?)",
                                  nobody, soon)
            .to_string();
    who.port = id.place.endpoints.front().port;
    auto stream = detail::knock(who, soon).first;
    stream.push(detail::message::contribute, 0, who.rank == 0 ? door.place.encode() : "");
    auto answer = detail::await(stream, end);
    if (!answer && detail::steady::now() >= end) {
      stream.push(detail::message::overdue, 0, {});
      answer = detail::await(stream, detail::steady::now() + std::chrono::seconds(1));
    }
    if (answer && answer->kind == detail::message::gathered) return answer->payload;
    if (answer && answer->kind == detail::message::refusal) throw connect_error(answer->payload);
    throw connect_error(there + " ended before all ranks had met, or is stopped: see its output");
  }

  int size_ = 0;
  std::string hub_, wrong_;
  bool met_ = false;
  std::vector<guest> guests_;
  detail::doorkeeper door_;
};

}  // namespace rondo::inline v0::nccl
