#include "peers/driver.hpp"

#include <limits>
#include <mpi.h>
#include <sstream>

namespace {

/// "Open MPI 4.1.4" out of "Open MPI v4.1.4, package: …", "MPICH Version: 4.0.2 …" or "Intel(R) MPI Library 2021.19 …".
std::string library_name() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0;
  MPI_Get_library_version(text, &length);
  std::istringstream words(std::string(text, static_cast<std::size_t>(length)));
  std::string name;
  for (std::string word; words >> word;) {
    if (auto const digit = word.find_first_of("0123456789"); digit <= 1)
      return name + word.substr(digit, word.find_first_not_of("0123456789.", digit) - digit);
    if (word == "Version:" || word == "Library") continue;
    name += (word == "Intel(R)" ? "Intel" : word) + " ";
  }
  return name + "of an unknown version";
}

void all_reduce(float* data, std::size_t count) {
  if (count > static_cast<std::size_t>(std::numeric_limits<int>::max()))
    throw std::runtime_error("MPI_Allreduce counts with an int: choose a smaller size.");
  if (MPI_Allreduce(MPI_IN_PLACE, data, static_cast<int>(count), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD) != MPI_SUCCESS)
    throw std::runtime_error("MPI_Allreduce failed.");
}

}  // namespace

int main(int argc, char** argv) {
  using namespace rondo::bench::peers;
  MPI_Init(&argc, &argv);
  int const status = guarded([&] {
    int rank = 0, ranks = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    driver drive(argc, argv, rank, ranks, library_name());
    own_buffer buffer;
    drive.serve([&](int, std::size_t count) { return buffer.at_least(count); },
                [](int, place at, std::size_t count) { all_reduce(at.in, count); });
  });
  if (status != 0) MPI_Abort(MPI_COMM_WORLD, status);
  MPI_Finalize();
}
