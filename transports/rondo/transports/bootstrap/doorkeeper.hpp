#pragma once

#include <rondo/detail/text.hpp>
#include <rondo/transports/bootstrap/endpoint.hpp>
#include <rondo/transports/bootstrap/fork_guard.hpp>
#include <rondo/transports/bootstrap/frame_stream.hpp>
#include <rondo/transports/bootstrap/handshake.hpp>

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <exception>
#include <functional>
#include <list>
#include <string>
#include <utility>
#include <vector>

namespace rondo::inline v0::detail {

/// Lets ranks in and keeps everybody else out, without ever waiting for one of them: every connection is a small state
/// machine with 5 seconds to prove the token. When connections or descriptors run short, the oldest stranger goes.
class doorkeeper {
 public:
  /// Why the coordinator turns an authenticated rank away; code none: it is let in.
  struct decision {
    refusal code = refusal::none;
    std::string what;
  };
  using judge = std::function<decision(settings const&)>;
  using admit = std::function<void(settings const&, frame_stream)>;

  static constexpr auto patience = std::chrono::seconds(5);
  static constexpr std::size_t most_strangers = 512;

  doorkeeper(file_descriptor listener, std::string token, judge decide, admit let_in)
      : listener_(std::move(listener)), guard_(listener_.get()), token_(std::move(token)), decide_(std::move(decide)),
        let_in_(std::move(let_in)) {}

  /// Appends what to poll. serve() must be called with these entries, in this order, before the next watch().
  void watch(std::vector<pollfd>& polled) const {
    polled.push_back({paused_ ? -1 : listener_.get(), POLLIN, 0});
    for (auto const& s : strangers_) polled.push_back({s.stream.fd(), s.stream.events(), 0});
  }

  /// When serve() must be called even if nothing was polled.
  steady::time_point next_deadline() const noexcept {
    if (paused_) return resume_;
    return strangers_.empty() ? steady::time_point::max() : strangers_.front().deadline;
  }

  void close() noexcept {
    paused_ = false;
    strangers_.clear();
    guard_.release();
    listener_.close();
  }

  void serve(pollfd const* polled) {
    auto const now = steady::now();
    if (paused_ && now >= resume_) paused_ = false;
    bool const knock = polled->revents != 0;
    for (auto s = strangers_.begin(); s != strangers_.end();)
      s = ((++polled)->revents != 0 && !talk(*s)) || now >= s->deadline ? strangers_.erase(s) : std::next(s);
    if (knock) accept_all(now);
  }

 private:
  struct stranger {
    frame_stream stream;
    steady::time_point deadline;
    std::string theirs, ours;  // nonces
    bool refused = false;      // stays until the refusal is out and read
  };

  void accept_all(steady::time_point now) {
    for (int i = 0; i < 64; ++i) {  // a few at a time: members come first
      file_descriptor fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
      if (!fd) {
        if (errno == EAGAIN || errno == EWOULDBLOCK) return;
        if (errno != EMFILE && errno != ENFILE && errno != ENOBUFS && errno != ENOMEM) continue;
        if (strangers_.empty()) {  // nothing to give up: look again when some may have become free
          paused_ = true;
          resume_ = now + std::chrono::milliseconds(100);
          return;
        }
        strangers_.pop_front();
        continue;
      }
      if (!same_user(fd.get())) continue;
      tune(fd.get());
      if (strangers_.size() == most_strangers) strangers_.pop_front();
      strangers_.push_back({frame_stream(std::move(fd)), now + patience, {}, {}, false});
    }
  }

  /// False when the stranger is done with: gone, refused or let in.
  bool talk(stranger& s) {
    try {
      bool const open = s.stream.fill();
      while (auto const f = s.stream.pop()) {
        if (s.refused) continue;
        if (answer(s, *f)) return false;
      }
      return s.stream.flush() && open;
    } catch (std::exception const&) { return false; }
  }

  /// True when the stranger has become a member.
  bool answer(stranger& s, frame const& f) {
    if (f.kind == message::hello && s.ours.empty()) {
      std::uint32_t protocol = 0;
      s.theirs = read_greeting(f.payload, protocol);
      s.ours = fresh_nonce();
      if (protocol != protocol_version)
        refuse(s, refusal::protocol,
               text_of({"rank 0 speaks version ", protocol_version, " of the start-up protocol and this rank version ",
                        protocol, ": build all ranks with the same rondo"}));
      else
        s.stream.push(message::challenge, 0, greeting(s.ours));
      return false;
    }
    if (f.kind != message::proof || s.ours.empty()) throw malformed{};

    unpacker in(f.payload);
    auto const statement = in.text();
    if (!same_secret(in.raw(sizeof(digest)), prove(token_, "rank", s.theirs, s.ours, statement))) {
      refuse(s, refusal::token, "the job token is not that of rank 0");
      return false;
    }
    unpacker stated(statement);
    auto const who = settings::unpack(stated);
    if (auto const no = decide_(who); no.code != refusal::none) {
      refuse(s, no.code, no.what);
      return false;
    }
    packer self;
    identity::own().pack(self);
    s.stream.push(message::welcome, 0, packer{}.text(self).raw(prove(token_, "coordinator", s.theirs, s.ours, self)));
    s.stream.permit(frame_stream::member_limit + 64);
    let_in_(who, std::move(s.stream));
    return true;
  }

  static void refuse(stranger& s, refusal code, std::string_view what) {
    s.stream.push(message::refusal, 0, packer{}.number(static_cast<std::uint8_t>(code)).text(what));
    s.refused = true;
  }

  file_descriptor listener_;
  fork_guard guard_;
  std::string token_;
  judge decide_;
  admit let_in_;
  std::list<stranger> strangers_;  // oldest first
  bool paused_ = false;
  steady::time_point resume_{};
};

}  // namespace rondo::inline v0::detail
