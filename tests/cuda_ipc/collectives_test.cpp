#include "backends.hpp"
#include <rondo/communicator.hpp>
#include <rondo/transports/any_transport.hpp>
#include <rondo/transports/host_staged.hpp>
#include <rondo/transports/multi.hpp>
#include <rondo/transports/tcp.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <tuple>
#include <vector>

namespace rondo::testing {
namespace {

using comm = communicator<any_transport>;
using staged_tcp = host_staged<tcp, host_runtime>;
using mixed = basic_multi<transport_type, staged_tcp>;

/// Runs body(communicator, options) on a thread for each rank, connected by connect(group, options of the rank).
template <class Connect>
void on_devices(int n, Connect const& connect, std::function<void(comm&, options_type const&)> const& body) {
  auto groups = in_process_group::make(n);
  auto const places = places_of(n, place::own_process);
  on_ranks(n, [&](rank_t r) {
    auto const& o = places[static_cast<std::size_t>(r)];
    auto g = std::move(groups[static_cast<std::size_t>(r)]);
    comm c(g, connect(g, o), {.deadline = std::chrono::seconds(20)});
    g.reset();
    body(c, o);
  });
  for (auto const& o : places) EXPECT_EQ(o.runtime.inside().faults(), std::vector<std::string>{});
}

any_transport directly(std::shared_ptr<group> const& g, options_type const& o) { return transport_type::connect(g, o); }
any_transport through_the_host(std::shared_ptr<group> const& g, options_type const& o) {
  return staged_tcp::connect(g, {.runtime = o.runtime, .piece_bytes = 5000});
}
/// Two ranks after the other play that they share a host.
any_transport by_hosts(std::shared_ptr<group> const& g, options_type const& o) {
  mixed::options_type options;
  options.host = std::to_string(g->rank() / 2);
  std::get<0>(options.each) = o;
  std::get<1>(options.each).runtime = o.runtime;
  return mixed::connect(g, options);
}

std::int32_t value(rank_t rank, std::size_t i) { return static_cast<std::int32_t>(i * 7 + 1) * (rank + 1); }

/// `count` numbers on a device, with guards around them.
class numbers {
 public:
  numbers(options_type const& o, std::size_t count) : buffer_(o.runtime, 2 * guard + 4 * count), count_(count) {
    buffer_.put(bytes(buffer_.all().size(), std::byte{0x5a}));
  }
  std::span<std::int32_t> all() const {
    return {reinterpret_cast<std::int32_t*>(buffer_.all().data() + guard), count_};
  }
  void fill(std::size_t first, std::size_t count, rank_t rank) const {
    std::vector<std::int32_t> host(count);
    for (std::size_t i = 0; i < count; ++i) host[i] = value(rank, i);
    buffer_.put(std::as_bytes(std::span(host)), guard + 4 * first);
  }
  void expect(std::size_t first, std::size_t count, rank_t rank) const {
    std::vector<std::int32_t> host(count);
    buffer_.get(std::as_writable_bytes(std::span(host)), guard + 4 * first);
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < count; ++i) wrong += host[i] != value(rank, i);
    EXPECT_EQ(wrong, 0u) << "of " << count << " from " << rank;
  }
  void expect_guards() const {
    bytes before(guard), after(guard);
    buffer_.get(before);
    buffer_.get(after, guard + 4 * count_);
    EXPECT_EQ(before, bytes(guard, std::byte{0x5a}));
    EXPECT_EQ(after, bytes(guard, std::byte{0x5a}));
  }

 private:
  static constexpr std::size_t guard = 64;
  device_buffer buffer_;
  std::size_t count_;
};

void move_everything(comm& c, options_type const& o) {
  auto const n = static_cast<std::size_t>(c.size());
  rank_t const me = c.rank();
  for (std::size_t const count :
       {std::size_t{0}, std::size_t{1}, std::size_t{2}, std::size_t{101}, std::size_t{70'001}}) {
    numbers const all(o, n * count), one(o, count);
    all.fill(static_cast<std::size_t>(me) * count, count, me);
    c.all_gather(std::span<std::int32_t const>(all.all().subspan(static_cast<std::size_t>(me) * count, count)),
                 all.all());
    for (rank_t q = 0; q < c.size(); ++q) all.expect(static_cast<std::size_t>(q) * count, count, q);
    for (rank_t root = 0; root < c.size(); ++root) {
      if (me == root) one.fill(0, count, root + 3);
      c.broadcast(one.all(), root);
      one.expect(0, count, root + 3);
    }
    one.fill(0, count, me);
    auto const right = (me + 1) % c.size(), left = (me + c.size() - 1) % c.size();
    auto sending = c.start_send(std::span<std::int32_t const>(one.all()), right);
    c.receive(all.all().first(count), left);
    sending.wait();
    all.expect(0, count, left);
    all.expect_guards();
    one.expect_guards();
  }
}

TEST(cuda_ipc_collectives, move_memory_of_devices) {
  for (int const n : {2, 3, 4, 5}) on_devices(n, directly, move_everything);
}

TEST(cuda_ipc_collectives, move_memory_of_devices_through_the_host) {
  for (int const n : {2, 3}) on_devices(n, through_the_host, move_everything);
}

TEST(cuda_ipc_collectives, move_memory_of_devices_between_hosts) {
  on_devices(4, by_hosts, [](comm& c, options_type const& o) {
    auto const said = c.explain();
    EXPECT_NE(said.find("with rank " + std::to_string(c.rank() ^ 1) + " by cuda_ipc"), said.npos) << said;
    EXPECT_NE(said.find("by tcp (cuda_ipc is not for hosts that are called apart)"), said.npos) << said;
    move_everything(c, o);
  });
}

/// Devices that cannot reach each other: the sentence says why memory goes through the host.
TEST(cuda_ipc_collectives, fall_back_to_memory_of_the_host_where_a_platform_lies) {
  auto const groups = in_process_group::make(2);
  auto const places = places_of(2, place::own_process, {.loses = [](int a, int b) { return a == 0 && b == 1; }});
  on_ranks(2, [&](rank_t r) {
    auto const i = static_cast<std::size_t>(r);
    mixed::options_type options;
    std::get<0>(options.each) = places[i];
    std::get<1>(options.each).runtime = places[i].runtime;
    auto x = mixed::connect(groups[i], options);
    auto const said = x.explain(1 - r);
    EXPECT_EQ(said.find("tcp (cuda_ipc failed: rank 1 cannot use the memory of another rank's device: what it got from "
                        "rank 0 is wrong"),
              0u)
        << said;
    EXPECT_TRUE(takes_device_memory(x));
    exchange(x, {1 - r}, stream(1, 1000));
  });
}

}  // namespace
}  // namespace rondo::testing
