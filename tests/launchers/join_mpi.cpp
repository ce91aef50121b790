#include <rondo/adapters/mpi.hpp>
#include <rondo/rondo.hpp>
#include <rondo/transports/tcp.hpp>

#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

// Joins the ranks of MPI_COMM_WORLD, and those of each half of it in reversed order, ends MPI, and prints what each has
// to say in both groups; for the script that compares it.

namespace {

using namespace std::chrono_literals;

std::string refusal_of(MPI_Comm comm) {
  try {
    rondo::join_mpi(comm);
  } catch (rondo::invalid_argument const& e) { return e.what(); }
  return "it was accepted";
}

/// "rank 1 of 4: 6", where 6 is the sum of all ranks' numbers.
std::string all_reduced(std::shared_ptr<rondo::group> const& ranks) {
  auto const deadline = rondo::group::clock::now() + 20s;
  rondo::communicator comm(ranks, rondo::tcp::connect(ranks, {}, deadline), {.deadline = 20s});
  std::vector<float> numbers(1000, static_cast<float>(comm.rank()));
  comm.all_reduce(numbers, rondo::sum);
  return "rank " + std::to_string(comm.rank()) + " of " + std::to_string(comm.size()) + ": " +
         std::to_string(static_cast<int>(numbers.back()));
}

/// An MPI may take the buffer of the stream away: only what is written at once stays together.
void say(std::string const& line) { (void)std::fputs((line + '\n').c_str(), stdout); }

}  // namespace

int main(int argc, char** argv) try {
  auto const early = refusal_of(MPI_COMM_WORLD);
  MPI_Init(&argc, &argv);
  auto const none = refusal_of(MPI_COMM_NULL);
  auto const world = rondo::join_mpi(MPI_COMM_WORLD, {.deadline = 20s});
  MPI_Comm half;
  MPI_Comm_split(MPI_COMM_WORLD, world->rank() % 2, -world->rank(), &half);
  auto const reversed = rondo::join_mpi(half, {.deadline = 20s});
  MPI_Finalize();
  auto const late = refusal_of(MPI_COMM_WORLD);
  if (world->rank() == 0) say(early + '\n' + none + '\n' + late);
  say(all_reduced(world));
  say(std::to_string(world->rank()) + ", in its half " + all_reduced(reversed));
} catch (rondo::error const& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}
