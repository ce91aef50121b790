#include "bootstrap_job.hpp"
#include <rondo/adapters/nccl.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <tuple>

namespace {

using namespace bootstrap_test;

static_assert(ncclBfloat16 == 9 && ncclFloat8e5m2 == 11 && ncclAvg == 4 && ncclMin == 3 && ncclRemoteError == 6);
static_assert(sizeof(ncclUniqueId) == 128 && sizeof(ncclRedOp_t) == 4);

constexpr ncclRedOp_t scaled = ncclNumOps;  // in these tests: an operation of ncclRedOpCreatePreMulSum

void ok(ncclResult_t result, int line = __builtin_LINE()) {
  if (result == ncclSuccess) return;
  ADD_FAILURE_AT(__FILE__, line) << ncclGetErrorString(result) << ": " << ncclGetLastError(nullptr);
}

void expect_said(std::string const& part) {
  std::string const said = ncclGetLastError(nullptr);
  EXPECT_NE(said.find(part), std::string::npos) << said;
  EXPECT_EQ(said.rfind("rondo: "), 0U) << said;
}

/// Ends the process of a test that hangs.
class nccl : public testing::Test {
 protected:
  void SetUp() override { ::alarm(60); }
  void TearDown() override { ::alarm(0); }
};

ncclUniqueId new_id() {
  ncclUniqueId id;
  ok(ncclGetUniqueId(&id));
  return id;
}

/// Runs body(comm, rank) for each rank of a communicator, on a thread of its own.
template <class Body>
void ranks(int n, Body const& body) {
  auto const id = new_id();
  expect_none(on_threads(n, [&](int r) {
    ncclComm_t comm = nullptr;
    ASSERT_EQ(ncclCommInitRank(&comm, n, id, r), ncclSuccess) << ncclGetLastError(nullptr);
    body(comm, r);
    ok(ncclCommDestroy(comm));
  }));
}

/// Runs body(comms) for all ranks of a communicator on this thread.
template <class Body>
void one_thread(int n, Body const& body) {
  std::vector<ncclComm_t> comms(static_cast<std::size_t>(n));
  ASSERT_EQ(ncclCommInitAll(comms.data(), n, nullptr), ncclSuccess) << ncclGetLastError(nullptr);
  body(comms);
  for (auto const c : comms) ok(ncclCommDestroy(c));
}

/// Elements between bytes that no call may touch.
template <class T>
class guarded {
 public:
  explicit guarded(std::size_t count) : bytes_(count * sizeof(T) + 2 * margin, mark), count_(count) {}
  ~guarded() {
    EXPECT_TRUE(std::all_of(bytes_.begin(), bytes_.begin() + margin, [](auto b) { return b == mark; }));
    EXPECT_TRUE(std::all_of(bytes_.end() - margin, bytes_.end(), [](auto b) { return b == mark; }));
  }
  T* data() { return reinterpret_cast<T*>(bytes_.data() + margin); }
  std::span<T> span() { return {data(), count_}; }

 private:
  static constexpr std::ptrdiff_t margin = 32;
  static constexpr unsigned char mark = 0xa5;
  std::vector<unsigned char> bytes_;
  std::size_t count_;
};

/// What a rank contributes: small enough for sums and products to be exact in 8-bit floats.
double contribution(int rank, std::size_t i, ncclRedOp_t op, bool is_signed) {
  auto const n = rank * 5 + static_cast<int>(i) * 3;
  if (op == ncclProd) return (n % 2 == 0 ? 2 : 1) * (is_signed && n % 7 == 0 ? -1 : 1);
  return is_signed ? n % 5 - 2 : n % 3;
}

/// The factor of a rank for `scaled`.
int factor_of(int rank) { return 1 + rank % 2; }

/// An element type, seen from a test that is compiled once for all of them.
struct element_type {
  ncclDataType_t number;
  std::size_t bytes;
  bool is_signed, is_integer;
  void (*store)(void* to, double value);
  double (*load)(void const* from);

