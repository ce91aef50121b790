#include <rondo/rondo.hpp>
#include <rondo/transports/any_transport.hpp>
#include <rondo/transports/bootstrap.hpp>
#include <rondo/transports/in_process.hpp>
#include <rondo/transports/multi.hpp>
#include <rondo/transports/shm.hpp>
#include <rondo/transports/tcp.hpp>
#include <rondo/transports/ucx.hpp>
#include <rondo/transports/verbs.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

// The bits of ordered sums over the transport that is named: same_bits TRANSPORT [any], or same_bits in_process RANKS.
// Rank 0 prints a line of hashes, one for each number of elements; for the script that compares them.

namespace {

using every_multi = rondo::basic_multi<rondo::shm, rondo::verbs, rondo::ucx, rondo::tcp>;

/// FNV-1a, 64 bits.
std::uint64_t hash(std::vector<float> const& values) {
  std::uint64_t h = 0xcbf29ce484222325u;
  for (float const v : values) {
    std::uint32_t bits;
    std::memcpy(&bits, &v, sizeof bits);
    h = (h ^ bits) * 0x100000001b3u;
  }
  return h;
}

/// What a user writes once for all transports.
template <rondo::transport X>
void sum_up(rondo::communicator<X>& comm) {
  for (std::size_t const count : {1, 1'000, 30'001}) {
    std::vector<float> values(count);
    for (std::size_t i = 0; i < count; ++i)
      values[i] = 1.0F / static_cast<float>(1 + i * 7 + static_cast<std::size_t>(comm.rank()));
    comm.all_reduce(values, rondo::sum, {.ordered = true});
    if (comm.rank() == 0) std::printf("%016llx ", static_cast<unsigned long long>(hash(values)));
  }
  if (comm.rank() == 0) std::printf("\n");
}

template <class X>
void over(bool chosen_at_run_time) {
  auto const ranks = rondo::join();
  if (chosen_at_run_time) {
    rondo::communicator comm(ranks, rondo::any_transport(X::connect(ranks)));
    sum_up(comm);
  } else {
    rondo::communicator comm(ranks, X::connect(ranks));
    sum_up(comm);
  }
}

}  // namespace

int main(int argc, char** argv) try {
  std::string_view const name = argc > 1 ? argv[1] : "", how = argc > 2 ? argv[2] : "";
  bool const any = how == "any";
  if (name == "in_process")
    rondo::in_process::run(std::stoi(std::string(how)), [](auto& comm) { sum_up(comm); });
  else if (name == "shm")
    over<rondo::shm>(any);
  else if (name == "tcp")
    over<rondo::tcp>(any);
  else if (name == "ucx")
    over<rondo::ucx>(any);
  else if (name == "verbs")
    over<rondo::verbs>(any);
  else if (name == "multi")
    over<every_multi>(any);
  else
    return 2;
} catch (rondo::error const& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}
