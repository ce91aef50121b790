#pragma once

#include <rondo/run/all_offers.hpp>
#include <rondo/run/boards.hpp>
#include <rondo/run/flight.hpp>
#include <rondo/run/greeting.hpp>
#include <rondo/run/job.hpp>
#include <rondo/run/marks.hpp>
#include <rondo/run/owners_mapped.hpp>
#include <rondo/run/owners_staged.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <variant>

namespace rondo::inline v0::run {

/// A call whose elements are made by their owners, see owned_work, through memory that all ranks share: on the buffers
/// themselves if those that others have to address are registered on all ranks, else through windows.
template <addressable X>
class owners_flight final : public flight_base {
 public:
  /// Is there room on the boards for elements of this size?
  static bool fits(boards const& shared, std::size_t element) noexcept {
    return shared && shared.slice_bytes() >= element;
  }

  owners_flight(X& transport, job& work, workspace& memory)
      : transport_(transport), job_(work), memory_(memory), shared_(memory.shared),
        greeting_(transport, memory, work.mark), windows_(memory.shared, work.owned) {}

  bool poll() override {
    if (!greeting_.sent()) {
      greet();
      return true;
    }
    if (auto* const straight = std::get_if<owners_mapped<X>>(&way_)) return straight->poll();
    if (auto* const through = std::get_if<owners_staged<X>>(&way_)) return through->poll();
    if (!greeting_.arrived()) return false;
    choose();
    return true;
  }

  bool done() const noexcept override {
    if (auto const* const straight = std::get_if<owners_mapped<X>>(&way_)) return straight->done();
    if (auto const* const through = std::get_if<owners_staged<X>>(&way_)) return through->done();
    return false;
  }

  rank_t waiting_for() const noexcept override {
    if (auto const* const straight = std::get_if<owners_mapped<X>>(&way_)) return straight->waiting_for();
    if (auto const* const through = std::get_if<owners_staged<X>>(&way_)) return through->waiting_for();
    return greeting_.waiting_for();
  }

  std::optional<disagreement> const& mismatch() const noexcept override { return greeting_.mismatch(); }
  void look_around() override { greeting_.look_around(); }
  job& work() noexcept override { return job_; }

 private:
  void greet() {
    mine_ = describe_buffers();
    greeting_.send([this](rank_t, letter& l) { std::memcpy(l.text.data(), &mine_, sizeof mine_); });
  }

  offer describe_buffers() const {
    owned_work const& work = job_.owned;
    auto const& memory = shared_.registered();
    offer found{.how = passage::registered};
    auto const place = [&](std::byte const* buffer, std::size_t element, std::uint64_t& at) {
      auto const known = memory->place_of(buffer, work.first.back() * element);
      if (known) at = *known;
      return known.has_value();
    };
    if (work.contribution != 0 && !place(work.source, work.contribution, found.source)) return {};
    if (work.to_all && !place(work.home, work.result, found.home)) return {};
    return found;
  }

  /// All letters are here.
  void choose() {
    all_offers all(shared_, greeting_.call(), mine_, job_.owned.source, job_.owned.home);
    if (all.all_registered())
      way_.template emplace<owners_mapped<X>>(transport_, memory_, job_.owned, windows_.end(), all.buffers());
    else
      way_.template emplace<owners_staged<X>>(transport_, memory_, job_.owned, windows_);
  }

  X& transport_;
  job& job_;
  workspace& memory_;
  boards& shared_;
  greeting<X> greeting_;
  owners_windows windows_;
  offer mine_;
  std::variant<std::monostate, owners_mapped<X>, owners_staged<X>> way_;
};

}  // namespace rondo::inline v0::run
