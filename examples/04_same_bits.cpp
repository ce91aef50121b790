// Floating-point sums depend on their order. An ordered sum has one order for each number of ranks: the same bits from
// every algorithm that can keep it, for every size of the buffer.
#include <rondo/rondo.hpp>
#include <rondo/transports/in_process.hpp>

#include <cstdio>
#include <cstring>
#include <vector>

int main() {
  rondo::in_process::run(4, [](auto& comm) {
    std::vector<float> first(10'000), second;
    for (std::size_t i = 0; i < first.size(); ++i)
      first[i] = 1.0F / static_cast<float>(1 + i * 4 + static_cast<std::size_t>(comm.rank()));
    second = first;
    comm.all_reduce(first, rondo::sum, {.ordered = true, .algorithm = rondo::algorithm::recursive_doubling});
    comm.all_reduce(second, rondo::sum, {.ordered = true, .algorithm = rondo::algorithm::ordered_halving});
    bool const same = std::memcmp(first.data(), second.data(), first.size() * sizeof(float)) == 0;
    if (comm.rank() == 0) std::printf("doubling and halving give %s bits\n", same ? "the same" : "different");
  });
}
