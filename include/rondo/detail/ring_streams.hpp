#pragma once

#include <rondo/detail/bell.hpp>
#include <rondo/detail/by_rank.hpp>
#include <rondo/detail/byte_ring.hpp>
#include <rondo/detail/file_descriptor.hpp>
#include <rondo/detail/mirrored_memory.hpp>
#include <rondo/detail/shared_file.hpp>
#include <rondo/detail/text.hpp>
#include <rondo/error.hpp>
#include <rondo/memory.hpp>
#include <rondo/registered_memory.hpp>
#include <rondo/types.hpp>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <poll.h>
#include <span>
#include <sys/eventfd.h>
#include <unistd.h>
#include <utility>
#include <vector>

namespace rondo::inline v0::detail {

/// What a peer has in the inbox of a rank besides bytes.
struct correspondence {
  ring_counters ring;
  mailbox mail;
};

/// How the inbox of a rank is laid out: a bell, then what belongs to each peer, then their rings, then the board. What
/// follows is registered memory.
struct inbox_layout {
  int ranks;
  std::size_t capacity;  ///< bytes of each ring: a power of two, at least a page
  std::size_t board;     ///< bytes of the board: a multiple of a page

  /// Generous for few ranks, bounded in sum for many: boards that all fit a cache that cores share, and are larger than
  /// those that they do not share, are the fastest.
  static constexpr inbox_layout of(int ranks) noexcept {
    constexpr std::size_t KiB = 1024;
    std::size_t const ring = ranks <= 4 ? 1024 : ranks <= 16 ? 256 : 64;
    std::size_t const windows = ranks <= 2 ? 4096 : ranks <= 4 ? 2048 : 1024;
    std::size_t const letters = 12 * static_cast<std::size_t>(ranks);  // what run::boards keeps beside its windows
    return {ranks, ring * KiB, (windows + letters) * KiB};
  }

  std::size_t counters_at(rank_t peer) const noexcept {
    return line_pair + static_cast<std::size_t>(peer) * sizeof(correspondence);
  }
  std::size_t head_bytes() const noexcept { return (counters_at(ranks) + page_bytes - 1) / page_bytes * page_bytes; }
  std::size_t data_at(rank_t owner, rank_t peer) const noexcept {
    return head_bytes() + static_cast<std::size_t>(peer < owner ? peer : peer - 1) * capacity;
  }
  std::size_t board_at() const noexcept { return head_bytes() + static_cast<std::size_t>(ranks - 1) * capacity; }
  std::size_t bytes() const noexcept { return board_at() + board; }
};

/// The inbox of one rank: its memory, and the eventfd that wakes its owner out of poll(2).
struct inbox {
  std::shared_ptr<file_descriptor const> memory, waker;
};

inline inbox make_inbox(inbox_layout const& layout) {
  // As much as the machine has, but all ranks together no more than a process can address.
  std::size_t const memory = static_cast<std::size_t>(::sysconf(_SC_PHYS_PAGES)) * page_bytes;
  std::size_t const addresses = (std::size_t{1} << 45) / static_cast<std::size_t>(layout.ranks);
  file_descriptor waker(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!waker) throw error(text_of({"cannot make an eventfd (", std::strerror(errno), "): raise ulimit -n"}));
  return {std::make_shared<file_descriptor const>(make_shared_file(layout.bytes(), std::min(memory, addresses))),
          std::make_shared<file_descriptor const>(std::move(waker))};
}

/// Byte streams, boards and mailboxes in memory that all ranks share. A ring per ordered pair lies in the inbox of its
/// reader.
class ring_streams {
 public:
  /// `inboxes` were made by make_inbox() with the same layout, by rank.
  ring_streams(rank_t rank, inbox_layout layout, std::vector<inbox> const& inboxes)
      : rank_(rank), layout_(layout),
        registered_(std::make_shared<registered_memory>(rank, memory_of(inboxes), layout.bytes())),
        peers_(inboxes.size()) {
    static_assert(sizeof(bell) <= line_pair);
    bell::prepare();
    auto const file = [&](rank_t q) { return by_rank(inboxes, q).memory->get(); };
    for (rank_t q = 0; q < layout.ranks; ++q) {
      auto& p = by_rank(peers_, q);
      p.waker = by_rank(inboxes, q).waker;
      p.head = map_shared(file(q), 0, layout.head_bytes());
      p.board = map_shared(file(q), layout.board_at(), layout.board);
    }
    for (rank_t q = 0; q < layout.ranks; ++q) {
      if (q == rank) continue;
      auto& p = by_rank(peers_, q);
      p.theirs = map_mirrored(file(q), layout.data_at(q, rank), layout.capacity);
      p.mine = map_mirrored(file(rank), layout.data_at(rank, q), layout.capacity);
      p.writer = ring_writer(peer_in(q, rank).ring, p.theirs.data(), layout.capacity);
      p.reader = ring_reader(peer_in(rank, q).ring, p.mine.data(), layout.capacity);
    }
  }

