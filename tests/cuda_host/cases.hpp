#pragma once

#include <rondo/cuda/all_gather.hpp>
#include <rondo/cuda/broadcast.hpp>
#include <rondo/cuda/folding.hpp>
#include <rondo/cuda/pack.hpp>
#include <rondo/cuda/reduce_scatter.hpp>
#include <rondo/cuda/ring.hpp>
#include <rondo/cuda/scheduled.hpp>
#include <rondo/fold.hpp>
#include <rondo/ops.hpp>

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <gtest/gtest.h>
#include <limits>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

/// What kernels must do, for any world that runs them: threads of this process, or a GPU.
namespace kernel_cases {

using namespace rondo;
using device::fault;

/// A buffer with guard bytes around it, aligned to `offset` elements past 16 bytes.
template <class T>
class buffer {
 public:
  template <class World>
  buffer(World& world, std::size_t count, std::size_t offset = 0) : count_(count) {
    bytes_ = guard + (offset + count) * sizeof(T) + guard;
    memory_ = static_cast<std::byte*>(world.allocate(bytes_));
    std::memset(memory_, mark, bytes_);
    data_ = reinterpret_cast<T*>(memory_ + guard) + offset;
  }

  T* data() const { return data_; }
  std::size_t size() const { return count_; }
  T& operator[](std::size_t i) const { return data_[i]; }

  /// Whether nothing around the elements was written.
  bool intact() const {
    auto const* const first = reinterpret_cast<std::byte const*>(data_);
    auto const* const last = reinterpret_cast<std::byte const*>(data_ + count_);
    for (auto const* p = memory_; p != memory_ + bytes_; ++p)
      if ((p < first || p >= last) && *p != std::byte{mark}) return false;
    return true;
  }

 private:
  static constexpr std::size_t guard = 64;
  static constexpr unsigned char mark = 0xa5;

  std::size_t count_;
  std::size_t bytes_;
  std::byte* memory_;
  T* data_;
};

template <class T>
bool same_bits(T const& a, T const& b) {
  return std::memcmp(&a, &b, sizeof(T)) == 0;
}

/// Something for every type, the hard cases of floats among it.
template <class T>
T sample(std::minstd_rand& random) {
  unsigned const x = static_cast<unsigned>(random());
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(x * 2654435761u);
  } else {
    using limits = std::numeric_limits<T>;
    if (x % 211 == 0) return limits::quiet_NaN();
    if (x % 223 == 0) return limits::infinity();
    if (x % 227 == 0) return limits::denorm_min();
    if (x % 229 == 0) return T(-0.0F);
    return static_cast<T>((static_cast<float>(x % 4001) - 2000.0F) / 701.0F);
  }
}

/// The contributions of all ranks, folded by the library's own code for processors: in the canonical tree, or round the
/// ring for an element of slice `slice`.
template <class Accumulator, class T, class Op>
Accumulator fold_on_host(std::vector<Op> const& ops, std::vector<T> const& x, int slice = nobody) {
  std::vector<Accumulator> wide;
  for (std::size_t r = 0; r < x.size(); ++r) {
    T value = x[r];
    if constexpr (op_traits<Op, T>::prepares)
      rondo::detail::prepare_range<T>(ops[r], reinterpret_cast<std::byte*>(&value),
                                      reinterpret_cast<std::byte const*>(&x[r]), 1);
    wide.push_back(static_cast<Accumulator>(value));
  }
  auto const fold = make_reduction<Accumulator>(ops[0]);
  Accumulator result{};
  auto* const out = reinterpret_cast<std::byte*>(&result);
  auto const at = [&](std::size_t r) { return reinterpret_cast<std::byte const*>(&wide[r]); };
  if (slice == nobody) {
    std::vector<std::byte const*> sources;
    for (std::size_t r = 0; r < x.size(); ++r) sources.push_back(at(r));
    fold.fold_many(fold.op, std::span(&out, 1), sources, 1);
  } else {
    std::size_t const n = x.size();
    result = wide[(static_cast<std::size_t>(slice) + 1) % n];
    for (std::size_t i = 2; i <= n; ++i) fold(out, out, at((static_cast<std::size_t>(slice) + i) % n), 1);
  }
  return result;
}

