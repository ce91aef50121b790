#pragma once

#include <rondo/element.hpp>

#include <cstddef>
#include <cstring>
#include <limits>
#include <memory>
#include <memory_resource>
#include <new>
#include <utility>

namespace rondo::inline v0 {

/// A buffer in the registered memory of a communicator, see communicator::allocate. A contiguous range that can be
/// moved, not copied; it keeps the memory that it lies in alive.
template <element T>
class registered_buffer {
 public:
  using value_type = T;

  registered_buffer() = default;
  registered_buffer(std::shared_ptr<std::pmr::memory_resource> memory, std::size_t count)
      : memory_(std::move(memory)), size_(count) {
    if (count > std::numeric_limits<std::size_t>::max() / sizeof(T)) throw std::bad_array_new_length();
    data_ = static_cast<T*>(memory_->allocate(bytes(), alignment));
    std::memset(static_cast<void*>(data_), 0, bytes());
  }
  registered_buffer(registered_buffer&& other) noexcept
      : memory_(std::move(other.memory_)), data_(std::exchange(other.data_, nullptr)),
        size_(std::exchange(other.size_, 0)) {}
  registered_buffer& operator=(registered_buffer&& other) noexcept {
    std::swap(memory_, other.memory_);
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~registered_buffer() {
    if (data_) memory_->deallocate(data_, bytes(), alignment);
  }

  T* data() noexcept { return data_; }
  T const* data() const noexcept { return data_; }
  std::size_t size() const noexcept { return size_; }
  bool empty() const noexcept { return size_ == 0; }
  T* begin() noexcept { return data_; }
  T const* begin() const noexcept { return data_; }
  T* end() noexcept { return data_ + size_; }
  T const* end() const noexcept { return data_ + size_; }
  T& operator[](std::size_t i) noexcept { return data_[i]; }
  T const& operator[](std::size_t i) const noexcept { return data_[i]; }

 private:
  static constexpr std::size_t alignment = 128 > alignof(T) ? 128 : alignof(T);  // no line shared with another buffer

  std::size_t bytes() const noexcept { return size_ * sizeof(T); }

  std::shared_ptr<std::pmr::memory_resource> memory_;
  T* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace rondo::inline v0
