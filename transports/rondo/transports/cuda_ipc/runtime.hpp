#pragma once

#include <rondo/detail/file_descriptor.hpp>
#include <rondo/error.hpp>

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>

namespace rondo::inline v0 {

/// A device, or what drives it, reports an error.
class device_error : public error {
 public:
  using error::error;
};

/// Names a device wherever it is seen from. Its number does not: CUDA_VISIBLE_DEVICES numbers devices anew for every
/// process.
using device_uuid = std::array<std::byte, 16>;

/// What another process needs to open an allocation.
using device_handle = std::array<std::byte, 64>;

/// The allocation that some memory is a part of.
struct device_allocation {
  std::byte* base;
  std::size_t bytes;
  std::uint64_t id;  ///< no other allocation of the process has it, not even one at the same place later

  friend bool operator==(device_allocation const&, device_allocation const&) = default;
};

/// An allocation that stands for a file: who gets the descriptor can map it. It lasts until nobody maps it any more.
struct device_file {
  std::byte* data;
  std::size_t bytes;  ///< at least as many as were asked for
  detail::file_descriptor file;
};

/// The calls by which cuda_ipc uses devices: those of CUDA, or of a test. A small value, whose copies mean the same.
/// Devices have the numbers by which this process knows them. All calls throw device_error for what the device reports;
/// those that end something throw nothing.
///
///  - process(): a text that only those have who share pointers with this rank.
///  - current(): the device of this thread. uuid(device), find(uuid): its name; the device of that name, or -1.
///  - reaches(device, peer): does the platform claim that `device` can address memory of `peer`? enable(device, peer):
///    lets it do so; may be called again.
///  - on_device(p): must this memory be copied to be read by the processor?
///  - allocate(device, bytes), deallocate(device, p): plain memory. allocation_of(p): what p is a part of.
///  - export_handle(base), open_handle(device, handle), close_handle(device, p): lends a whole allocation to other
///    processes. A handle cannot be opened by the process that made it, and nothing may be freed that is open
///    elsewhere.
///  - has_files(device), allocate_file(device, bytes), map_file(device, file, bytes), unmap(p, bytes): memory as a
///  file.
///  - allocate_pinned(bytes), free_pinned(p): memory of the host that devices copy from and to.
///  - copy(to, from, bytes, stream), zero(p, bytes, stream): enqueued, between any two places. wait(stream): returns
///    when all that was enqueued before is done.
// clang-format off (version 14 breaks the line before noexcept)
template <class R>
concept device_runtime = std::copy_constructible<R> && std::default_initializable<R> &&
    requires(R const r, int device, std::byte* p, std::byte const* from, std::size_t bytes, device_uuid const& name,
             device_handle const& handle, typename R::stream s) {
  { r.process() } -> std::same_as<std::string>;
  { r.current() } -> std::same_as<int>;
  { r.uuid(device) } -> std::same_as<device_uuid>;
  { r.find(name) } -> std::same_as<int>;
  { r.reaches(device, device) } -> std::same_as<bool>;
  { r.enable(device, device) } -> std::same_as<void>;
  { r.on_device(from) } -> std::same_as<bool>;
  { r.allocate(device, bytes) } -> std::same_as<std::byte*>;
  { r.deallocate(device, p) }
  noexcept->std::same_as<void>;
  { r.allocation_of(from) } -> std::same_as<device_allocation>;
  { r.export_handle(p) } -> std::same_as<device_handle>;
  { r.open_handle(device, handle) } -> std::same_as<std::byte*>;
  { r.close_handle(device, p) }
  noexcept->std::same_as<void>;
  { r.has_files(device) } -> std::same_as<bool>;
  { r.allocate_file(device, bytes) } -> std::same_as<device_file>;
  { r.map_file(device, int(), bytes) } -> std::same_as<std::byte*>;
  { r.unmap(p, bytes) }
  noexcept->std::same_as<void>;
  { r.allocate_pinned(bytes) } -> std::same_as<std::byte*>;
  { r.free_pinned(p) }
  noexcept->std::same_as<void>;
  { r.copy(p, from, bytes, s) } -> std::same_as<void>;
  { r.zero(p, bytes, s) } -> std::same_as<void>;
  { r.wait(s) } -> std::same_as<void>;
};
// clang-format on

}  // namespace rondo::inline v0