  /// What becomes of a value that is stored.
  double rounded(double value) const {
    std::array<unsigned char, 8> place{};
    store(place.data(), value);
    return load(place.data());
  }
};

template <class T>
element_type describe(ncclDataType_t number) {
  using wide = std::conditional_t<rondo::detail::is_small_float<T>, float, T>;
  return {number,
          sizeof(T),
          !std::is_unsigned_v<T>,
          std::is_integral_v<T>,
          [](void* to, double value) {
            T const x = static_cast<T>(static_cast<wide>(value));
            std::memcpy(to, &x, sizeof x);
          },
          [](void const* from) {
            T x;
            std::memcpy(&x, from, sizeof x);
            return static_cast<double>(static_cast<wide>(x));
          }};
}

element_type describe(int number) {
  auto const type = static_cast<ncclDataType_t>(number);
  return rondo::nccl::with_type(type, [&]<class T>(std::type_identity<T>) { return describe<T>(type); });
}

/// The reduction, one rank after the other in double.
double expected(element_type const& type, int n, std::size_t i, ncclRedOp_t op) {
  double total = op == scaled ? 0 : contribution(0, i, op, type.is_signed);
  for (int r = op == scaled ? 0 : 1; r < n; ++r) {
    double const x = contribution(r, i, op, type.is_signed);
    switch (static_cast<int>(op)) {
      case ncclProd: total *= x; break;
      case ncclMax: total = std::max(total, x); break;
      case ncclMin: total = std::min(total, x); break;
      case scaled: total += x * factor_of(r); break;
      default: total += x;
    }
  }
  if (op == ncclAvg) total = type.is_integer ? std::trunc(total / n) : total / n;
  return type.rounded(total);
}

/// Every reducing call with one type and operation, in place and out of place, for blocks of `count`.
struct reductions {
  ncclComm_t comm;
  int rank, n;
  element_type type;
  ncclRedOp_t op, given;

  using buffer = guarded<unsigned char>;

  std::vector<unsigned char> input(std::size_t count) const {
    std::vector<unsigned char> values(count * type.bytes);
    for (std::size_t i = 0; i < count; ++i)
      type.store(values.data() + i * type.bytes, contribution(rank, i, op, type.is_signed));
    return values;
  }
  void expect(unsigned char const* got, std::size_t count, std::size_t first, char const* call) const {
    for (std::size_t i = 0; i < count; ++i)
      ASSERT_EQ(type.load(got + i * type.bytes), expected(type, n, first + i, op))
          << call << " of type " << type.number << " with " << op << ", element " << first + i << " of rank " << rank;
  }

  void all_reduce(std::size_t count) const {
    auto const in = input(count);
    auto const kept = in;
    buffer out(in.size());
    ok(ncclAllReduce(in.data(), out.data(), count, type.number, given, comm, nullptr));
    expect(out.data(), count, 0, "ncclAllReduce");
    EXPECT_EQ(in, kept);
    std::copy(in.begin(), in.end(), out.data());
    ok(ncclAllReduce(out.data(), out.data(), count, type.number, given, comm, nullptr));
    expect(out.data(), count, 0, "ncclAllReduce in place");
  }

  void reduce(std::size_t count) const {
    int const root = n - 1;
    auto const in = input(count);
    buffer out(rank == root ? in.size() : 0), both(in.size());
    ok(ncclReduce(in.data(), out.data(), count, type.number, given, root, comm, nullptr));
    if (rank == root) expect(out.data(), count, 0, "ncclReduce");
    std::copy(in.begin(), in.end(), both.data());
    ok(ncclReduce(both.data(), both.data(), count, type.number, given, root, comm, nullptr));
    if (rank == root) expect(both.data(), count, 0, "ncclReduce in place");
  }

