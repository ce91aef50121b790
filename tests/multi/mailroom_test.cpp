#include "../conformance/ranks.hpp"
#include <rondo/adapters/torch/mailroom.hpp>
#include <rondo/transports/in_process_group.hpp>
#include <rondo/transports/multi.hpp>

#include <chrono>
#include <exception>
#include <future>
#include <gtest/gtest.h>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace rondo::testing {
namespace {

using namespace std::chrono_literals;
using mailroom = detail::mailroom<multi>;

constexpr std::size_t guard = 64;
constexpr std::byte untouched{0x5a};

/// One end of a message: its buffer between guard bytes, and how the call ended.
class end_of_message {
 public:
  explicit end_of_message(std::size_t bytes) : memory_(bytes + 2 * guard, untouched) {}
  explicit end_of_message(bytes const& text) : end_of_message(text.size()) {
    std::copy(text.begin(), text.end(), memory_.begin() + guard);
  }

  detail::parcel parcel(rank_t peer, std::uint64_t tag, std::chrono::milliseconds patience = 20s,
                        std::string_view type = "float32") {
    return {std::span(memory_).subspan(guard, memory_.size() - 2 * guard),
            to_short_name(type),
            peer,
            tag,
            group::clock::now() + patience,
            [this](rank_t from, std::exception_ptr const& wrong) {
              wrong ? over_.set_exception(wrong) : over_.set_value(from);
            }};
  }

  /// Whose it was; throws what went wrong.
  rank_t wait() {
    auto outcome = over_.get_future();
    if (outcome.wait_for(30s) != std::future_status::ready) throw std::runtime_error("a message is never over");
    return outcome.get();
  }

  bytes text() const {
    for (std::size_t i = 0; i < guard; ++i)
      if (memory_[i] != untouched || memory_[memory_.size() - 1 - i] != untouched) ADD_FAILURE() << "guard bytes";
    return {memory_.begin() + guard, memory_.end() - guard};
  }