/// What the epilogue gets for an element, from the library's code for processors.
template <class Accumulator, class T, class Op>
auto value_on_host(std::vector<Op> const& ops, std::vector<T> const& x, int slice = nobody) {
  using V = std::conditional_t<rondo::detail::is_small_float<T>, Accumulator, T>;
  Accumulator const folded = fold_on_host<Accumulator>(ops, x, slice);
  if constexpr (op_traits<Op, T>::finishes) {
    if constexpr (std::is_same_v<V, T>)
      return ops[0].template finish<T>(folded, static_cast<int>(x.size()));
    else
      return V(folded / static_cast<V>(x.size()));
  } else {
    return static_cast<V>(folded);
  }
}

/// The same operation on all ranks, but for those whose factor is a rank's own.
template <class Op>
Op op_of_rank(Op op, int) {
  return op;
}
template <class F>
premul_sum_op<F> op_of_rank(premul_sum_op<F> op, int rank) {
  return {static_cast<F>(op.factor + static_cast<F>(rank))};
}

/// Calls of several sizes, one after the other without a rest, in turns in place and not, aligned and not: what all
/// ranks contribute, and what they must get, whatever the kernel.
template <int N, class T, class Op, class Epilogue, class Out, class Accumulator>
struct all_reduce_calls {
  template <class World>
  all_reduce_calls(World& world, std::vector<std::size_t> const& counts, Op op, Epilogue const& e) : epilogue(e) {
    for (int r = 0; r < N; ++r) ops.push_back(op_of_rank(op, r));
    std::minstd_rand random(static_cast<unsigned>(N));
    for (std::size_t c = 0; c < counts.size(); ++c) {
      ins.emplace_back(), outs.emplace_back(), contributions.emplace_back(counts[c]);
      for (int r = 0; r < N; ++r) {
        ins[c].emplace_back(world, counts[c], c % 3);
        outs[c].emplace_back(world, counts[c], c % 2);
        for (std::size_t i = 0; i < counts[c]; ++i) contributions[c][i].push_back(ins[c].back()[i] = sample<T>(random));
      }
    }
  }

  /// Where rank r wants the results of call c.
  Out* out(std::size_t c, std::size_t r) const {
    if constexpr (std::is_same_v<T, Out>)
      if (c % 4 == 3) return ins[c][r].data();
    return outs[c][r].data();
  }

  /// `around`: contributions were folded round a ring.
  void check(bool around) const {
    for (std::size_t c = 0; c < ins.size(); ++c) {
      std::size_t const count = ins[c][0].size(), pack = device::pack_count<Accumulator>;
      std::size_t const packs = (count + pack - 1) / pack, share = (packs + N - 1) / N;
      for (std::size_t i = 0; i < count; ++i) {
        int const slice = around ? static_cast<int>(i / pack / share) : nobody;
        auto const value = value_on_host<Accumulator>(ops, contributions[c][i], slice);
        auto const expected = static_cast<Out>(epilogue(i, value));
        for (std::size_t r = 0; r < N; ++r)
          ASSERT_TRUE(same_bits(out(c, r)[i], expected))
              << type_name<T>() << " call " << c << " count " << count << " element " << i << " rank " << r;
      }
      for (std::size_t r = 0; r < N; ++r) ASSERT_TRUE(ins[c][r].intact() && outs[c][r].intact()) << "call " << c;
    }
  }

  Epilogue epilogue;
  std::vector<Op> ops;                      // of ranks
  std::vector<std::vector<buffer<T>>> ins;  // by call and rank
  std::vector<std::vector<buffer<Out>>> outs;
  std::vector<std::vector<std::vector<T>>> contributions;  // by call, element and rank
};

template <int N, class T, class Op, class Epilogue, class Out, class Accumulator,
          template <int, class, class, class, class, class> class Kernel>
struct all_reduce_case {
  using kernel = Kernel<N, T, Op, Epilogue, Out, Accumulator>;
  static constexpr bool around = std::is_same_v<kernel, device::ring<N, T, Op, Epilogue, Out, Accumulator>>;

  template <class World>
  static void run(World& world, std::vector<std::size_t> const& counts, Op op, Epilogue const& epilogue) {
    all_reduce_calls<N, T, Op, Epilogue, Out, Accumulator> const calls(world, counts, op, epilogue);
    std::vector<std::vector<kernel>> programs(N);
    for (std::size_t r = 0; r < N; ++r)
      for (std::size_t c = 0; c < counts.size(); ++c)
        programs[r].push_back({world.link(static_cast<int>(r)), calls.ins[c][r].data(), calls.out(c, r), counts[c],
                               calls.ops[r], epilogue});
    world.run(programs);
    for (int r = 0; r < N; ++r) ASSERT_EQ(world.report(r).raised, fault::none) << "rank " << r;
    calls.check(around);
  }
};

