#pragma once

#include <rondo/fingerprint.hpp>
#include <rondo/group.hpp>
#include <rondo/run/buffer.hpp>
#include <rondo/run/marks.hpp>
#include <rondo/run/owned_work.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

namespace rondo::inline v0::run {

struct job;

/// What a job says about its call, but for lists: cheap to begin anew.
struct job_values {
  fingerprint mark;
  arithmetic math;
  bool moves = false;     ///< some chunk has its source elsewhere than its home
  bool echo = false;      ///< the call has a root: see echoes
  bool segmented = true;  ///< every rank knows the sizes of all chunks, so that all cut them alike
  int ranks = 1;
  group::clock::duration patience{};  ///< how long the call may take

  /// The one buffer of calls whose chunks are even parts of it.
  std::byte const* source = nullptr;
  std::byte* home = nullptr;
  std::size_t count = 0;

  /// Turns `results` wide elements at `wide` into the result; null if the result is in place already.
  void (*after)(job const&) = nullptr;
  void const* op = nullptr;
  std::byte const* wide = nullptr;
  std::byte* result = nullptr;
  std::size_t results = 0;
};

/// One call of a collective, its types erased: what to move where, and what to do before and after.
struct job : job_values {
  chunk_list chunks;                 ///< filled by cut() for calls on one buffer, else by the collective
  std::vector<promise> promises;     ///< empty, or one entry per rank
  std::vector<std::uint8_t> merged;  ///< per segment and chunk, if moves: the value has moved from source to home

  /// When patience is over. The clock starts when it is first asked for, so that a call that never waits reads none.
  group::clock::time_point deadline() {
    if (deadline_ == group::clock::time_point{}) deadline_ = group::clock::now() + patience;
    return deadline_;
  }

  owned_work owned;  ///< of calls that have owners; they set all of it

  /// Elements that a rank holds for others, or in a wider type.
  std::vector<std::byte> scratch;

  std::shared_ptr<void const> kept;  ///< the operation of a call that outlives its caller's

  /// As new, but for the memory of the vectors.
  void reset() {
    static_cast<job_values&>(*this) = {};
    chunks.clear();
    promises.clear();
    kept.reset();
    deadline_ = {};
  }

  /// Memory for `bytes` that need no initial value.
  std::byte* reserve(std::size_t bytes) {
    if (scratch.size() < bytes) scratch.resize(bytes);
    return scratch.data();
  }

  /// Cuts the buffer into `n` chunks that begin on cache lines as far as the buffer does.
  void cut(int n) {
    chunks.resize(static_cast<std::size_t>(n));
    std::size_t const grain = math.grain();
    std::size_t const grains = (count + grain - 1) / grain;
    std::size_t first = 0;
    for (std::size_t c = 0; c < chunks.size(); ++c) {
      std::size_t const last = std::min(count, grains * (c + 1) / chunks.size() * grain);
      chunks[c] = {source + first * math.element, home + first * math.element, last - first};
      first = last;
    }
  }

  std::size_t bytes() const noexcept {
    std::size_t n = 0;
    for (chunk const& c : chunks) n += c.count;
    return n * math.element;
  }

  std::size_t largest_chunk() const noexcept {
    std::size_t n = 0;
    for (chunk const& c : chunks) n = std::max(n, c.count);
    return n * math.element;
  }

  /// Makes the result of what the schedule has moved. A rank alone has merged nothing: its own values are the result.
  void land() {
    if (ranks == 1)
      for (chunk const& c : chunks) {
        if (c.count == 0) continue;
        if (c.source != c.home) std::memcpy(c.home, c.source, c.count * math.element);
        if (math.finish) math.finish(math.context, c.home, c.count);
      }
    if (after) after(*this);
  }

 private:
  group::clock::time_point deadline_{};
};

}  // namespace rondo::inline v0::run
