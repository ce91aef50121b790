#pragma once

#include <rondo/detail/file_descriptor.hpp>
#include <rondo/transports/bootstrap/fork_guard.hpp>
#include <rondo/transports/bootstrap/wire.hpp>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <poll.h>
#include <string>
#include <string_view>
#include <sys/socket.h>
#include <utility>

namespace rondo::inline v0::detail {

struct frame {
  message kind{};
  std::uint64_t group = 0;  ///< which group it concerns
  std::string payload;
};

/// Frames over a non-blocking stream socket: {length of payload, kind, group} and the payload. Never blocks, and never
/// holds more than one frame of the permitted size per frame that was taken out.
class frame_stream {
 public:
  static constexpr std::size_t header = 16;
  static constexpr std::size_t stranger_limit = 256;      ///< largest payload before the peer has proved itself
  static constexpr std::size_t member_limit = 1U << 20U;  ///< and after

  frame_stream() = default;
  explicit frame_stream(file_descriptor socket, std::size_t limit = stranger_limit)
      : socket_(std::move(socket)), guard_(socket_.get()), limit_(limit) {}

  int fd() const noexcept { return socket_.get(); }
  void permit(std::size_t payload) noexcept { limit_ = payload; }
  bool unsent() const noexcept { return sent_ < outbox_.size(); }
  short events() const noexcept { return static_cast<short>(POLLIN | (unsent() ? POLLOUT : 0)); }
  void shut() noexcept { ::shutdown(fd(), SHUT_WR); }
  void close() noexcept {
    guard_.release();
    socket_.close();
  }

  /// Queues a frame; flush() sends it.
  void push(message kind, std::uint64_t group, std::string_view payload) {
    outbox_ += packer{}
                   .number(static_cast<std::uint32_t>(payload.size()))
                   .number(static_cast<std::uint32_t>(kind))
                   .number(group);
    outbox_ += payload;
  }

  /// Sends what the socket takes; false if the connection is broken.
  bool flush() {
    while (unsent()) {
      auto const n = ::send(fd(), outbox_.data() + sent_, outbox_.size() - sent_, MSG_NOSIGNAL | MSG_DONTWAIT);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return errno == EAGAIN || errno == EWOULDBLOCK;
      sent_ += static_cast<std::size_t>(n);
    }
    outbox_.clear();
    sent_ = 0;
    return true;
  }

  /// Takes in what has arrived, at most about one frame; false at the end of the stream. Frames may remain either way.
  bool fill() {
    drop_taken();
    auto const before = inbox_.size();
    auto const room = limit_ + header + 4096 - std::min(before, limit_ + header);
    inbox_.resize(before + std::min<std::size_t>(room, 1U << 16U));
    ssize_t n;
    do n = ::recv(fd(), inbox_.data() + before, inbox_.size() - before, MSG_DONTWAIT);
    while (n < 0 && errno == EINTR);
    auto const wrong = errno;
    inbox_.resize(before + (n > 0 ? static_cast<std::size_t>(n) : 0));
    return n > 0 || (n < 0 && (wrong == EAGAIN || wrong == EWOULDBLOCK));
  }

  /// The next complete frame. Throws malformed as soon as a header announces more than is permitted.
  std::optional<frame> pop() {
    if (inbox_.size() - taken_ < header) return std::nullopt;
    unpacker in(std::string_view(inbox_).substr(taken_));
    auto const length = in.number<std::uint32_t>();
    auto const kind = in.number<std::uint32_t>();
    auto const group = in.number<std::uint64_t>();
    if (length > limit_ || kind > static_cast<std::uint32_t>(message::farewell)) throw malformed{};
    if (in.rest().size() < length) return std::nullopt;
    taken_ += header + length;
    return frame{static_cast<message>(kind), group, std::string(in.raw(length))};
  }

 private:
  void drop_taken() {
    if (taken_ == 0) return;
    inbox_.erase(0, taken_);
    taken_ = 0;
  }

  file_descriptor socket_;
  fork_guard guard_;
  std::size_t limit_ = stranger_limit;
  std::string inbox_, outbox_;
  std::size_t taken_ = 0, sent_ = 0;
};

}  // namespace rondo::inline v0::detail