/// Blocks of several sizes, one call after the other.
template <int N, class T, class Op, class Epilogue = device::keep, class Out = T,
          class Accumulator = device::accumulator_t<T, Op>>
struct reduce_scatter_case {
  template <class World>
  static void run(World& world, std::vector<std::size_t> const& counts, Op op, Epilogue const& epilogue = {}) {
    using kernel = device::reduce_scatter<N, T, Op, Epilogue, Out, Accumulator>;
    std::vector<std::vector<kernel>> programs(N);
    std::vector<Op> ops;
    for (int r = 0; r < N; ++r) ops.push_back(op_of_rank(op, r));
    std::vector<std::vector<buffer<T>>> ins(counts.size());
    std::vector<std::vector<buffer<Out>>> outs(counts.size());
    std::minstd_rand random(static_cast<unsigned>(N));
    for (std::size_t c = 0; c < counts.size(); ++c)
      for (int r = 0; r < N; ++r) {
        ins[c].emplace_back(world, counts[c] * N, c % 3);
        for (std::size_t i = 0; i < counts[c] * N; ++i) ins[c].back()[i] = sample<T>(random);
        outs[c].emplace_back(world, counts[c], c % 2);
        programs[static_cast<std::size_t>(r)].push_back({world.link(r), ins[c].back().data(), outs[c].back().data(),
                                                         counts[c], ops[static_cast<std::size_t>(r)], epilogue});
      }
    world.run(programs);
    for (std::size_t c = 0; c < counts.size(); ++c)
      for (std::size_t r = 0; r < N; ++r) {
        for (std::size_t i = 0; i < counts[c]; ++i) {
          std::vector<T> x;
          for (std::size_t q = 0; q < N; ++q) x.push_back(ins[c][q][r * counts[c] + i]);
          auto const expected = static_cast<Out>(epilogue(i, value_on_host<Accumulator>(ops, x)));
          ASSERT_TRUE(same_bits(outs[c][r][i], expected)) << "call " << c << " element " << i << " rank " << r;
        }
        ASSERT_TRUE(ins[c][r].intact() && outs[c][r].intact()) << "call " << c;
      }
  }
};

template <int N, class T>
struct all_gather_case {
  template <class World>
  static void run(World& world, std::vector<std::size_t> const& counts) {
    std::vector<std::vector<device::all_gather<N, T>>> programs(N);
    std::vector<std::vector<buffer<T>>> ins(counts.size()), outs(counts.size());
    std::minstd_rand random(static_cast<unsigned>(N));
    for (std::size_t c = 0; c < counts.size(); ++c)
      for (int r = 0; r < N; ++r) {
        ins[c].emplace_back(world, counts[c], c % 3);
        for (std::size_t i = 0; i < counts[c]; ++i) ins[c].back()[i] = sample<T>(random);
        outs[c].emplace_back(world, counts[c] * N, c % 2);
        programs[static_cast<std::size_t>(r)].push_back(
            {world.link(r), ins[c].back().data(), outs[c].back().data(), counts[c]});
      }
    world.run(programs);
    for (std::size_t c = 0; c < counts.size(); ++c)
      for (std::size_t r = 0; r < N; ++r) {
        for (std::size_t q = 0; q < N; ++q)
          for (std::size_t i = 0; i < counts[c]; ++i)
            ASSERT_TRUE(same_bits(outs[c][r][q * counts[c] + i], ins[c][q][i])) << "call " << c << " rank " << r;
        ASSERT_TRUE(outs[c][r].intact()) << "call " << c;
      }
  }
};

