#pragma once

#include <rondo/transports/bootstrap/endpoint.hpp>
#include <rondo/transports/bootstrap/frame_stream.hpp>
#include <rondo/transports/bootstrap/handshake.hpp>
#include <rondo/transports/bootstrap/wakeup.hpp>

#include <array>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <map>
#include <mutex>
#include <string_view>
#include <thread>
#include <utility>

namespace rondo::inline v0::detail {

/// What a control_link calls, always with its mutex held.
class link_listener {
 public:
  virtual void on_frame(frame const&) = 0;
  /// The coordinator has gone: `cleanly`, or it died.
  virtual void on_hub_gone(bool cleanly) = 0;

 protected:
  ~link_listener() = default;
};

/// The connection of one rank to the coordinator, and the thread that keeps it: sleeps in poll(), hands arriving frames
/// to the groups, and answers probes even while the program computes. All groups of the rank share it.
class control_link {
 public:
  control_link(frame_stream stream, identity hub) : stream_(std::move(stream)), hub_(std::move(hub)) {}

  /// Starts the thread; to be called once the first group has subscribed, so that no frame finds nobody.
  void start() {
    thread_ = quiet_thread([this] { run(); });
  }

  /// Says goodbye, and waits a moment for the coordinator to hang up.
  ~control_link() {
    {
      std::scoped_lock const lock(mutex_);
      leaving_ = true;
      if (!farewell_) stream_.push(message::goodbye, 0, {});
    }
    wakeup_.ring();
    if (thread_.joinable()) thread_.join();
  }
  control_link(control_link const&) = delete;
  control_link& operator=(control_link const&) = delete;

  std::unique_lock<std::mutex> lock() { return std::unique_lock(mutex_); }

  /// Notified after every frame and when the coordinator goes.
  std::condition_variable& changed() noexcept { return changed_; }

  /// The process of rank 0.
  identity const& hub() const noexcept { return hub_; }

  // With the lock held:
  void push(message kind, std::uint64_t group, std::string_view payload) {
    if (hub_gone()) return;
    stream_.push(kind, group, payload);
    wakeup_.ring();
  }
  bool hub_gone() const noexcept { return gone_ || farewell_; }
  bool hub_left() const noexcept { return farewell_; }  ///< cleanly
  void subscribe(std::uint64_t group, link_listener& listener) { listeners_.emplace(group, &listener); }
  void unsubscribe(std::uint64_t group) noexcept { listeners_.erase(group); }

 private:
  static constexpr auto goodbye_patience = std::chrono::milliseconds(500);

  void run() noexcept {
    auto lock = this->lock();
    auto give_up = steady::time_point::max();
    while (!(leaving_ && (gone_ || steady::now() >= give_up))) {
      if (!gone_) (void)stream_.flush();
      if (leaving_ && give_up == steady::time_point::max()) give_up = steady::now() + goodbye_patience;
      if (leaving_ && !gone_ && !stream_.unsent()) stream_.shut();
      std::array polled{pollfd{wakeup_.fd(), POLLIN, 0}, pollfd{gone_ ? -1 : stream_.fd(), stream_.events(), 0}};

      lock.unlock();
      if (::poll(polled.data(), polled.size(), poll_timeout(give_up)) < 0) polled = {};
      lock.lock();

      if (polled[0].revents != 0) wakeup_.hush();
      if (!gone_ && (polled[1].revents & ~POLLOUT) != 0) receive();
      changed_.notify_all();
    }
    stream_.close();
  }

  void receive() {
    bool open = false;
    try {
      open = stream_.fill();
      while (auto const f = stream_.pop()) dispatch(*f);
    } catch (std::exception const&) { open = false; }
    if (open) return;
    gone_ = true;
    for (auto const& [id, listener] : listeners_) listener->on_hub_gone(farewell_);
  }

  void dispatch(frame const& f) {
    if (f.kind == message::farewell) {
      farewell_ = true;
      stream_.push(message::goodbye, 0, {});
      (void)stream_.flush();
      stream_.shut();
      return;
    }
    if (auto const to = listeners_.find(f.group); to != listeners_.end()) return to->second->on_frame(f);
    if (f.kind == message::probe)  // a group that this rank has not opened yet: it has entered nothing
      stream_.push(message::progress, f.group,
                   packer{}
                       .number(unpacker(f.payload).number<std::uint64_t>())
                       .number(std::uint64_t{0})
                       .number(std::uint64_t{0}));
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  wakeup wakeup_;
  frame_stream stream_;
  identity hub_;
  std::map<std::uint64_t, link_listener*> listeners_;
  bool leaving_ = false, gone_ = false, farewell_ = false;
  std::thread thread_;
};

}  // namespace rondo::inline v0::detail
