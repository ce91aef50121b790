// Every rank contributes its number; every rank gets the sum.
//   rondo launch -n 4 -- build/release/examples/01_hello
#include <rondo/rondo.hpp>
#include <rondo/transports/bootstrap.hpp>
#include <rondo/transports/shm.hpp>

#include <cstdio>
#include <vector>

int main() {
  auto ranks = rondo::join();
  rondo::communicator comm(ranks, rondo::shm::connect(ranks));
  std::vector<float> gradients(1 << 20, static_cast<float>(comm.rank()));
  comm.all_reduce(gradients, rondo::sum);
  std::printf("rank %d of %d: %g\n", comm.rank(), comm.size(), static_cast<double>(gradients[0]));
}
