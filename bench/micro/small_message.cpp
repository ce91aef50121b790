// all_reduce of 8 bytes with a peer that has always answered already: nothing but this rank's own instructions.
// small_message CALLS; bench/micro/instructions.sh counts them.
#include <rondo/communicator.hpp>
#include <rondo/group.hpp>
#include <rondo/memory.hpp>
#include <rondo/ops.hpp>
#include <rondo/registered_memory.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace rondo;

/// Rank 0 of two ranks of which the other always says the same.
class mirrored_group final : public group {
 public:
  mirrored_group() : group(0, 2) {}

  std::vector<std::string> exchange(std::string_view mine, clock::time_point) override {
    return {std::string(mine), std::string(mine)};
  }
  std::shared_ptr<group> split(int, int, clock::time_point) override { return std::make_shared<mirrored_group>(); }
  void report(failure why) noexcept override { fail(why); }
  std::optional<std::uint64_t> departed(rank_t) const noexcept override { return std::nullopt; }
};

/// Shared memory in which the other rank answers a letter with the same letter, as soon as it is told of it.
class mirror {
 public:
  rank_t rank() const noexcept { return 0; }
  int size() const noexcept { return 2; }
  std::size_t write(rank_t, std::span<std::byte const> bytes, bool) { return bytes.size(); }
  std::span<std::byte const> readable(rank_t, std::size_t) { return {}; }
  void consume(rank_t, std::size_t) {}
  std::size_t read(rank_t, std::span<std::byte>) { return 0; }
  void wait(std::chrono::nanoseconds) {}

  std::span<std::byte> board(rank_t owner) const { return shared_->boards[static_cast<std::size_t>(owner)]; }
  mailbox& mail(rank_t owner, rank_t) const { return shared_->mail[static_cast<std::size_t>(owner)]; }
  std::shared_ptr<registered_memory> registered() const { return shared_->registered; }
  void notify(rank_t) {
    ++letters_;
    letter const& mine = shared_->mail[1].letters[letters_ % 2];
    letter& answer = shared_->mail[0].letters[letters_ % 2];
    answer.digest = mine.digest;
    answer.text = mine.text;
    answer.number.store(letters_, std::memory_order_release);
  }

 private:
  struct memory {
    std::array<std::array<std::byte, std::size_t{1} << 16>, 2> boards{};
    std::array<mailbox, 2> mail{};
    std::shared_ptr<registered_memory> registered = std::make_shared<registered_memory>(
        0, std::vector<std::shared_ptr<detail::file_descriptor const>>(2), std::size_t{0});
  };
  std::shared_ptr<memory> shared_ = std::make_shared<memory>();
  std::uint64_t letters_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  long const calls = argc > 1 ? std::atol(argv[1]) : 0;
  communicator comm(std::make_shared<mirrored_group>(), mirror());
  std::array<float, 2> values{};
  for (long i = 0; i < calls; ++i) comm.all_reduce(values, sum);
  return values == std::array<float, 2>{} ? 0 : 1;
}
