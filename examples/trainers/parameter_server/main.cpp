#include "../fashion_mnist/data.hpp"
#include "../fashion_mnist/models.hpp"
#include "../fashion_mnist/sampling.hpp"
#include "../fashion_mnist/sgd.hpp"
#include "../fashion_mnist/softmax.hpp"
#include "options.hpp"
#include <rondo/async/parameter_server.hpp>
#include <rondo/transports/bootstrap.hpp>
#include <rondo/transports/multi.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace fashion_mnist;
using parameter_server_trainer::options;
using shared_parameters = rondo::parameter_server<rondo::multi>;
using clock_type = std::chrono::steady_clock;
using seconds = std::chrono::duration<double>;

/// "any", or the number.
std::string text(std::uint64_t bound) { return bound == rondo::staleness_bounds::none ? "any" : std::to_string(bound); }

void serve(shared_parameters& shared, std::span<float> parameters, options const& chosen) {
  sgd<float> descent(chosen.rate, chosen.momentum);
  auto const seen =
      shared.serve(shared.shard(parameters), [&](std::span<float> values, std::span<float const> gradient) noexcept {
        descent.update(values, gradient);
      });
  std::printf("server %zu: %llu updates, lead up to %llu of %s, delay up to %llu of %s\n", shared.number(),
              static_cast<unsigned long long>(seen.updates), static_cast<unsigned long long>(seen.largest_lead),
              text(chosen.lead).c_str(), static_cast<unsigned long long>(seen.largest_delay),
              text(chosen.delay).c_str());
  for (std::size_t w = 0; w < seen.workers.size(); ++w)
    if (auto const& worker = seen.workers[w]; worker.how == rondo::worker_ending::lost)
      std::printf("server %zu: worker %zu was lost: %s\n", shared.number(), w, worker.why.c_str());
}

/// The images of one worker: all of them, in an order of its own in every epoch.
class images {
 public:
  images(dataset const& from, std::uint64_t seed) : from_(from), seed_(seed) {}

  batch<float> next(std::size_t count) {
    if (order_.size() - at_ < count) order_ = shuffled(from_.size(), seed_, ++epoch_), at_ = 0;
    std::span const all(order_);
    return {from_, all.subspan(std::exchange(at_, at_ + count), count)};
  }

 private:
  dataset const& from_;
  std::uint64_t seed_;
  int epoch_ = 0;
  std::vector<std::size_t> order_;
  std::size_t at_ = 0;
};

double accuracy(net<float>& model, dataset const& test) {
  std::vector<std::size_t> all(test.size());
  std::iota(all.begin(), all.end(), std::size_t(0));
  std::size_t correct = 0;
  for (std::span<std::size_t const> rest = all; !rest.empty();) {
    auto const part = rest.first(std::min<std::size_t>(rest.size(), 256));
    batch<float> const some(test, part);
    correct += count_correct(model.forward(some.images), some.labels);
    rest = rest.subspan(part.size());
  }
  return static_cast<double>(correct) / static_cast<double>(test.size());
}

void work(shared_parameters& shared, net<float> model, options const& chosen, bool slow) {
  dataset const training = load(chosen.data, "train", chosen.limit), test = load(chosen.data, "t10k", chosen.limit);
  std::size_t const size = std::min(chosen.batch, training.size());
  auto const enough = static_cast<std::uint64_t>(chosen.epochs) * (training.size() / size);
  auto const pause = std::chrono::duration_cast<clock_type::duration>(
      std::chrono::duration<double, std::milli>(chosen.step * (slow ? chosen.slow : 1)));
  images mine(training, chosen.seed + 1 + shared.number());
  std::vector<float> gradient(model.parameters().size());
  int steps = 0;
  auto const start = clock_type::now();
  while (shared.pull(model.parameters()).updates < enough) {
    auto const begin = clock_type::now();
    batch<float> const now = mine.next(size);
    auto [loss, slope] = softmax_cross_entropy(model.forward(now.images), now.labels);
    model.backward(slope / static_cast<float>(size), gradient);
    std::this_thread::sleep_until(begin + pause);
    shared.push(gradient);
    ++steps;
  }
  seconds const took = clock_type::now() - start;
  std::printf("worker %zu: %d steps, %.1f steps/s, test accuracy %.2f %%\n", shared.number(), steps,
              steps / took.count(), 100 * accuracy(model, test));
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app(
      "Trains a small net on Fashion-MNIST, asynchronously: rondo launch -n 4 -- parameter_server --step 5 --slow 5");
  options const chosen(app);
  CLI11_PARSE(app, argc, argv);
  Eigen::setNbThreads(1);  // ranks share the cores, so each is one thread

  try {
    auto const group = rondo::join();
    rondo::communicator comm(group, rondo::multi::connect(group));
    net<float> model = chosen.model == "mlp" ? mlp<float>(chosen.seed) : conv<float>(chosen.seed);
    std::vector<rondo::rank_t> servers(static_cast<std::size_t>(chosen.servers));
    std::iota(servers.begin(), servers.end(), 0);
    shared_parameters shared(comm, model.parameters().size(),
                             {.servers = servers,
                              .bounds = {.lead = chosen.lead, .delay = chosen.delay},
                              .lease = std::chrono::milliseconds(chosen.lease)});
    if (shared.serves())
      serve(shared, model.parameters(), chosen);
    else
      work(shared, std::move(model), chosen, comm.rank() == comm.size() - 1);
    return 0;
  } catch (std::exception const& problem) {
    std::fprintf(stderr, "parameter_server: %s\n", problem.what());
    return 1;
  }
}
