#include <rondo/transports/in_process.hpp>

#include <cstddef>
#include <gtest/gtest.h>
#include <map>
#include <mutex>
#include <string>
#include <transformer/model.hpp>
#include <transformer/pipelined.hpp>
#include <vector>

namespace {

using namespace transformer;

/// A text of its own, so that nothing has to be installed.
std::vector<sequences> some_batches(int microbatches, std::size_t positions) {
  std::vector<sequences> all(static_cast<std::size_t>(microbatches));
  for (std::size_t m = 0; m < all.size(); ++m)
    for (std::size_t i = 0; i < positions; ++i) {
      all[m].tokens.push_back(static_cast<std::uint8_t>((i * 7 + m * 13) % 31));
      all[m].next.push_back(static_cast<std::uint8_t>((i * 7 + m * 13 + 7) % 31));
    }
  return all;
}

/// The gradient of every tensor, by its name, as one process computes it.
using by_name = std::map<std::string, std::vector<double>>;
template <class Net>
void add_gradients(Net& net, by_name& to) {
  net.each_tensor(
      [&](std::string const& name, auto, auto gradient) { to[name].assign(gradient.begin(), gradient.end()); });
}

/// Four stages of a GPT-2 have the gradients of one process, bit for bit, through channels of one slot.
TEST(transformer_stages, have_the_gradients_of_one_process) {
  constexpr config shape{.vocabulary = 31, .time = 12, .width = 16, .heads = 2, .blocks = 5};
  constexpr std::size_t positions = 36;
  for (int const microbatches : {1, 3, 8}) {
    auto const batches = some_batches(microbatches, positions);
    by_name expected, found;
    model<double> whole(shape, 3);
    double loss = 0, loss_of_stages = 0;
    for (auto const& b : batches) {
      loss += whole.forward(b.tokens, b.next);
      whole.backward();
    }
    add_gradients(whole, expected);

    std::mutex mutex;
    rondo::in_process::run(4, [&](rondo::communicator<rondo::in_process>& comm) {
      pipelined<double, rondo::in_process> stages(comm, shape, 3, microbatches, positions);
      std::vector<std::size_t> ready;
      double const own = stages.run(batches, [&](std::size_t id) { ready.push_back(id); });
      std::size_t tensors = 0;
      stages.net().each_tensor([&](auto const&, auto, auto) { ++tensors; });
      EXPECT_EQ(ready.size(), tensors) << "each tensor is ready once, in the last backward pass";
      std::scoped_lock const lock(mutex);
      loss_of_stages += own;
      add_gradients(stages.net(), found);
    });
    EXPECT_EQ(loss_of_stages, loss);
    EXPECT_EQ(found, expected);
  }
}

}  // namespace
