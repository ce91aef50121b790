#pragma once

#include "data.hpp"
#include "hash.hpp"
#include "net.hpp"
#include "sampling.hpp"
#include "sgd.hpp"
#include "softmax.hpp"
#include <rondo/gradient/compression/low_rank.hpp>
#include <rondo/gradient/synchronizer.hpp>
#include <rondo/rondo.hpp>
#include <rondo/transports/any_transport.hpp>

#include <array>
#include <chrono>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace fashion_mnist {

/// The ranks that train together, over a transport that the command line names.
using communicator = rondo::communicator<rondo::any_transport>;

/// What one epoch came to, over all ranks.
struct report {
  double loss;             ///< mean over the images, each seen with the parameters of its step
  double accuracy;         ///< share of the test set that was classified right, 0 … 1
  double images_a_second;  ///< training alone
  double exposed;      ///< share of the training time spent waiting for communication, slower ranks included, 0 … 1
  double hidden;       ///< communication behind the backward pass, as a share of the training time, 0 … 1
  std::uint64_t hash;  ///< of the parameters, the same on every rank
};

/// One replica of a net, trained in step with those of the other ranks of a communicator.
///
/// Every step takes one global batch, of which each rank works on its share, so the descent is that of a single rank
/// with the same batch but for the order of summation. Every rank must make the same calls.
template <class T>
class trainer {
 public:
  trainer(communicator& comm, net<T> model, sgd<T> descent, rondo::bucket_sizes const& buckets, bool overlap)
      : comm_(comm), net_(std::move(model)), descent_(descent), gradient_(net_.parameters().size()),
        sync_(comm, layers(), {.buckets = buckets, .overlap = overlap, .summed = true}) {
    sync_.broadcast_values();
  }

  /// Where the weights of the layers lie in the buckets of their gradients, by bucket.
  std::map<std::size_t, std::vector<rondo::matrix_place>> matrices() const {
    std::map<std::size_t, std::vector<rondo::matrix_place>> all;
    auto const& buckets = sync_.plan().buckets();
    for (std::size_t b = 0; b < buckets.size(); ++b)
      for (rondo::bucket_slot const& slot : buckets[b].slots)
        if (auto const [rows, columns] = net_.weights(slot.parameter); rows != 0)
          all[b].push_back({slot.offset, rows, columns});
    return all;
  }

  /// Reduces gradients by a hook of the synchronizer from now on.
  template <class Hook>
  void reduce_with(Hook hook) {
    sync_.reduce_with(std::move(hook));
  }

  /// Trains on every image once, in steps of `batch_size` images over all ranks; calls observe(loss) for each step.
  report epoch(dataset const& training, dataset const& test, std::span<std::size_t const> order, std::size_t batch_size,
               std::function<void(double)> const& observe) {
    seconds exposed{}, hidden{};
    std::vector<double> losses;  // of this rank's images, by step
    auto const start = clock::now();
    for (std::size_t first = 0; first < order.size(); first += batch_size) {
      auto const which = order.subspan(first, std::min(batch_size, order.size() - first));
      auto const [loss, came_to] = step(training, which);
      losses.push_back(loss / static_cast<double>(which.size()));
      exposed += came_to.exposed;
      hidden += came_to.hidden;
    }
    seconds const trained = clock::now() - start;

    comm_.all_reduce(losses, rondo::sum);
    double loss = 0;
    for (std::size_t i = 0; i < losses.size(); ++i) {
      observe(losses[i]);
      loss += losses[i] * static_cast<double>(std::min(batch_size, order.size() - i * batch_size));
    }
    // The mean over ranks of ranks * part is the whole.
    std::array means{comm_.size() * static_cast<double>(correct(test)) / static_cast<double>(test.size()),
                     exposed / trained, hidden / trained};
    comm_.all_reduce(means, rondo::avg);
    auto const images = static_cast<double>(order.size());
    return {.loss = loss / images,
            .accuracy = means[0],
            .images_a_second = images / trained.count(),
            .exposed = means[1],
            .hidden = means[2],
            .hash = common_hash()};
  }

 private:
  using clock = std::chrono::steady_clock;
  using seconds = std::chrono::duration<double>;

  /// Each layer with its gradient, for the synchronizer.
  std::vector<rondo::parameter> layers() {
    std::vector<rondo::parameter> all;
    for (std::size_t i = 0; i < net_.layers(); ++i)
      all.emplace_back("layer " + std::to_string(i), net_.part(net_.parameters(), i),
                       net_.part(std::span(gradient_), i));
    return all;
  }

  /// One step of the descent on a global batch; returns the loss of this rank's share, summed over its images.
  std::pair<double, rondo::gradient_report> step(dataset const& training, std::span<std::size_t const> which) {
    batch<T> const mine(training, share(which, comm_.rank(), comm_.size()));
    auto [loss, slope] = softmax_cross_entropy(net_.forward(mine.images), mine.labels);
    auto step = sync_.begin({.weight = static_cast<double>(mine.labels.size())});
    net_.backward(std::move(slope), gradient_, [&](std::size_t layer) { step.ready(layer); });
    auto const came_to = step.finish();
    descent_.update(net_.parameters(), gradient_);
    return {static_cast<double>(loss), came_to};
  }

  /// How many images of this rank's share of the test set are classified right.
  std::size_t correct(dataset const& test) {
    std::vector<std::size_t> all(test.size());
    std::iota(all.begin(), all.end(), std::size_t(0));
    std::size_t count = 0;
    for (auto rest = share(all, comm_.rank(), comm_.size()); !rest.empty();) {
      auto const part = rest.first(std::min<std::size_t>(rest.size(), 256));
      batch<T> const images(test, part);
      count += count_correct(net_.forward(images.images), images.labels);
      rest = rest.subspan(part.size());
    }
    return count;
  }

  /// The hash of the parameters; throws unless all ranks hold the same bits.
  std::uint64_t common_hash() {
    std::array const mine{hash(std::as_bytes(net_.parameters()))};
    std::vector<std::uint64_t> all(static_cast<std::size_t>(comm_.size()));
    comm_.all_gather(mine, all);
    for (std::size_t rank = 0; rank < all.size(); ++rank)
      if (all[rank] != all[0])
        throw std::runtime_error("rank " + std::to_string(rank) + " holds other parameters than rank 0: run the same " +
                                 "program on the same kind of processor everywhere");
    return mine[0];
  }

  communicator& comm_;
  net<T> net_;
  sgd<T> descent_;
  std::vector<T> gradient_;
  rondo::synchronizer<rondo::any_transport> sync_;
};

}  // namespace fashion_mnist