template <int N, class T>
struct broadcast_case {
  template <class World>
  static void run(World& world, std::vector<std::size_t> const& counts) {
    std::vector<std::vector<device::broadcast<N, T>>> programs(N);
    std::vector<std::vector<buffer<T>>> data(counts.size());
    std::vector<std::vector<T>> sent(counts.size());
    std::minstd_rand random(static_cast<unsigned>(N));
    for (std::size_t c = 0; c < counts.size(); ++c) {
      int const root = static_cast<int>(c % N);
      for (int r = 0; r < N; ++r) {
        data[c].emplace_back(world, counts[c], c % 3);
        for (std::size_t i = 0; i < counts[c]; ++i) data[c].back()[i] = sample<T>(random);
        if (r == root) sent[c].assign(data[c].back().data(), data[c].back().data() + counts[c]);
        programs[static_cast<std::size_t>(r)].push_back({world.link(r), data[c].back().data(), counts[c], root});
      }
    }
    world.run(programs);
    for (std::size_t c = 0; c < counts.size(); ++c)
      for (std::size_t r = 0; r < N; ++r) {
        for (std::size_t i = 0; i < counts[c]; ++i)
          ASSERT_TRUE(same_bits(data[c][r][i], sent[c][i])) << "call " << c << " element " << i << " rank " << r;
        ASSERT_TRUE(data[c][r].intact()) << "call " << c;
      }
  }
};

/// A schedule that all-reduces, on the device and as the laws of schedules say.
template <int N, class S, class T, class Op>
struct scheduled_case {
  template <class World>
  static void run(World& world, S plan, std::vector<std::size_t> const& counts, Op op) {
    using kernel = device::scheduled<N, S, T, Op>;
    std::vector<std::vector<kernel>> programs(N);
    std::vector<std::vector<buffer<T>>> data(counts.size());
    std::vector<std::vector<std::vector<T>>> before(counts.size());  // by call, rank and element
    std::minstd_rand random(static_cast<unsigned>(N));
    for (std::size_t c = 0; c < counts.size(); ++c)
      for (int r = 0; r < N; ++r) {
        data[c].emplace_back(world, counts[c], c % 3);
        before[c].emplace_back();
        for (std::size_t i = 0; i < counts[c]; ++i) before[c].back().push_back(data[c].back()[i] = sample<T>(random));
        programs[static_cast<std::size_t>(r)].push_back({world.link(r), plan, data[c].back().data(), counts[c], op});
      }
    world.run(programs);
    for (std::size_t c = 0; c < counts.size(); ++c) {
      auto const expected = play(plan, before[c], op);
      for (std::size_t r = 0; r < N; ++r) {
        for (std::size_t i = 0; i < counts[c]; ++i)
          ASSERT_TRUE(same_bits(data[c][r][i], expected[r][i]))
              << S{plan}.rounds() << " rounds, call " << c << " element " << i << " rank " << r;
        ASSERT_TRUE(data[c][r].intact()) << "call " << c;
      }
    }
  }

  /// All ranks, round by round.
  static std::vector<std::vector<T>> play(S plan, std::vector<std::vector<T>> ranks, Op op) {
    auto const fold = make_reduction<T>(op);
    std::size_t const count = ranks[0].size(), pack = device::pack_count<T>;
    auto const chunks = static_cast<std::size_t>(plan.chunks());
    std::size_t const share = ((count + pack - 1) / pack + chunks - 1) / chunks * pack;
    for (int i = 0; i < plan.rounds(); ++i) {
      auto const old = ranks;
      for (int r = 0; r < N; ++r) {
        step const now = plan.at(r, i);
        if (now.from == nobody) continue;
        for (int k = 0; k < now.in.count; ++k) {
          std::size_t const first = static_cast<std::size_t>((now.in.first + k) % plan.chunks()) * share;
          for (std::size_t e = first; e < first + share && e < count; ++e) {
            T const& theirs = old[static_cast<std::size_t>(now.from)][e];
            T& mine = ranks[static_cast<std::size_t>(r)][e];
            auto* const out = reinterpret_cast<std::byte*>(&mine);
            auto const* const in = reinterpret_cast<std::byte const*>(&theirs);
            if (now.how == merge::overwrite) mine = theirs;
            if (now.how == merge::fold) fold(out, out, in, 1);
            if (now.how == merge::fold_front) fold(out, in, out, 1);
          }
        }
        if constexpr (op_traits<Op, T>::finishes)
          if (now.completes)
            for (int k = 0; k < now.in.count; ++k) {
              std::size_t const first = static_cast<std::size_t>((now.in.first + k) % plan.chunks()) * share;
              for (std::size_t e = first; e < first + share && e < count; ++e)
                ranks[static_cast<std::size_t>(r)][e] = op.template finish<T>(ranks[static_cast<std::size_t>(r)][e], N);
            }
      }
    }
    return ranks;
  }
};

}  // namespace kernel_cases
