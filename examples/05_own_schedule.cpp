// An algorithm of one's own is a pure function. This one sends everything to rank 0 along a line and back again. The
// verifier proves it at compile time; the same value then runs over any transport.
#include <rondo/rondo.hpp>
#include <rondo/transports/in_process.hpp>

#include <cstdio>
#include <vector>

struct line {
  struct all_reduce {
    int n;

    static constexpr bool keeps_rank_order = true;
    static constexpr bool uniform_tree = false;

    constexpr int ranks() const noexcept { return n; }
    constexpr int chunks() const noexcept { return 1; }
    constexpr int rounds() const noexcept { return 2 * (n - 1); }
    constexpr int period() const noexcept { return n > 1 ? rounds() : 1; }

    constexpr rondo::step at(rondo::rank_t r, int i) const noexcept {
      int const half = n - 1;
      rondo::step s;
      if (i < half) {  // rank n - 1 - i hands its sum down
        if (r == n - 1 - i) s.to = r - 1, s.out = {0, 1};
        if (r == n - 2 - i) s.from = r + 1, s.in = {0, 1}, s.how = rondo::merge::fold, s.completes = r == 0;
      } else {  // rank i - half hands the result up
        if (r == i - half) s.to = r + 1, s.out = {0, 1};
        if (r == i - half + 1) s.from = r - 1, s.in = {0, 1};
      }
      return s;
    }
  };
};

static_assert(rondo::verify_all_reduce(line::all_reduce{5}));

int main() {
  rondo::in_process::run(5, [](rondo::communicator<rondo::in_process>& comm) {
    std::vector<double> values(1000, comm.rank());
    comm.all_reduce<line>(values, rondo::sum);
    if (comm.rank() == 4) std::printf("%g\n", values[999]);
  });
}
