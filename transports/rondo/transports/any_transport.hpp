#pragma once

#include <rondo/group.hpp>
#include <rondo/memory.hpp>
#include <rondo/reconnect.hpp>
#include <rondo/registered_memory.hpp>
#include <rondo/transport.hpp>

#include <chrono>
#include <concepts>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace rondo::inline v0 {

/// Any transport, chosen at run time: owns one and hands every call on, at the price of a virtual call. Models
/// transport and keeps the guarantees of what is inside.
class any_transport {
 public:
  template <transport X>
    requires(!std::same_as<X, any_transport>)
  explicit(false) any_transport(X x) : inside_(std::make_unique<model<X>>(std::move(x))) {}

  /// The name of the transport inside, or an empty text if it has none.
  std::string_view name() const noexcept { return inside_->name(); }

  rank_t rank() const noexcept { return inside_->rank(); }
  int size() const noexcept { return inside_->size(); }
  std::size_t write(rank_t peer, std::span<std::byte const> bytes, bool more) {
    return inside_->write(peer, bytes, more);
  }
  std::span<std::byte const> readable(rank_t peer, std::size_t need) { return inside_->readable(peer, need); }
  void consume(rank_t peer, std::size_t n) { inside_->consume(peer, n); }
  std::size_t read(rank_t peer, std::span<std::byte> bytes) { return inside_->read(peer, bytes); }
  void wait(std::chrono::nanoseconds patience) { inside_->wait(patience); }
  std::size_t piece_bytes() const noexcept { return inside_->piece_bytes(); }
  bool takes_device_memory() const noexcept { return inside_->takes_device_memory(); }
  std::span<std::byte> board(rank_t owner) const { return inside_->board(owner); }
  mailbox& mail(rank_t owner, rank_t writer) const { return inside_->mail(owner, writer); }
  void notify(rank_t peer) { inside_->notify(peer); }
  std::shared_ptr<registered_memory> registered() const { return inside_->registered(); }
  rank_t host_leader() const noexcept { return inside_->host_leader(); }
  std::string explain(rank_t peer) const { return inside_->explain(peer); }
  any_transport reconnect(std::shared_ptr<group> const& ranks, group::clock::time_point deadline) const {
    return inside_->reconnect(ranks, deadline);
  }

 private:
  struct contract {
    virtual ~contract() = default;
    virtual std::string_view name() const noexcept = 0;
    virtual rank_t rank() const noexcept = 0;
    virtual int size() const noexcept = 0;
    virtual std::size_t write(rank_t, std::span<std::byte const>, bool) = 0;
    virtual std::span<std::byte const> readable(rank_t, std::size_t) = 0;
    virtual void consume(rank_t, std::size_t) = 0;
    virtual std::size_t read(rank_t, std::span<std::byte>) = 0;
    virtual void wait(std::chrono::nanoseconds) = 0;
    virtual std::size_t piece_bytes() const noexcept = 0;
    virtual bool takes_device_memory() const noexcept = 0;
    virtual std::span<std::byte> board(rank_t) const = 0;
    virtual mailbox& mail(rank_t, rank_t) const = 0;
    virtual void notify(rank_t) = 0;
    virtual std::shared_ptr<registered_memory> registered() const = 0;
    virtual rank_t host_leader() const noexcept = 0;
    virtual std::string explain(rank_t) const = 0;
    virtual any_transport reconnect(std::shared_ptr<group> const&, group::clock::time_point) const = 0;
  };

  template <transport X>
  struct model final : contract {
    explicit model(X inner) : x(std::move(inner)) {}

    std::string_view name() const noexcept override { return transport_name(x); }
    rank_t rank() const noexcept override { return x.rank(); }
    int size() const noexcept override { return x.size(); }
    std::size_t write(rank_t peer, std::span<std::byte const> bytes, bool more) override {
      return x.write(peer, bytes, more);
    }
    std::span<std::byte const> readable(rank_t peer, std::size_t need) override { return x.readable(peer, need); }
    void consume(rank_t peer, std::size_t n) override { x.consume(peer, n); }
    std::size_t read(rank_t peer, std::span<std::byte> bytes) override { return x.read(peer, bytes); }
    void wait(std::chrono::nanoseconds patience) override { x.wait(patience); }
    std::size_t piece_bytes() const noexcept override { return rondo::piece_bytes(x); }
    bool takes_device_memory() const noexcept override { return rondo::takes_device_memory(x); }
    std::span<std::byte> board(rank_t owner) const override {
      if constexpr (addressable<X>) return x.board(owner);
      return {};
    }
    mailbox& mail(rank_t owner, rank_t writer) const override {
      if constexpr (addressable<X>) return x.mail(owner, writer);
      static mailbox none;  // who has no board has no use for it
      return none;
    }
    void notify(rank_t peer) override {
      if constexpr (addressable<X>) x.notify(peer);
    }
    std::shared_ptr<registered_memory> registered() const override {
      if constexpr (addressable<X>) return x.registered();
      return {};
    }
    rank_t host_leader() const noexcept override {
      if constexpr (requires { x.host_leader(); }) return x.host_leader();
      return nobody;
    }
    std::string explain(rank_t peer) const override {
      if constexpr (requires { x.explain(peer); }) return x.explain(peer);
      return std::string(name());
    }
    any_transport reconnect(std::shared_ptr<group> const& ranks, group::clock::time_point deadline) const override {
      return any_transport(rondo::reconnect(x, ranks, deadline));
    }

    X x;
  };

  std::unique_ptr<contract> inside_;
};

static_assert(addressable<any_transport>);

}  // namespace rondo::inline v0