  void reduce_scatter(std::size_t count) const {
    auto const in = input(count * static_cast<std::size_t>(n));
    auto const first = count * static_cast<std::size_t>(rank);
    buffer out(count * type.bytes), both(in.size());
    ok(ncclReduceScatter(in.data(), out.data(), count, type.number, given, comm, nullptr));
    expect(out.data(), count, first, "ncclReduceScatter");
    std::copy(in.begin(), in.end(), both.data());
    auto* const block = both.data() + first * type.bytes;
    ok(ncclReduceScatter(both.data(), block, count, type.number, given, comm, nullptr));
    expect(block, count, first, "ncclReduceScatter in place");
  }
};

void reduce_every_type(ncclComm_t comm, int rank, int n) {
  for (int t = 0; t < ncclNumTypes; ++t) {
    auto const type = describe(t);
    for (int op = ncclSum; op <= scaled; ++op) {
      reductions calls{comm, rank, n, type, static_cast<ncclRedOp_t>(op), static_cast<ncclRedOp_t>(op)};
      std::array<unsigned char, 8> factor{};
      type.store(factor.data(), factor_of(rank));
      if (op == scaled)
        ok(ncclRedOpCreatePreMulSum(&calls.given, factor.data(), type.number, ncclScalarHostImmediate, comm));
      for (auto const count : {std::size_t{1}, std::size_t{37}}) {
        calls.all_reduce(count);
        calls.reduce(count);
        calls.reduce_scatter(count);
      }
      if (op == scaled) ok(ncclRedOpDestroy(calls.given, comm));
    }
  }
}

TEST_F(nccl, reductions_of_every_type_with_every_operation) {
  for (int const n : {1, 2, 3, 5}) ranks(n, [&](ncclComm_t comm, int r) { reduce_every_type(comm, r, n); });
}

TEST_F(nccl, what_connects_the_ranks_can_be_forced) {
  ::setenv("RONDO_TRANSPORTS", "tcp", 1);
  ranks(3, [](ncclComm_t comm, int r) { reduce_every_type(comm, r, 3); });
  ::setenv("RONDO_TRANSPORTS", "pigeons", 1);
  auto const id = new_id();
  expect_none(on_threads(2, [&](int r) {
    ncclComm_t comm = nullptr;
    EXPECT_EQ(ncclCommInitRank(&comm, 2, id, r), ncclSystemError);
    expect_said("pigeons");
  }));
  ::unsetenv("RONDO_TRANSPORTS");
}

TEST_F(nccl, a_scalar_that_stays_in_memory_is_read_by_every_call) {
  ranks(2, [](ncclComm_t comm, int r) {
    float factor = 2;
    ncclRedOp_t op;
    ok(ncclRedOpCreatePreMulSum(&op, &factor, ncclFloat, ncclScalarDevice, comm));
    for (float const f : {2.F, 3.F}) {
      factor = f;
      float x = static_cast<float>(r + 1);
      ok(ncclAllReduce(&x, &x, 1, ncclFloat, op, comm, nullptr));
      EXPECT_EQ(x, 3 * f);
    }
    double y = 1;
    EXPECT_EQ(ncclAllReduce(&y, &y, 1, ncclDouble, op, comm, nullptr), ncclInvalidArgument);
    expect_said("for every type");
    ok(ncclRedOpDestroy(op, comm));
    EXPECT_EQ(ncclAllReduce(&factor, &factor, 1, ncclFloat, op, comm, nullptr), ncclInvalidArgument);
    EXPECT_EQ(ncclRedOpDestroy(op, comm), ncclInvalidArgument);
    EXPECT_EQ(ncclRedOpDestroy(ncclSum, comm), ncclInvalidArgument);
  });
}

/// Bytes that differ between ranks and places.
std::vector<unsigned char> pattern(int rank, std::size_t bytes) {
  std::vector<unsigned char> values(bytes);
  for (std::size_t i = 0; i < bytes; ++i)
    values[i] = static_cast<unsigned char>(i * 7 + static_cast<unsigned>(rank) * 31);
  return values;
}

void move_every_type(ncclComm_t comm, int rank, int n) {
  auto const all = static_cast<std::size_t>(n), self = static_cast<std::size_t>(rank);
  for (int t = 0; t < ncclNumTypes; ++t) {
    auto const type = static_cast<ncclDataType_t>(t);
    std::size_t const count = 13, bytes = count * rondo::nccl::size_of(type);
    auto const mine = pattern(rank, bytes);
    std::vector<unsigned char> gathered;
    for (int q = 0; q < n; ++q) {
      auto const theirs = pattern(q, bytes);
      gathered.insert(gathered.end(), theirs.begin(), theirs.end());
    }
    guarded<unsigned char> out(bytes * all), in_place(bytes * all);
    ok(ncclAllGather(mine.data(), out.data(), count, type, comm, nullptr));
    EXPECT_EQ(std::memcmp(out.data(), gathered.data(), gathered.size()), 0);
    std::copy(mine.begin(), mine.end(), in_place.data() + bytes * self);
    ok(ncclAllGather(in_place.data() + bytes * self, in_place.data(), count, type, comm, nullptr));
    EXPECT_EQ(std::memcmp(in_place.data(), gathered.data(), gathered.size()), 0);

    for (int root = 0; root < n; ++root) {
      auto const wanted = pattern(root, bytes);
      guarded<unsigned char> to(bytes), both(bytes);
      auto const from = mine;
      ok(ncclBroadcast(rank == root ? from.data() : nullptr, to.data(), count, type, root, comm, nullptr));
      EXPECT_EQ(std::memcmp(to.data(), wanted.data(), bytes), 0);
      EXPECT_EQ(from, mine);
      std::copy(mine.begin(), mine.end(), both.data());
      ok(ncclBcast(both.data(), count, type, root, comm, nullptr));
      EXPECT_EQ(std::memcmp(both.data(), wanted.data(), bytes), 0);
    }

    if (n == 1) continue;
    guarded<unsigned char> received(bytes);
    if (rank == 0) ok(ncclSend(mine.data(), count, type, n - 1, comm, nullptr));
    if (rank == n - 1) {
      ok(ncclRecv(received.data(), count, type, 0, comm, nullptr));
      EXPECT_EQ(std::memcmp(received.data(), pattern(0, bytes).data(), bytes), 0);
    }
  }
}

TEST_F(nccl, every_type_is_moved) {
  for (int const n : {1, 2, 3, 5}) ranks(n, [&](ncclComm_t comm, int r) { move_every_type(comm, r, n); });
}

TEST_F(nccl, nothing_is_a_count_too) {
  ranks(3, [](ncclComm_t comm, int r) {
    ok(ncclAllReduce(nullptr, nullptr, 0, ncclFloat, ncclSum, comm, nullptr));
    ok(ncclAllGather(nullptr, nullptr, 0, ncclInt8, comm, nullptr));
    ok(ncclReduceScatter(nullptr, nullptr, 0, ncclInt8, ncclMax, comm, nullptr));
    ok(ncclBroadcast(nullptr, nullptr, 0, ncclInt8, 1, comm, nullptr));
    ok(ncclReduce(nullptr, nullptr, 0, ncclInt8, ncclSum, 1, comm, nullptr));
    ok(ncclGroupStart());
    ok(ncclSend(nullptr, 0, ncclInt8, (r + 1) % 3, comm, nullptr));
    ok(ncclRecv(nullptr, 0, ncclInt8, (r + 2) % 3, comm, nullptr));
    ok(ncclGroupEnd());
    ok(ncclGroupStart());
    ok(ncclGroupEnd());
  });
}

constexpr std::size_t large = 1U << 20U;  // elements: more than any stream holds

TEST_F(nccl, a_ring_of_sends_and_receives_in_a_group_does_not_deadlock) {
  for (int const n : {2, 3, 5})
    ranks(n, [&](ncclComm_t comm, int r) {
      std::vector<float> const out(large, static_cast<float>(r));
      std::vector<float> in(large);
      ok(ncclGroupStart());
      ok(ncclSend(out.data(), large, ncclFloat, (r + 1) % n, comm, nullptr));
      ok(ncclRecv(in.data(), large, ncclFloat, (r + n - 1) % n, comm, nullptr));
      ok(ncclGroupEnd());
      EXPECT_EQ(in, std::vector<float>(large, static_cast<float>((r + n - 1) % n)));
    });
}

TEST_F(nccl, all_to_all_by_sends_includes_the_rank_itself) {
  for (int const n : {1, 3, 4})
    ranks(n, [&](ncclComm_t comm, int r) {
      auto const all = static_cast<std::size_t>(n);
      std::vector<std::int32_t> in(3 * all), out(3 * all, -1);
      for (std::size_t i = 0; i < in.size(); ++i) in[i] = r * 100 + static_cast<int>(i);
      ok(ncclGroupStart());
      for (int q = 0; q < n; ++q) {
        ok(ncclRecv(&out[static_cast<std::size_t>(q) * 3], 3, ncclInt32, q, comm, nullptr));
        ok(ncclSend(&in[static_cast<std::size_t>(q) * 3], 3, ncclInt32, q, comm, nullptr));
      }
      ok(ncclGroupEnd());
      for (int q = 0; q < n; ++q)
        for (int k = 0; k < 3; ++k) EXPECT_EQ(out[static_cast<std::size_t>(q * 3 + k)], q * 100 + r * 3 + k);
    });
}

TEST_F(nccl, ranks_of_a_group_need_not_agree_where_messages_stand) {
  ranks(2, [](ncclComm_t comm, int r) {
    std::vector<float> message(large, 7), sum(large, static_cast<float>(r));
    ok(ncclGroupStart());
    if (r == 0) ok(ncclSend(message.data(), large, ncclFloat, 1, comm, nullptr));
    ok(ncclGroupStart());
    ok(ncclAllReduce(sum.data(), sum.data(), large, ncclFloat, ncclSum, comm, nullptr));
    ok(ncclGroupEnd());
    EXPECT_EQ(sum[0], static_cast<float>(r));  // the outer group has not ended
    if (r == 1) ok(ncclRecv(message.data(), large, ncclFloat, 0, comm, nullptr));
    ok(ncclGroupEnd());
    EXPECT_EQ(sum, std::vector<float>(large, 1));
    EXPECT_EQ(message, std::vector<float>(large, 7));
  });
}

TEST_F(nccl, one_thread_uses_several_ranks_in_groups) {
  one_thread(4, [](std::vector<ncclComm_t> const& comms) {
    std::vector<std::vector<double>> sums, received(4, std::vector<double>(large));
    for (int r = 0; r < 4; ++r) sums.emplace_back(large, r);
    ok(ncclGroupStart());
    for (std::size_t r = 0; r < 4; ++r)
      ok(ncclAllReduce(sums[r].data(), sums[r].data(), large, ncclDouble, ncclSum, comms[r], nullptr));
    ok(ncclGroupEnd());
    for (auto const& s : sums) EXPECT_EQ(s, std::vector<double>(large, 6));
    ok(ncclGroupStart());
    for (std::size_t r = 0; r < 4; ++r) {
      sums[r].assign(large, static_cast<double>(r));
      ok(ncclSend(sums[r].data(), large, ncclDouble, static_cast<int>(r + 1) % 4, comms[r], nullptr));
      ok(ncclRecv(received[r].data(), large, ncclDouble, static_cast<int>(r + 3) % 4, comms[r], nullptr));
    }
    ok(ncclGroupEnd());
    for (std::size_t r = 0; r < 4; ++r) EXPECT_EQ(received[r], sums[(r + 3) % 4]);
  });
}

TEST_F(nccl, one_thread_makes_and_splits_several_ranks_in_groups) {
  auto const id = new_id();
  std::vector<ncclComm_t> comms(3), halves(3);
  ok(ncclGroupStart());
  for (int r = 0; r < 3; ++r) ok(ncclCommInitRank(&comms[static_cast<std::size_t>(r)], 3, id, r));
  EXPECT_EQ(comms[0], nullptr);
  ok(ncclGroupEnd());
  ok(ncclGroupStart());
  for (std::size_t r = 0; r < 3; ++r) ok(ncclCommSplit(comms[r], r == 2, 0, &halves[r], nullptr));
  ok(ncclGroupEnd());
  int counts[2]{};
  ok(ncclCommCount(halves[0], &counts[0]));
  ok(ncclCommCount(halves[2], &counts[1]));
  EXPECT_EQ(counts[0], 2);
  EXPECT_EQ(counts[1], 1);
  for (auto const& list : {comms, halves})
    for (auto const c : list) ok(ncclCommDestroy(c));
}

TEST_F(nccl, ranks_know_who_they_are) {
  ranks(3, [](ncclComm_t comm, int r) {
    int count = 0, rank = -1, device = -1;
    ok(ncclCommCount(comm, &count));
    ok(ncclCommUserRank(comm, &rank));
    ok(ncclCommCuDevice(comm, &device));
    EXPECT_EQ(std::tuple(count, rank, device), std::tuple(3, r, 0));
    EXPECT_EQ(ncclCommCount(comm, nullptr), ncclInvalidArgument);
  });
  int const list[]{4, 2};
  ncclComm_t comms[2];
  ok(ncclCommInitAll(comms, 2, list));
  int device = 0;
  ok(ncclCommCuDevice(comms[1], &device));
  EXPECT_EQ(device, 2);
  for (auto const c : comms) ok(ncclCommDestroy(c));
}

TEST_F(nccl, split_orders_ranks_by_key_and_leaves_out_who_has_no_color) {
  ranks(5, [](ncclComm_t comm, int r) {
    ncclComm_t part = comm;
    ok(ncclCommSplit(comm, r == 4 ? NCCL_SPLIT_NOCOLOR : r % 2, -r, &part, nullptr));
    EXPECT_EQ(part == nullptr, r == 4);
    if (!part) return;
    int rank = -1;
    ok(ncclCommUserRank(part, &rank));
    EXPECT_EQ(rank, r < 2 ? 1 : 0);
    int sum = r;
    ok(ncclAllReduce(&sum, &sum, 1, ncclInt, ncclSum, part, nullptr));
    EXPECT_EQ(sum, r % 2 == 0 ? 2 : 4);
    ok(ncclCommDestroy(part));
  });
}

TEST_F(nccl, configurations_are_accepted_if_they_were_begun) {
  auto const id = new_id();
  ncclComm_t comm;
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  ok(ncclCommInitRankConfig(&comm, 1, id, 0, &config));
  ok(ncclCommDestroy(comm));
  ncclUniqueId scalable[]{new_id(), new_id()};
  ok(ncclCommInitRankScalable(&comm, 1, 0, 2, scalable, nullptr));
  ok(ncclCommDestroy(comm));
  config.magic = 0;
  EXPECT_EQ(ncclCommInitRankConfig(&comm, 1, id, 0, &config), ncclInvalidArgument);
  expect_said("NCCL_CONFIG_INITIALIZER");
}

TEST_F(nccl, wrong_arguments_are_refused_and_change_nothing) {
  ranks(2, [](ncclComm_t comm, int r) {
    int x = 1, y = 0;
    auto const sum = [&](ncclComm_t c, ncclDataType_t type, ncclRedOp_t op) {
      return ncclAllReduce(&x, &y, 1, type, op, c, nullptr);
    };
    EXPECT_EQ(sum(nullptr, ncclInt, ncclSum), ncclInvalidArgument);
    expect_said("NULL");
    EXPECT_EQ(sum(comm, ncclNumTypes, ncclSum), ncclInvalidArgument);
    expect_said("ncclDataType_t 12");
    EXPECT_EQ(sum(comm, ncclInt, ncclNumOps), ncclInvalidArgument);
    EXPECT_EQ(sum(comm, ncclInt, ncclMaxRedOp), ncclInvalidArgument);
    EXPECT_EQ(ncclReduce(&x, &y, 1, ncclInt, ncclSum, 2, comm, nullptr), ncclInvalidArgument);
    expect_said("no root 2 among 2");
    EXPECT_EQ(ncclBcast(&x, 1, ncclInt, -1, comm, nullptr), ncclInvalidArgument);
    EXPECT_EQ(ncclSend(&x, 1, ncclInt, 2, comm, nullptr), ncclInvalidArgument);
    expect_said("no rank 2 among 2");
    EXPECT_EQ(ncclAllReduce(nullptr, &y, 1, ncclInt, ncclSum, comm, nullptr), ncclInvalidArgument);
    expect_said("buffer is NULL");
    EXPECT_EQ(ncclAllReduce(&x, &y, static_cast<std::size_t>(-1), ncclInt, ncclSum, comm, nullptr),
              ncclInvalidArgument);
    expect_said("count");
    std::vector<int> overlap(8);
    EXPECT_EQ(ncclAllReduce(overlap.data(), overlap.data() + 1, 4, ncclInt, ncclSum, comm, nullptr),
              ncclInvalidArgument);
    expect_said("overlap");
    EXPECT_EQ(ncclSend(&x, 1, ncclInt, r, comm, nullptr), ncclInvalidUsage);
    expect_said("one group");
    EXPECT_EQ(ncclCommSplit(comm, -2, 0, &comm, nullptr), ncclInvalidArgument);
    EXPECT_EQ(y, 0);
    ok(sum(comm, ncclInt, ncclSum));
    EXPECT_EQ(y, 2);
    ncclResult_t health = ncclInternalError;
    ok(ncclCommGetAsyncError(comm, &health));
    EXPECT_EQ(health, ncclSuccess);
  });
}

TEST_F(nccl, a_refused_call_spoils_its_group) {
  ranks(2, [](ncclComm_t comm, int r) {
    int x = 1;
    ok(ncclGroupStart());
    ok(ncclAllReduce(&x, &x, 1, ncclInt, ncclSum, comm, nullptr));
    EXPECT_EQ(ncclSend(&x, 1, ncclInt, 7, comm, nullptr), ncclInvalidArgument);
    EXPECT_EQ(ncclGroupEnd(), ncclInvalidArgument);
    expect_said("no rank 7");
    EXPECT_EQ(x, 1);
    ok(ncclGroupStart());
    ok(ncclSend(&x, 1, ncclInt, r, comm, nullptr));
    EXPECT_EQ(ncclGroupEnd(), ncclInvalidUsage);
    EXPECT_EQ(ncclGroupEnd(), ncclInvalidUsage);
    expect_said("without ncclGroupStart");
    ok(ncclAllReduce(&x, &x, 1, ncclInt, ncclSum, comm, nullptr));
    EXPECT_EQ(x, 2);
  });
}

TEST_F(nccl, what_was_destroyed_is_always_refused) {
  std::vector<ncclComm_t> old(2);
  ok(ncclCommInitAll(old.data(), 2, nullptr));
  for (auto const c : old) ok(ncclCommDestroy(c));
  one_thread(2, [&](std::vector<ncclComm_t> const&) {
    int x = 1;
    for (auto const c : old) {
      EXPECT_EQ(ncclAllReduce(&x, &x, 1, ncclInt, ncclSum, c, nullptr), ncclInvalidArgument);
      expect_said("destroyed");
      EXPECT_EQ(ncclCommDestroy(c), ncclInvalidArgument);
      EXPECT_EQ(ncclCommAbort(c), ncclInvalidArgument);
    }
  });
}

TEST_F(nccl, a_finalized_communicator_takes_no_calls) {
  one_thread(1, [](std::vector<ncclComm_t> const& comms) {
    int x = 1;
    ok(ncclAllReduce(&x, &x, 1, ncclInt, ncclSum, comms[0], nullptr));
    ok(ncclCommFinalize(comms[0]));
    EXPECT_EQ(ncclAllReduce(&x, &x, 1, ncclInt, ncclSum, comms[0], nullptr), ncclInvalidUsage);
    expect_said("finalized");
  });
}

TEST_F(nccl, what_is_not_supported_says_so) {
  EXPECT_EQ(ncclCommShrink(nullptr, nullptr, 0, nullptr, nullptr, NCCL_SHRINK_DEFAULT), ncclInvalidUsage);
  expect_said("ncclCommSplit");
  EXPECT_EQ(ncclGroupSimulateEnd(nullptr), ncclInvalidUsage);
  expect_said("rondo simulate");
}

TEST_F(nccl, memory_can_be_asked_for_and_registered) {
  one_thread(1, [](std::vector<ncclComm_t> const& comms) {
    void *memory = nullptr, *handle = nullptr;
    ok(ncclMemAlloc(&memory, 5000));
    std::memset(memory, 1, 5000);
    ok(ncclCommRegister(comms[0], memory, 5000, &handle));
    ok(ncclCommDeregister(comms[0], handle));
    ncclWindow_t window = reinterpret_cast<ncclWindow_t>(memory);
    ok(ncclCommWindowRegister(comms[0], memory, 5000, &window, NCCL_WIN_COLL_SYMMETRIC));
    EXPECT_EQ(window, nullptr);
    ok(ncclCommWindowDeregister(comms[0], window));
    ok(ncclMemFree(memory));
  });
  int version = 0;
  ok(ncclGetVersion(&version));
  EXPECT_EQ(version, NCCL_VERSION(2, 27, 5));
  for (int code = 0; code < ncclNumResults; ++code)
    EXPECT_GT(std::strlen(ncclGetErrorString(static_cast<ncclResult_t>(code))), 5U);
}

TEST_F(nccl, ranks_that_call_different_things_all_learn_it) {
  ranks(2, [](ncclComm_t comm, int r) {
    std::vector<float> data(8);
    EXPECT_EQ(ncclAllReduce(data.data(), data.data(), r == 0 ? 4 : 5, ncclFloat, ncclSum, comm, nullptr),
              ncclInvalidUsage);
    expect_said("rank 0 called");
    expect_said("rank 1 called");
    ncclResult_t health = ncclSuccess;
    ok(ncclCommGetAsyncError(comm, &health));
    EXPECT_EQ(health, ncclInvalidUsage);
    EXPECT_NE(std::string(ncclGetLastError(comm)), "");
    EXPECT_EQ(ncclAllReduce(data.data(), data.data(), 1, ncclFloat, ncclSum, comm, nullptr), ncclInvalidUsage);
  });
}

TEST_F(nccl, an_id_is_for_ranks_that_agree_about_their_number) {
  auto const id = new_id();
  std::atomic<int> refused{0};
  expect_none(on_threads(2, [&](int r) {
    ncclComm_t comm = nullptr;
    EXPECT_EQ(ncclCommInitRank(&comm, r == 0 ? 2 : 3, id, r), ncclSystemError);
    expect_said("the same nranks");
    EXPECT_EQ(comm, nullptr);
    ++refused;
  }));
  EXPECT_EQ(refused, 2);
  auto const late = clock::now();
  ncclComm_t third = nullptr;
  EXPECT_EQ(ncclCommInitRank(&third, 2, id, 1), ncclSystemError);
  expect_said("the same nranks");
  EXPECT_LT(seconds_since(late), 5);
  ncclComm_t comm = nullptr;
  EXPECT_EQ(ncclCommInitRank(&comm, 2, ncclUniqueId{}, 0), ncclInvalidArgument);
  expect_said("128 bytes");
  EXPECT_EQ(ncclCommInitRank(&comm, 2, id, 2), ncclInvalidArgument);
}

TEST_F(nccl, an_aborted_rank_frees_the_others) {
  auto const id = new_id();
  expect_none(on_threads(3, [&](int r) {
    ncclComm_t comm = nullptr;
    ASSERT_EQ(ncclCommInitRank(&comm, 3, id, r), ncclSuccess) << ncclGetLastError(nullptr);
    if (r == 1) {
      std::this_thread::sleep_for(100ms);
      ok(ncclCommAbort(comm));
      return;
    }
    std::vector<float> data(large);
    auto const start = clock::now();
    EXPECT_EQ(ncclAllReduce(data.data(), data.data(), large, ncclFloat, ncclSum, comm, nullptr), ncclRemoteError);
    EXPECT_LT(seconds_since(start), 5);
    expect_said("rank 1 aborted");
    ok(ncclCommDestroy(comm));
  }));
}

TEST_F(nccl, a_thread_can_abort_the_call_of_another_one) {
  ranks(2, [](ncclComm_t comm, int r) {
    ncclComm_t part = nullptr;
    ok(ncclCommSplit(comm, 0, r, &part, nullptr));
    if (r == 1) {
      float x;
      EXPECT_EQ(ncclRecv(&x, 1, ncclFloat, 0, part, nullptr), ncclRemoteError);
      ok(ncclCommDestroy(part));
      return;
    }
    std::thread other([&] {
      std::this_thread::sleep_for(100ms);
      ok(ncclCommAbort(part));
    });
    float x;
    EXPECT_EQ(ncclRecv(&x, 1, ncclFloat, 1, part, nullptr), ncclRemoteError);
    expect_said("rank 0 aborted");
    other.join();
  });
}

TEST_F(nccl, a_rank_that_does_not_come_is_named_at_the_deadline) {
  ::setenv("RONDO_NCCL_DEADLINE", "1", 1);
  ranks(2, [](ncclComm_t comm, int r) {
    std::vector<float> data(4);
    if (r == 1) return std::this_thread::sleep_for(1500ms);
    EXPECT_EQ(ncclAllReduce(data.data(), data.data(), 4, ncclFloat, ncclSum, comm, nullptr), ncclTimeout);
    expect_said("rank 1");
  });
  auto const id = new_id();
  ncclComm_t comm = nullptr;
  EXPECT_EQ(ncclCommInitRank(&comm, 2, id, 1), ncclSystemError);
  expect_said("rank 0 did not call ncclCommInitRank in time");
  ::setenv("RONDO_NCCL_DEADLINE", "soon", 1);
  EXPECT_EQ(ncclCommInitRank(&comm, 2, id, 1), ncclInvalidArgument);
  expect_said("RONDO_NCCL_DEADLINE");
  ::unsetenv("RONDO_NCCL_DEADLINE");
}

/// Processes that have an id of this one, which is no rank itself. Returns how they ended.
template <class Body>
std::vector<int> processes(int n, Body const& body) {
  auto const id = new_id();
  std::vector<process> all;
  for (int r = 0; r < n; ++r)
    all.emplace_back([&, r] {
      ::alarm(50);
      ncclComm_t comm = nullptr;
      if (ncclCommInitRank(&comm, n, id, r) != ncclSuccess) throw std::runtime_error(ncclGetLastError(nullptr));
      return body(comm, r);
    });
  std::vector<int> ends;
  for (auto& p : all) ends.push_back(p.wait());
  return ends;
}

TEST_F(nccl, who_was_killed_is_named) {
  for (int const victim : {0, 2}) {
    auto const ends = processes(3, [&](ncclComm_t comm, int r) {
      std::vector<float> data(1000);
      for (int i = 0;; ++i) {
        auto const code = ncclAllReduce(data.data(), data.data(), data.size(), ncclFloat, ncclSum, comm, nullptr);
        std::string const said = ncclGetLastError(comm);
        if (code != ncclSuccess) {
          ncclResult_t health = ncclSuccess;
          (void)ncclCommGetAsyncError(comm, &health);
          bool const named = said.find("rank " + std::to_string(victim)) != said.npos;
          return code == ncclRemoteError && health == ncclRemoteError && named ? 0 : 1;
        }
        if (r == victim && i == 50) ::kill(::getpid(), SIGKILL);
      }
    });
    for (int r = 0; r < 3; ++r) EXPECT_EQ(ends[static_cast<std::size_t>(r)], r == victim ? -SIGKILL : 0);
  }
}

TEST_F(nccl, a_rank_that_dies_before_all_have_met_is_named) {
  auto const id = new_id();
  process victim([&] {
    ncclComm_t comm = nullptr;
    return static_cast<int>(ncclCommInitRank(&comm, 3, id, 2));
  });
  std::thread killer([&] {
    std::this_thread::sleep_for(200ms);
    victim.send(SIGKILL);
  });
  ncclComm_t comm = nullptr;
  EXPECT_EQ(ncclCommInitRank(&comm, 3, id, 0), ncclSystemError);
  expect_said("rank 2 (pid ");
  expect_said("left before all ranks had met");
  killer.join();
}

TEST_F(nccl, an_id_whose_process_has_ended_leads_nowhere) {
  ncclUniqueId id{};
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  process maker([&] { return ncclGetUniqueId(&id) == ncclSuccess && ::write(ends[1], &id, sizeof id) > 0 ? 0 : 1; });
  EXPECT_EQ(maker.wait(), 0);
  ASSERT_EQ(::read(ends[0], &id, sizeof id), static_cast<ssize_t>(sizeof id));
  ::setenv("RONDO_NCCL_DEADLINE", "1", 1);
  ncclComm_t comm = nullptr;
  EXPECT_EQ(ncclCommInitRank(&comm, 2, id, 0), ncclSystemError);
  ::unsetenv("RONDO_NCCL_DEADLINE");
  expect_said("the process that made the id (has it ended");
}

TEST_F(nccl, a_communicator_that_was_never_destroyed_is_left_in_good_order) {
  auto const ends = processes(3, [](ncclComm_t comm, int r) -> int {
    std::vector<float> data(large, 1);
    for (int i = 0; i < 3; ++i)
      if (ncclAllReduce(data.data(), data.data(), large, ncclFloat, ncclAvg, comm, nullptr) != ncclSuccess) return 1;
    if (r != 0) std::exit(0);
    float x = 1;  // after the others have left: the sentence says how
    bool const refused = ncclAllReduce(&x, &x, 1, ncclFloat, ncclSum, comm, nullptr) == ncclRemoteError;
    bool const left = std::string(ncclGetLastError(comm)).find("has left") != std::string::npos;
    std::exit(refused && left ? 0 : 1);
  });
  EXPECT_EQ(ends, (std::vector{0, 0, 0}));
}

TEST_F(nccl, a_forked_child_ends_although_it_has_the_communicators_of_its_parent) {
  one_thread(2, [](std::vector<ncclComm_t> const&) {
    process child([]() -> int {
      ::alarm(10);
      std::exit(7);
    });
    EXPECT_EQ(child.wait(), 7);
  });
}

}  // namespace
