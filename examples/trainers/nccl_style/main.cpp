#include "net.hpp"
#include <rondo/adapters/nccl.h>  // was: #include <nccl.h>

#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <thread>

// A trainer that knows NCCL and nothing else: one rank a process, the id of the communicator handed over in a file, the
// gradients of all parameters in one buffer, and either whole optimizer states on every rank (zero stage 0) or a share
// of them on each (stage 1). Its buffers are memory of the host, so that it runs where there is no GPU.
//
//     rondo launch -n 4 -- nccl_style ID_FILE STEPS STAGE     prints the loss of every step

namespace {

using nccl_style::net;

void check(ncclResult_t result) {
  if (result == ncclSuccess) return;
  throw std::runtime_error(std::string(ncclGetErrorString(result)) + ": " + ncclGetLastError(nullptr));
}

int from_environment(char const* name, int otherwise) {
  char const* const text = std::getenv(name);
  return text ? std::atoi(text) : otherwise;
}

/// Rank 0 makes the id; the others wait for the file that it writes.
ncclUniqueId shared_id(std::filesystem::path const& file, int rank) {
  ncclUniqueId id;
  if (rank == 0) {
    check(ncclGetUniqueId(&id));
    auto unfinished = file;
    unfinished += ".part";
    std::ofstream(unfinished, std::ios::binary).write(id.internal, sizeof id.internal);
    std::filesystem::rename(unfinished, file);
    return id;
  }
  auto const give_up = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (!std::ifstream(file, std::ios::binary).read(id.internal, sizeof id.internal)) {
    if (std::chrono::steady_clock::now() > give_up) throw std::runtime_error("rank 0 has not written the id: see it");
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return id;
}

/// Gradient descent with momentum, for the parameters of one share.
struct sgd {
  double rate = 0.3, momentum = 0.9;
  std::vector<double> velocity;

  void step(double* weights, double const* gradients) {
    for (std::size_t i = 0; i < velocity.size(); ++i) {
      velocity[i] = momentum * velocity[i] + gradients[i];
      weights[i] -= rate * velocity[i];
    }
  }
};

void train(int rank, int ranks, ncclComm_t comm, int steps, int stage) {
  auto const all = static_cast<std::size_t>(ranks), mine = static_cast<std::size_t>(rank);
  auto const share = (net::parameters + all - 1) / all;  // the last one is filled up
  cudaStream_t const stream = nullptr;
  auto const samples = nccl_style::spirals(600);

  net model;
  model.initialize(mine);  // as different as can be, until rank 0 has given its own to all
  model.weights.resize(share * all);
  check(ncclBroadcast(model.weights.data(), model.weights.data(), model.weights.size(), ncclDouble, 0, comm, stream));
  sgd optimizer;
  optimizer.velocity.resize(stage == 0 ? model.weights.size() : share);

  for (int step = 1; step <= steps; ++step) {
    std::vector<double> gradients(share * all);
    double loss = 0;
    for (std::size_t i = mine; i < samples.size(); i += all) loss += model.backward(samples[i], gradients);
    auto const scale = static_cast<double>(all) / static_cast<double>(samples.size());
    for (auto& g : gradients) g *= scale;
    loss *= scale;

    check(ncclGroupStart());
    check(ncclAllReduce(&loss, &loss, 1, ncclDouble, ncclAvg, comm, stream));
    if (stage == 0)
      check(ncclAllReduce(gradients.data(), gradients.data(), gradients.size(), ncclDouble, ncclAvg, comm, stream));
    else
      check(ncclReduceScatter(gradients.data(), gradients.data() + mine * share, share, ncclDouble, ncclAvg, comm,
                              stream));
    check(ncclGroupEnd());
    if (stage == 0) {
      optimizer.step(model.weights.data(), gradients.data());
    } else {
      auto* const own = model.weights.data() + mine * share;
      optimizer.step(own, gradients.data() + mine * share);
      check(ncclAllGather(own, model.weights.data(), share, ncclDouble, comm, stream));
    }
    if (rank == 0) std::printf("%d %.17g\n", step, loss);
  }
}

}  // namespace

int main(int argc, char** argv) try {
  int const rank = from_environment("RANK", 0), ranks = from_environment("WORLD_SIZE", 1);
  int const steps = argc > 2 ? std::atoi(argv[2]) : 50, stage = argc > 3 ? std::atoi(argv[3]) : 0;
  if (argc < 2) throw std::runtime_error("usage: nccl_style ID_FILE [STEPS [STAGE]]; the file must not exist yet");
  ncclComm_t comm = nullptr;
  check(ncclCommInitRank(&comm, ranks, shared_id(argv[1], rank), rank));
  train(rank, ranks, comm, steps, stage);
  check(ncclCommDestroy(comm));
} catch (std::exception const& e) {
  std::fprintf(stderr, "nccl_style: %s\n", e.what());
  return 1;
}
