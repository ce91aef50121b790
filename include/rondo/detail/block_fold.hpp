#pragma once

#include <rondo/detail/epilogue_kernel.hpp>
#include <rondo/fold.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <type_traits>

namespace rondo::inline v0::detail {

/// The canonical fold (see recursive_doubling) of contributions of T in their accumulator, finished: what an epilogue
/// is handed. No value is rounded to T on the way. At most Block elements at a time.
template <class T, class Op, std::size_t Block>
class block_fold {
 public:
  using value = accumulator_t<T>;

  static constexpr bool converts = !std::is_same_v<T, value>;

  /// Bytes of scratch for so many ranks.
  static constexpr std::size_t scratch_bytes(std::size_t ranks) noexcept {
    return converts ? ranks * Block * sizeof(value) : 0;
  }

  /// `count` <= Block elements of each source, of any alignment. The result stays valid until the next call; `sources`
  /// is used up.
  value const* operator()(Op const& op, std::span<std::byte const*> sources, std::size_t count,
                          std::byte* scratch) noexcept {
    if constexpr (converts)
      for (auto& source : sources) {
        convert_range<value, T>(scratch, source, count);
        source = scratch;
        scratch += Block * sizeof(value);
      }
    std::byte* const out = values_.data();
    reduction const fold = make_reduction<value>(op);
    fold.fold_many(fold.op, std::span<std::byte* const>(&out, 1), sources, count);
    if constexpr (op_traits<Op, value>::finishes)
      finish_range<value>(op, out, out, count, static_cast<int>(sources.size()));
    return reinterpret_cast<value const*>(out);
  }

 private:
  alignas(std::max<std::size_t>(64, alignof(value))) std::array<std::byte, Block * sizeof(value)> values_;
};

}  // namespace rondo::inline v0::detail