  rank_t rank() const noexcept { return rank_; }
  int size() const noexcept { return layout_.ranks; }

  std::size_t write(rank_t peer, std::span<std::byte const> bytes, bool more) noexcept {
    std::size_t const n = by_rank(peers_, peer).writer.write(bytes, more);
    if (n != 0 && !more) notify(peer);
    return n;
  }

  std::span<std::byte const> readable(rank_t peer, std::size_t need) noexcept {
    return by_rank(peers_, peer).reader.readable(need);
  }

  void consume(rank_t peer, std::size_t n) noexcept {
    by_rank(peers_, peer).reader.consume(n);
    notify(peer);
  }

  std::size_t read(rank_t peer, std::span<std::byte> into) noexcept {
    std::size_t const n = by_rank(peers_, peer).reader.read(into);
    if (n != 0) notify(peer);
    return n;
  }

  std::span<std::byte> board(rank_t owner) const noexcept {
    auto const& memory = by_rank(peers_, owner).board;
    return {memory.data(), memory.size()};
  }
  mailbox& mail(rank_t owner, rank_t writer) const noexcept { return peer_in(owner, writer).mail; }
  void notify(rank_t peer) noexcept { bell_of(peer).ring(*by_rank(peers_, peer).waker); }
  std::shared_ptr<registered_memory> registered() const noexcept { return registered_; }

  void wait(std::chrono::nanoseconds patience) noexcept {
    bell_of(rank_).sleep(patience, [this] { return stirred(); });
  }

  std::chrono::nanoseconds watch(std::vector<pollfd>& polled) {
    polled.push_back({by_rank(peers_, rank_).waker->get(), POLLIN, 0});
    return bell_of(rank_).lie_down([this] { return stirred(); });
  }
  void watched(std::span<pollfd const> answers) noexcept {
    bell_of(rank_).get_up();
    if (eventfd_t rings = 0; answers.front().revents != 0) ::eventfd_read(by_rank(peers_, rank_).waker->get(), &rings);
  }

 private:
  /// A rank, itself included, as this one sees it.
  struct peer {
    std::shared_ptr<file_descriptor const> waker;
    mapping head, board;   // of its inbox
    mapping theirs, mine;  // the rings to it, in its inbox, and from it, in this rank's
    ring_writer writer;
    ring_reader reader;
  };

  static std::vector<std::shared_ptr<file_descriptor const>> memory_of(std::vector<inbox> const& inboxes) {
    std::vector<std::shared_ptr<file_descriptor const>> files;
    for (inbox const& i : inboxes) files.push_back(i.memory);
    return files;
  }

  /// A rank constructs nothing: zero bytes are an empty ring, an empty mailbox and a silent bell, whoever comes first.
  correspondence& peer_in(rank_t owner, rank_t peer) const noexcept {
    std::byte* const place = by_rank(peers_, owner).head.data() + layout_.counters_at(peer);
    return *std::launder(reinterpret_cast<correspondence*>(place));
  }
  bell& bell_of(rank_t owner) const noexcept {
    return *std::launder(reinterpret_cast<bell*>(by_rank(peers_, owner).head.data()));
  }

  /// Has anything happened since the last look?
  bool stirred() noexcept { return std::exchange(seen_, traffic()) != seen_; }

  /// Changes whenever a peer has written to this rank, consumed from it or put something into its mailbox.
  std::uint64_t traffic() const noexcept {
    std::uint64_t sum = 0;
    for (rank_t q = 0; q < size(); ++q) {
      if (q == rank_) continue;
      correspondence& mine = peer_in(rank_, q);
      sum += mine.ring.written.load(std::memory_order_acquire) +
             peer_in(q, rank_).ring.consumed.load(std::memory_order_acquire);
      for (auto const& flag : mine.mail.flags) sum += flag.load(std::memory_order_acquire);
      for (auto const& letter : mine.mail.letters) sum += letter.number.load(std::memory_order_acquire);
    }
    return sum;
  }

  rank_t rank_;
  inbox_layout layout_;
  std::shared_ptr<registered_memory> registered_;
  std::vector<peer> peers_;
  std::uint64_t seen_ = 0;
};

}  // namespace rondo::inline v0::detail
