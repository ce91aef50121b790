#include "models.hpp"
#include "options.hpp"
#include "trainer.hpp"
#include <rondo/gradient/compression/named.hpp>
#include <rondo/transports/bootstrap.hpp>
#include <rondo/transports/shm.hpp>
#include <rondo/transports/tcp.hpp>

#include <cinttypes>
#include <cstdio>
#include <fstream>
#include <iomanip>
#include <optional>

namespace {

using namespace fashion_mnist;

rondo::any_transport connect(std::string const& transport, std::shared_ptr<rondo::group> const& group) {
  if (transport == "tcp") return rondo::tcp::connect(group);
  return rondo::shm::connect(group);
}

template <class T>
void train(communicator& comm, options const& chosen) {
  dataset const training = load(chosen.data, "train", chosen.limit), test = load(chosen.data, "t10k", chosen.limit);
  sgd<T> const descent(chosen.rate, chosen.momentum);
  std::optional<rondo::named_compression> compressed;
  trainer<T> replica(comm, chosen.model == "mlp" ? mlp<T>(chosen.seed) : conv<T>(chosen.seed), descent,
                     {.first = chosen.bucket, .most = chosen.bucket}, chosen.overlap);
  if (!chosen.compress.empty()) {
    compressed.emplace(chosen.compress, replica.matrices());
    replica.reduce_with([&, steps = std::size_t{0}](auto& ranks, rondo::gradient_bucket<float> bucket) mutable {
      if (bucket.number == 0) ++steps;
      if (steps > chosen.warm_up)
        (*compressed)(ranks, bucket);
      else
        ranks.all_reduce(bucket.values, rondo::sum);
    });
  }

  bool const speaks = comm.rank() == 0;
  std::ofstream log;
  if (speaks && !chosen.loss_log.empty()) log.open(chosen.loss_log);
  if (!log) throw std::runtime_error("cannot write " + chosen.loss_log + ": name a file in a folder that exists");
  log << std::setprecision(17);
  for (int epoch = 1, step = 0; epoch <= chosen.epochs; ++epoch) {
    auto const order = shuffled(training.size(), chosen.seed, epoch);
    auto const record = [&](double loss) { log << ++step << ' ' << loss << '\n'; };
    report const r = replica.epoch(training, test, order, chosen.batch, record);
    if (speaks)
      std::printf("epoch %2d   loss %.4f   test accuracy %.2f %%   %.0f images/s   communication %.1f %% exposed, "
                  "%.1f %% hidden   replicas identical (%016" PRIx64 ")\n",
                  epoch, r.loss, 100 * r.accuracy, r.images_a_second, 100 * r.exposed, 100 * r.hidden, r.hash);
    std::fflush(stdout);
  }
  if (speaks && compressed) std::printf("gradients in %.1f times fewer bytes\n", compressed->statistics().ratio());
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Trains a small net on Fashion-MNIST, data parallel: rondo launch -n 2 -- fashion_mnist");
  options const chosen(app);
  CLI11_PARSE(app, argc, argv);
  Eigen::setNbThreads(1);  // ranks share the cores, so each is one thread

  try {
    auto const group = rondo::join();
    communicator comm(group, connect(chosen.transport, group));
    chosen.type == "float" ? train<float>(comm, chosen) : train<double>(comm, chosen);
    return 0;
  } catch (std::exception const& problem) {
    std::fprintf(stderr, "fashion_mnist: %s\n", problem.what());
    return 1;
  }
}
