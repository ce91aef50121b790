#include <rondo/transports/verbs.hpp>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <gtest/gtest.h>
#include <optional>
#include <string>
#include <string_view>
#include <sys/resource.h>
#include <vector>

namespace rondo::detail {
namespace {

using kind = verbs_gid::kind;

verbs_gid gid(int index, kind type, std::string const& address) {
  verbs_gid g{{}, index, type};
  EXPECT_EQ(::inet_pton(AF_INET6, address.c_str(), g.bytes.data()), 1) << address;
  return g;
}

std::string order(std::vector<verbs_gid> const& table) {
  std::string text;
  for (auto const& g : by_preference(table)) text += std::to_string(g.index);
  return text;
}

TEST(verbs_gid, prefers_v2_to_v1_and_what_is_routed_to_what_is_not) {
  EXPECT_EQ(order({gid(0, kind::roce_v1, "fe80::1"), gid(1, kind::roce_v2, "fe80::1"), gid(2, kind::roce_v1, "fd00::1"),
                   gid(3, kind::roce_v2, "fd00::1"), gid(4, kind::roce_v1, "::ffff:10.0.0.1"),
                   gid(5, kind::roce_v2, "::ffff:10.0.0.1")}),
            "531420");
}

TEST(verbs_gid, takes_the_first_of_those_that_are_alike) {
  EXPECT_EQ(order({gid(0, kind::roce_v2, "fe80::1"), gid(1, kind::roce_v2, "::ffff:10.0.0.1"),
                   gid(2, kind::roce_v2, "::ffff:10.0.1.1"), gid(3, kind::roce_v2, "fe80::2")}),
            "1203");
  EXPECT_EQ(order({gid(0, kind::infiniband, "fe80::2:1"), gid(1, kind::infiniband, "fec0::2:1")}), "01");
}

TEST(verbs_gid, never_takes_an_empty_entry) { EXPECT_EQ(order({gid(0, kind::roce_v2, "::")}), ""); }

TEST(hca_filter, reads_the_grammar_of_nccl) {
  struct {
    char const* text;
    std::string_view device;
    int port;
    bool accepted;
  } const cases[] = {
      {"", "mlx5_0", 1, true},          {"mlx5", "mlx5_0", 2, true},       {"mlx5", "rxe0", 1, false},
      {"mlx5,rxe", "rxe0", 1, true},    {"mlx5_1", "mlx5_10", 1, true},    {"=mlx5_1", "mlx5_10", 1, false},
      {"=mlx5_1", "mlx5_1", 2, true},   {"=mlx5_1:2", "mlx5_1", 1, false}, {"mlx5:2,rxe", "mlx5_0", 2, true},
      {"^mlx5", "mlx5_0", 1, false},    {"^mlx5", "rxe0", 1, true},        {"^=mlx5_1", "mlx5_10", 1, true},
      {"^mlx5_0:1", "mlx5_0", 2, true}, {"^mlx5_0:1", "mlx5_0", 1, false}, {",rxe,", "rxe0", 1, true},
  };
  for (auto const& c : cases)
    EXPECT_EQ(hca_filter(c.text).accepts(c.device, c.port), c.accepted) << c.text << " " << c.device << ":" << c.port;
}

TEST(hca_filter, refuses_what_it_cannot_read) {
  for (char const* text : {"^", "=", ",", "rxe0:", "rxe0:0", "rxe0:x", "rxe0:1x", ":1"})
    EXPECT_THROW(hca_filter{text}, invalid_argument) << text;
}

/// Sets variables for one test.
class environment_of_a_test : public ::testing::Test {
 protected:
  void TearDown() override {
    for (char const* name : {"RONDO_IB_HCA", "NCCL_IB_HCA", "RONDO_IB_GID_INDEX", "NCCL_IB_GID_INDEX"})
      ::unsetenv(name);
  }
};
using verbs_environment = environment_of_a_test;

TEST_F(verbs_environment, prefers_the_variables_of_rondo) {
  EXPECT_EQ(hca_filter::from_environment().text(), "");
  EXPECT_EQ(gid_index_from_environment(), -1);
  ::setenv("NCCL_IB_HCA", "mlx5", 1);
  ::setenv("NCCL_IB_GID_INDEX", "3", 1);
  EXPECT_EQ(hca_filter::from_environment().text(), "mlx5");
  EXPECT_EQ(gid_index_from_environment(), 3);
  ::setenv("RONDO_IB_HCA", "=rxe0", 1);
  ::setenv("RONDO_IB_GID_INDEX", "1", 1);
  EXPECT_EQ(hca_filter::from_environment().text(), "=rxe0");
  EXPECT_EQ(gid_index_from_environment(), 1);
  for (char const* wrong : {"x", "1x", "-2", "1 "}) {
    ::setenv("RONDO_IB_GID_INDEX", wrong, 1);
    EXPECT_THROW(gid_index_from_environment(), invalid_argument) << wrong;
  }
}

TEST(verbs_ports, refuse_iwarp_with_a_sentence) {
  EXPECT_EQ(refusal("rxe0", IBV_TRANSPORT_IB), "");
  EXPECT_EQ(refusal("siw0", IBV_TRANSPORT_IWARP),
            "siw0 speaks iWARP, which has no writes with immediate data: use tcp over its network interface");
  EXPECT_NE(refusal("usnic0", IBV_TRANSPORT_USNIC), "");
}

TEST(verbs_ports, say_what_to_do_without_a_device) {
  EXPECT_EQ(no_devices(ENOSYS),
            "this machine has no RDMA device, and its kernel no support for one (module ib_uverbs): load the driver of "
            "the adapter, give the container access to /dev/infiniband, or use tcp");
  EXPECT_EQ(no_devices(0), "this machine has no RDMA device: load the driver of the adapter, give the container access "
                           "to /dev/infiniband, or use tcp");
  EXPECT_NE(no_devices(EACCES).find("Permission denied"), std::string::npos);
}

TEST(verbs_device, names_the_limit_on_locked_memory) {
  EXPECT_EQ(memory_complaint("rxe0", 4'194'304, 65'536, ENOMEM),
            "cannot register 4194304 bytes with rxe0 (Cannot allocate memory): the limit on locked memory is 65536 "
            "bytes; raise it (ulimit -l unlimited), or use fewer or smaller slots");
  EXPECT_EQ(memory_complaint("rxe0", 4'194'304, RLIM_INFINITY, ENOMEM),
            "cannot register 4194304 bytes with rxe0 (Cannot allocate memory); use fewer or smaller slots");
}

TEST(verbs_mesh, takes_the_smaller_of_two_mtus) {
  EXPECT_EQ(common_mtu(IBV_MTU_4096, IBV_MTU_1024), IBV_MTU_1024);
  EXPECT_EQ(common_mtu(IBV_MTU_1024, IBV_MTU_4096), IBV_MTU_1024);
  EXPECT_EQ(common_mtu(IBV_MTU_2048, IBV_MTU_2048), IBV_MTU_2048);
}

TEST(verbs_immediate, travels_in_network_byte_order) {
  verbs_immediate const sent{verbs_immediate::kind::farewell, 0x0304};
  std::array<unsigned char, 4> bytes;
  auto const bits = sent.encode();
  std::memcpy(bytes.data(), &bits, sizeof bits);
  EXPECT_EQ(bytes, (std::array<unsigned char, 4>{0, 2, 3, 4}));
  auto const back = verbs_immediate::decode(bits);
  EXPECT_EQ(back.what, sent.what);
  EXPECT_EQ(back.credits, sent.credits);
}

verbs_wiring example() {
  verbs_wiring w;
  w.stripe = 131072;
  w.slots = 32;
  w.slot_bytes = 16384;
  w.rails = {{true, gid(1, kind::roce_v2, "::ffff:10.9.0.1").bytes, 0, 5, 0x7f00'1234'5000, 0xfedc},
             {false, gid(0, kind::infiniband, "fe80::2:c903:1:2").bytes, 0xbeef, 4, ~std::uint64_t{0}, 0xffffffff}};
  w.queue_pairs = {{0, 0}, {0, 0}, {17, 0xffffff}, {0xffffff, 1}};
  return w;
}

TEST(verbs_wiring, survives_its_text) {
  auto const w = example(), again = verbs_wiring::decode(w.encode(), 0, 2);
  EXPECT_EQ(again.encode(), w.encode());
  EXPECT_TRUE(again.same_shape(w));
  ASSERT_EQ(again.rails.size(), 2u);
  EXPECT_TRUE(again.rails[0].ethernet);
  EXPECT_EQ(again.rails[0].gid, w.rails[0].gid);
  EXPECT_EQ(again.rails[0].memory, w.rails[0].memory);
  EXPECT_EQ(again.rails[1].lid, 0xbeef);
  EXPECT_EQ(again.rails[1].mtu, 4);
  EXPECT_EQ(again.rails[1].key, 0xffffffffu);
  EXPECT_EQ(again.of(1, 0).number, 17u);
  EXPECT_EQ(again.of(1, 0).psn, 0xffffffu);
  EXPECT_EQ(again.of(1, 1).number, 0xffffffu);
}

TEST(verbs_wiring, tells_shapes_apart) {
  for (auto change : {+[](verbs_wiring& w) { ++w.stripe; }, +[](verbs_wiring& w) { ++w.slots; },
                      +[](verbs_wiring& w) { ++w.slot_bytes; }, +[](verbs_wiring& w) { w.rails.pop_back(); }}) {
    auto other = example();
    change(other);
    EXPECT_FALSE(other.same_shape(example()));
  }
}

TEST(verbs_wiring, names_the_rank_that_sent_nonsense) {
  auto const good = example().encode();
  std::vector<std::string> texts{"", " ", "!", "2 0 1 2 1 ", "1 41 1 2 1 ", good + "0 ", good + "x", "-" + good};
  for (std::size_t n = 0; n < good.size(); ++n) texts.push_back(good.substr(0, n));
  for (auto const& text : texts) {
    try {
      verbs_wiring::decode(text, 7, 2);
      ADD_FAILURE() << text;
    } catch (connect_error const& e) { EXPECT_EQ(e.rank(), 7); }
  }
  EXPECT_THROW(verbs_wiring::decode(good, 7, 3), connect_error);
}

}  // namespace
}  // namespace rondo::detail
