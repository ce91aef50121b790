#pragma once

#include <rondo/run/boards.hpp>
#include <rondo/run/mapped_buffers.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

namespace rondo::inline v0::run {

/// How the data of a rank goes to the others.
enum class passage : std::uint64_t {
  windows,    ///< it is copied through windows
  registered  ///< the others address its buffers
};

/// What a letter says about the data of its rank.
struct offer {
  passage how = passage::windows;
  std::uint64_t source = 0, home = 0;  ///< the places of registered buffers
};

/// What all ranks offer in a call, each in its letter: they all come to the same conclusion.
class all_offers {
 public:
  /// All letters of the call are here. `mine` is what this rank's said, of its buffers.
  all_offers(boards const& shared, std::uint64_t call, offer const& mine, std::byte const* source, std::byte* home)
      : all_registered_(mine.how == passage::registered), buffers_(shared.size()) {
    buffers_.set(shared.rank(), source, home);
    auto const& memory = shared.registered();
    for (rank_t q = 0; q < shared.size(); ++q) {
      if (q == shared.rank()) continue;
      offer theirs;
      std::memcpy(&theirs, shared.letter_from(q, call).text.data(), sizeof theirs);
      all_registered_ = all_registered_ && theirs.how == passage::registered;
      if (all_registered_) buffers_.set(q, memory->at(q, theirs.source), memory->at(q, theirs.home));
    }
  }

  bool all_registered() const noexcept { return all_registered_; }

  /// Where the buffers of all ranks are, if all are registered.
  mapped_buffers&& buffers() noexcept { return std::move(buffers_); }

 private:
  bool all_registered_;
  mapped_buffers buffers_;
};

}  // namespace rondo::inline v0::run
