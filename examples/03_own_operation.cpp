// Any callable is an operation, and any trivially copyable type an element. One that does not commute keeps the order
// of ranks: here the composition of affine maps, first rank 0, then rank 1, …
#include <rondo/rondo.hpp>
#include <rondo/transports/in_process.hpp>

#include <array>
#include <cstdio>

struct affine {
  int factor, offset;
};

int main() {
  rondo::in_process::run(3, [](auto& comm) {
    std::array<affine, 1> map{{{comm.rank() + 2, 1}}};  // x -> (rank + 2) x + 1
    comm.all_reduce(map, [](affine const& first, affine const& then) noexcept {
      return affine{then.factor * first.factor, then.factor * first.offset + then.offset};
    });

    std::array<int, 1> widest{comm.rank() % 2 == 0 ? -7 : 5};
    auto const larger = [](int a, int b) noexcept { return a * a < b * b ? b : a * a > b * b ? a : a < b ? b : a; };
    comm.all_reduce(widest, rondo::commutative(larger));  // declared: any algorithm may be chosen
    if (comm.rank() == 0) std::printf("%d x + %d, widest %d\n", map[0].factor, map[0].offset, widest[0]);
  });
}
