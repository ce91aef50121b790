#pragma once

#include "../conformance/ranks.hpp"
#include "host_runtime.hpp"
#include <rondo/transports/cuda_ipc/basic_cuda_ipc.hpp>
#include <rondo/transports/in_process_group.hpp>

#include <chrono>
#include <cstddef>
#include <gtest/gtest.h>
#include <memory>
#include <numeric>
#include <span>
#include <vector>

namespace cuda_ipc_test {

using transport_type = basic_cuda_ipc<host_runtime>;
using options_type = transport_type::options_type;

/// Memory on a device of a test.
class device_buffer {
 public:
  device_buffer(host_runtime runtime, std::size_t bytes)
      : runtime_(std::move(runtime)), data_(runtime_.allocate(runtime_.current(), bytes)), bytes_(bytes) {}
  device_buffer(device_buffer&& other) noexcept
      : runtime_(other.runtime_), data_(std::exchange(other.data_, nullptr)), bytes_(other.bytes_) {}
  ~device_buffer() {
    if (data_) runtime_.deallocate(0, data_);
  }

  std::span<std::byte> all() const { return {data_, bytes_}; }
  void put(std::span<std::byte const> from, std::size_t at = 0) const { copy(data_ + at, from.data(), from.size()); }
  void get(std::span<std::byte> to, std::size_t at = 0) const { copy(to.data(), data_ + at, to.size()); }

 private:
  void copy(std::byte* to, std::byte const* from, std::size_t n) const {
    runtime_.copy(to, from, n, nullptr);
    runtime_.wait(nullptr);
  }

  host_runtime runtime_;
  std::byte* data_;
  std::size_t bytes_;
};

/// Which ranks play that they are processes of their own.
enum class place { one_process, own_process };

/// The process of each of n ranks, and the number of its device there: each process numbers the devices otherwise.
inline std::vector<options_type> places_of(int n, place where, platform const& machine = {}) {
  std::vector<int> visible(static_cast<std::size_t>(machine.devices));
  std::iota(visible.begin(), visible.end(), 0);
  auto const common = std::make_shared<host_process>(machine, visible);
  std::vector<options_type> all;
  for (int r = 0; r < n; ++r) {
    int const device = r % machine.devices;
    options_type o;
    if (where == place::one_process) {
      o.runtime = host_runtime(common, device);
    } else {
      std::rotate(visible.begin(), visible.begin() + 1, visible.end());
      auto const at = std::find(visible.begin(), visible.end(), device) - visible.begin();
      o.runtime = host_runtime(std::make_shared<host_process>(machine, visible), static_cast<int>(at));
    }
    o.ring_bytes = 64 << 10;
    all.push_back(std::move(o));
  }
  return all;
}

}  // namespace cuda_ipc_test
