#pragma once

#include <rondo/detail/announce.hpp>
#include <rondo/detail/by_rank.hpp>
#include <rondo/detail/text.hpp>
#include <rondo/group.hpp>
#include <rondo/transports/cuda_ipc/options.hpp>
#include <rondo/transports/cuda_ipc/runtime.hpp>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace rondo::inline v0::detail {

/// What a rank tells the others about its device.
struct device_card {
  device_uuid uuid;
  bool has_files;
  std::string process;

  std::string encode() const {
    std::string text(has_files ? "+" : "-");
    return text.append(reinterpret_cast<char const*>(uuid.data()), uuid.size()) + process;
  }
  static device_card decode(std::string_view text) {
    device_card c{{}, text.starts_with('+'), {}};
    std::memcpy(c.uuid.data(), text.data() + 1, std::min(text.size() - 1, c.uuid.size()));
    c.process = text.substr(std::min(text.size(), 1 + c.uuid.size()));
    return c;
  }
};

/// The devices of all ranks, and by which number this process knows them.
class device_roster {
 public:
  /// Every rank must call; blocks until all have. All of them throw connect_error if a rank has no device, or one that
  /// cannot address another rank's.
  template <device_runtime R>
  device_roster(group& ranks, cuda_ipc_options<R> const& options, group::clock::time_point deadline)
      : rank_(ranks.rank()) {
    auto const& runtime = options.runtime;
    auto const blobs = announce(
        ranks, "use a device",
        [&] {
          device_ = options.device < 0 ? runtime.current() : options.device;
          return device_card{runtime.uuid(device_), runtime.has_files(device_), runtime.process()}.encode();
        },
        deadline);
    std::transform(blobs.begin(), blobs.end(), std::back_inserter(cards_), device_card::decode);
    announce(
        ranks, "address the devices of all ranks",
        [&] {
          for (rank_t q = 0; q < ranks.size(); ++q) look_at(runtime, q);
          return std::string();
        },
        deadline);
  }

  /// That of this rank.
  int device() const noexcept { return device_; }
  /// That of another one, as this process numbers it.
  int device_of(rank_t q) const noexcept { return by_rank(numbers_, q); }

  bool shares_process_with(rank_t q) const noexcept {
    return by_rank(cards_, q).process == by_rank(cards_, rank_).process;
  }
  bool is_one_process() const noexcept {
    return all([&](device_card const& c) { return c.process == cards_[0].process; });
  }

  /// The ways to share memory that all ranks have, in the order in which they are tried.
  std::vector<device_sharing> ways(device_sharing wanted) const {
    if (wanted != device_sharing::automatic) return {wanted};
    if (!all([](device_card const& c) { return c.has_files; })) return {device_sharing::handles};
    return {device_sharing::files, device_sharing::handles};
  }

 private:
  template <class F>
  bool all(F&& f) const {
    return std::all_of(cards_.begin(), cards_.end(), f);
  }

  template <device_runtime R>
  void look_at(R const& runtime, rank_t q) {
    int const theirs = numbers_.emplace_back(runtime.find(by_rank(cards_, q).uuid));
    if (theirs < 0)
      throw device_error(text_of({"the device of rank ", q,
                                  " is on another host or hidden from this process: let every process see the devices "
                                  "of all (CUDA_VISIBLE_DEVICES), or use another transport"}),
                         q);
    if (theirs == device_) return;
    if (!runtime.reaches(device_, theirs))
      throw device_error(text_of({"it has no peer access to the device of rank ", q,
                                  ", which the platform connects otherwise: use another transport"}),
                         q);
    runtime.enable(device_, theirs);
  }

  rank_t rank_;
  int device_ = 0;
  std::vector<device_card> cards_;
  std::vector<int> numbers_;
};

}  // namespace rondo::inline v0::detail
