#pragma once

#include <rondo/error.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <memory>
#include <poll.h>
#include <string>
#include <sys/resource.h>

namespace rondo::inline v0::detail {

/// Gives back what libibverbs has made.
struct verbs_deleter {
  void operator()(::ibv_context* it) const noexcept { ::ibv_close_device(it); }
  void operator()(::ibv_pd* it) const noexcept { ::ibv_dealloc_pd(it); }
  void operator()(::ibv_mr* it) const noexcept { ::ibv_dereg_mr(it); }
  void operator()(::ibv_cq* it) const noexcept { ::ibv_destroy_cq(it); }
  void operator()(::ibv_qp* it) const noexcept { ::ibv_destroy_qp(it); }
  void operator()(::ibv_ah* it) const noexcept { ::ibv_destroy_ah(it); }
  void operator()(::ibv_comp_channel* it) const noexcept { ::ibv_destroy_comp_channel(it); }
};
template <class T>
using verbs_owner = std::unique_ptr<T, verbs_deleter>;

/// What to say when memory cannot be registered. `limit` in bytes; RLIM_INFINITY: there is none.
inline std::string memory_complaint(std::string const& device, std::size_t bytes, ::rlim_t limit, int code) {
  auto const text = "cannot register " + std::to_string(bytes) + " bytes with " + device + " (" + std::strerror(code);
  if (limit == RLIM_INFINITY || limit >= bytes) return text + "); use fewer or smaller slots";
  return text + "): the limit on locked memory is " + std::to_string(limit) +
         " bytes; raise it (ulimit -l unlimited), or use fewer or smaller slots";
}

/// An RDMA device that is open, with one completion queue for all that this rank sends through it and one for all that
/// it receives.
class verbs_device {
 public:
  explicit verbs_device(::ibv_device* device)
      : name_(::ibv_get_device_name(device)), context_(::ibv_open_device(device)) {
    if (!context_) fail("be opened", errno);
    pd_.reset(::ibv_alloc_pd(context_.get()));
    if (!pd_) fail("be used", errno);
    unblock(context_->async_fd);
  }

  std::string const& name() const noexcept { return name_; }
  ::ibv_context* context() const noexcept { return context_.get(); }
  ::ibv_pd* pd() const noexcept { return pd_.get(); }
  ::ibv_cq* send_queue() const noexcept { return queues_[0].get(); }
  ::ibv_cq* receive_queue() const noexcept { return queues_[1].get(); }
  ::ibv_mr const& memory() const noexcept { return *memory_; }

  /// Makes the completion queues; with room for everything that can be under way they never overrun.
  void make_queues(int sends, int receives) {
    ::ibv_device_attr limits{};
    if (int const code = ::ibv_query_device(context(), &limits); code != 0) fail("be queried", code);
    if (std::max(sends, receives) > limits.max_cqe)
      throw connect_error(name_ + " has completion queues of " + std::to_string(limits.max_cqe) + " entries, and " +
                          std::to_string(std::max(sends, receives)) + " are needed; use fewer slots or rails");
    channel_.reset(::ibv_create_comp_channel(context()));
    if (!channel_) fail("make a completion channel", errno);
    unblock(channel_->fd);
    for (std::size_t i = 0; i < queues_.size(); ++i) {
      queues_[i].reset(::ibv_create_cq(context(), i == 0 ? sends : receives, nullptr, channel_.get(), 0));
      if (!queues_[i]) fail("make a completion queue", errno);
    }
  }

  /// Lets the device read the memory and peers write to it.
  void register_memory(std::byte* data, std::size_t bytes) {
    memory_.reset(::ibv_reg_mr(pd(), data, bytes, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE));
    if (memory_) return;
    int const code = errno;
    ::rlimit limit{RLIM_INFINITY, RLIM_INFINITY};
    ::getrlimit(RLIMIT_MEMLOCK, &limit);
    throw connect_error(memory_complaint(name_, bytes, limit.rlim_cur, code));
  }

  /// Hands all completions to handle(wc), those of receives first; false if the device does not answer.
  template <class Handle>
  bool poll(Handle&& handle) {
    std::array<::ibv_wc, 32> completions;
    for (auto* const queue : {receive_queue(), send_queue()})
      for (int n = 1; n > 0;) {
        n = ::ibv_poll_cq(queue, static_cast<int>(completions.size()), completions.data());
        if (n < 0) return false;
        for (int i = 0; i < n; ++i) handle(completions[static_cast<std::size_t>(i)]);
      }
    return true;
  }

  /// Asks for a notification of the next completion. What has come before makes none: poll again.
  void arm() noexcept {
    take_notifications();
    for (std::size_t i = 0; i < queues_.size(); ++i)
      if (!armed_[i]) armed_[i] = ::ibv_req_notify_cq(queues_[i].get(), 0) == 0;
  }

  void take_notifications() noexcept {
    ::ibv_cq* queue = nullptr;
    void* context = nullptr;
    while ((armed_[0] || armed_[1]) && ::ibv_get_cq_event(channel_.get(), &queue, &context) == 0) {
      ::ibv_ack_cq_events(queue, 1);
      armed_[queue == send_queue() ? 0 : 1] = false;
    }
  }

  /// Hands all events of the device itself to handle(event).
  template <class Handle>
  void take_events(Handle&& handle) {
    ::ibv_async_event event{};
    while (::ibv_get_async_event(context(), &event) == 0) {
      handle(event);
      ::ibv_ack_async_event(&event);
    }
  }

  /// Completions, and events of the device.
  std::array<pollfd, 2> watch() const noexcept {
    return {{{channel_->fd, POLLIN, 0}, {context_->async_fd, POLLIN, 0}}};
  }

 private:
  static void unblock(int fd) noexcept { ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK); }

  [[noreturn]] void fail(char const* what, int code) const {
    throw connect_error("the RDMA device " + name_ + " cannot " + what + " (" + std::strerror(code) +
                        "); check its driver, or choose another one with RONDO_IB_HCA");
  }

  std::string name_;
  verbs_owner<::ibv_context> context_;
  verbs_owner<::ibv_pd> pd_;
  verbs_owner<::ibv_comp_channel> channel_;
  std::array<verbs_owner<::ibv_cq>, 2> queues_;  // of sends and of receives
  verbs_owner<::ibv_mr> memory_;
  std::array<bool, 2> armed_{};
};

}  // namespace rondo::inline v0::detail