 private:
  bytes memory_;
  std::promise<rank_t> over_;
};

/// What the call threw, or an empty text.
std::string complaint(end_of_message& e) {
  try {
    e.wait();
  } catch (std::exception const& wrong) { return wrong.what(); }
  return {};
}

/// Ranks per host; all of a host share memory, others use TCP.
class mailrooms : public ::testing::TestWithParam<int> {
 protected:
  template <class Body>
  void on(int n, Body body) const {
    auto groups = in_process_group::make(n);
    on_ranks(n, [&](rank_t r) {
      auto const g = std::move(groups[static_cast<std::size_t>(r)]);
      multi::options_type options;
      options.host = "host " + std::to_string(r / GetParam());
      body(r, std::make_unique<mailroom>(g, multi::connect(g, options)), *g);
    });
  }
};
INSTANTIATE_TEST_SUITE_P(hosts, mailrooms, ::testing::Values(8, 1, 2));

std::uint64_t seed(rank_t from, rank_t to, std::uint64_t tag) {
  return static_cast<std::uint64_t>(from * 100 + to) * 100 + tag;
}

constexpr std::size_t sizes[] = {0, 1, 4099, std::size_t{3} << 20, 17};  // more than a stream holds among them

TEST_P(mailrooms, tags_tell_messages_apart_in_any_order) {
  for (int const n : {2, 3, 5})
    on(n, [n](rank_t me, std::unique_ptr<mailroom> room, group&) {
      std::vector<std::unique_ptr<end_of_message>> out, in;
      for (rank_t q = 0; q < n; ++q)
        for (std::uint64_t tag = 0; q != me && tag < std::size(sizes); ++tag) {
          out.push_back(std::make_unique<end_of_message>(stream(seed(me, q, tag), sizes[tag])));
          room->send(out.back()->parcel(q, tag));
        }
      for (rank_t q = 0; q < n; ++q)
        for (std::uint64_t tag = std::size(sizes); q != me && tag-- > 0;) {
          in.push_back(std::make_unique<end_of_message>(sizes[tag]));
          room->receive(in.back()->parcel(q, tag));
          if (tag % 2 == 0) {
            EXPECT_EQ(in.back()->wait(), q);
            EXPECT_EQ(in.back()->text(), stream(seed(q, me, tag), sizes[tag]));
            in.pop_back();
          }
        }
      auto next = in.begin();
      for (rank_t q = 0; q < n; ++q)
        for (std::uint64_t const tag : {3, 1}) {
          if (q == me) continue;
          EXPECT_EQ((*next)->wait(), q);
          EXPECT_EQ((*next++)->text(), stream(seed(q, me, tag), sizes[tag]));
        }
      for (auto& o : out) o->wait();
    });
}

TEST_P(mailrooms, messages_of_one_tag_keep_their_order) {
  on(2, [](rank_t me, std::unique_ptr<mailroom> room, group&) {
    std::vector<std::unique_ptr<end_of_message>> ends;
    for (std::uint64_t i = 0; i < 200; ++i) {
      ends.push_back(me == 0 ? std::make_unique<end_of_message>(stream(i, 5 + i))
                             : std::make_unique<end_of_message>(5 + i));
      if (me == 0)
        room->send(ends.back()->parcel(1, 7));
      else
        room->receive(ends.back()->parcel(0, 7));
    }
    for (std::uint64_t i = 0; i < 200; ++i) {
      EXPECT_EQ(ends[i]->wait(), 1 - me);
      EXPECT_EQ(ends[i]->text(), stream(i, 5 + i));
    }
  });
}

TEST_P(mailrooms, a_receive_from_any_rank_gets_each_message_once) {
  for (int const n : {2, 4})
    on(n, [n](rank_t me, std::unique_ptr<mailroom> room, group&) {
      if (me != 0) {
        end_of_message wanted(stream(seed(me, 0, 1), 1000)), other(stream(seed(me, 0, 2), 10));
        room->send(other.parcel(0, 2));
        room->send(wanted.parcel(0, 1));
        other.wait();
        wanted.wait();
        return;
      }
      std::set<rank_t> senders;
      for (int i = 1; i < n; ++i) {
        end_of_message in(1000);
        room->receive(in.parcel(nobody, 1));
        rank_t const from = in.wait();
        EXPECT_EQ(in.text(), stream(seed(from, 0, 1), 1000));
        senders.insert(from);
      }
      EXPECT_EQ(senders.size(), static_cast<std::size_t>(n - 1));
      for (rank_t q = 1; q < n; ++q) {
        end_of_message in(10);
        room->receive(in.parcel(q, 2));
        EXPECT_EQ(in.wait(), q);
        EXPECT_EQ(in.text(), stream(seed(q, 0, 2), 10));
      }
    });
}

TEST_P(mailrooms, ends_that_disagree_are_told_what_both_said) {
  for (bool const kept : {false, true})  // aside, while another tag was waited for
    on(2, [kept](rank_t me, std::unique_ptr<mailroom> room, group& g) {
      end_of_message right(bytes(4)), wrong(bytes(12)), other(8);
      if (me == 0) {
        room->send(wrong.parcel(1, 3, 20s, "int64"));
        room->send(right.parcel(1, 4));
        while (!g.failed()) std::this_thread::sleep_for(1ms);
        EXPECT_EQ(g.verdict().why, failure::kind::mismatch);
        complaint(wrong);  // both are over, in one way or the other
        complaint(right);
        return;
      }
      if (kept) {
        room->receive(right.parcel(0, 4));
        right.wait();
      }
      room->receive(other.parcel(0, 3));
      auto const said = complaint(other);
      EXPECT_NE(said.find("rank 0 sent 12 bytes of int64 with tag 3, but rank 1 receives 8 bytes of float32"),
                said.npos)
          << said;
    });
}

TEST_P(mailrooms, a_message_that_never_comes_ends_at_its_deadline) {
  on(2, [](rank_t me, std::unique_ptr<mailroom> room, group& g) {
    if (me == 1) {
      while (!g.failed()) std::this_thread::sleep_for(1ms);
      end_of_message late(4);
      room->receive(late.parcel(0, 0));
      EXPECT_NE(complaint(late), "");
      return;
    }
    end_of_message in(4), behind(4);
    room->receive(in.parcel(1, 0, 200ms));
    room->receive(behind.parcel(1, 1, 20s));
    EXPECT_NE(complaint(in), "");
    EXPECT_NE(complaint(behind), "");
    EXPECT_EQ(g.verdict().why, failure::kind::deadline);
  });
}

TEST_P(mailrooms, what_a_rank_sent_before_it_left_arrives) {
  on(2, [](rank_t me, std::unique_ptr<mailroom> room, group&) {
    end_of_message first(stream(1, 100)), second(stream(2, 100));
    if (me == 1) {
      room->send(first.parcel(0, 1));
      room->send(second.parcel(0, 2));
      second.wait();
      return;
    }
    std::this_thread::sleep_for(500ms);
    end_of_message in(100);
    room->receive(in.parcel(1, 2));
    in.wait();
    EXPECT_EQ(in.text(), stream(2, 100));
    end_of_message late(100);
    room->receive(late.parcel(1, 1));
    late.wait();
    EXPECT_EQ(late.text(), stream(1, 100));
  });
}

TEST_P(mailrooms, what_is_still_to_be_received_fails_when_the_room_closes) {
  on(2, [](rank_t me, std::unique_ptr<mailroom> room, group&) {
    end_of_message in(4);
    room->receive(in.parcel(1 - me, 0));
    room.reset();
    EXPECT_NE(complaint(in).find("wait for its handle first"), std::string::npos);
  });
}

}  // namespace
}  // namespace rondo::testing
