#pragma once

#include <rondo/algorithm.hpp>
#include <rondo/collectives/request.hpp>
#include <rondo/collectives/send_receive.hpp>
#include <rondo/detail/host_memory.hpp>
#include <rondo/error.hpp>
#include <rondo/group.hpp>
#include <rondo/memory.hpp>
#include <rondo/options.hpp>
#include <rondo/run/board_flight.hpp>
#include <rondo/run/choices.hpp>
#include <rondo/run/engine.hpp>
#include <rondo/run/families.hpp>
#include <rondo/run/letter_flight.hpp>
#include <rondo/run/owners_flight.hpp>
#include <rondo/run/preparation.hpp>
#include <rondo/run/survey.hpp>
#include <rondo/schedule/schedule_ref.hpp>
#include <rondo/select.hpp>
#include <rondo/transport.hpp>
#include <rondo/work.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>

namespace rondo::inline v0::run {

/// In the place of an algorithm: sends and receives have none.
struct single_message {
  rank_t to = nobody, from = nobody;
};

/// What turns the calls of one communicator into flights: finds the algorithm, checks that it suits, and lets the
/// engine run it.
template <transport X>
class dispatcher {
 public:
  /// Every rank of the group must construct one; blocks until all have.
  dispatcher(std::shared_ptr<group> g, X transport, communicator_options const& options)
      : group_(std::move(g)), options_(completed(*group_, options)),
        around_(survey(*group_, seen_from(transport, options_), group::clock::now() + options.deadline)),
        choices_(group_->size(), around_, transport_name(transport), options_.policy),
        engine_(std::make_shared<engine<X>>(group_, std::move(transport), around_.crowded, around_.boards)) {}

  group& ranks() const noexcept { return *group_; }
  communicator_options const& options() const noexcept { return options_; }
  surroundings const& around() const noexcept { return around_; }
  choices const& automatic_choices() const noexcept { return choices_; }
  X const& transport() const noexcept { return engine_->transport(); }
  boards const& shared() const noexcept { return engine_->shared(); }

  /// Makes the call by Algorithm, a family or `automatic`; returns when it is done.
  template <class Algorithm, collectives::request Request>
  void run(Request const& request, call_options const& options, single_message ends = {}) {
    typename engine<X>::lease const lease(*engine_);
    plan<Algorithm, Request::kind, owned<Request>>(preparation_of<Algorithm>(request), *lease, options,
                                                   blocking_call{*engine_, *lease, uses(ends)});
  }

  /// As run(), but only starts the call.
  template <class Algorithm, collectives::request Request>
  work start(Request const& request, call_options const& options, single_message ends = {}) {
    auto call = std::make_unique<pending>();
    auto const kept = std::make_shared<Request const>(request);
    call->work.kept = kept;
    call->wait = [engine = engine_](flight_base const& flight, group::clock::time_point deadline) {
      return engine->wait(flight, deadline);
    };
    plan<Algorithm, Request::kind, owned<Request>>(preparation_of<Algorithm>(*kept), call->work, options,
                                                   asynchronous_call{*engine_, *call, uses(ends)});
    return work(std::move(call));
  }

 private:
  static constexpr std::chrono::milliseconds longest_deadline = std::chrono::hours(24 * 365);  // the clock ends later

  /// With the policy of the environment, so that communicators made from this one have the same.
  static communicator_options completed(group& g, communicator_options options) {
    options.policy = policy_or_environment(g, std::move(options.policy));
    return options;
  }

  static whereabouts seen_from(X const& transport, communicator_options const& options) {
    auto me = whereabouts::here();
    if constexpr (addressable<X>) me.board = !transport.board(0).empty();
    me.policy = options.policy ? options.policy->digest() : 0;
    me.leader = host_leader(transport);
    return me;
  }

  static flight_base::streams uses(single_message ends) noexcept {
    return {.all = ends.to == nobody && ends.from == nobody, .to = ends.to, .from = ends.from};
  }

  /// How a call goes on once its schedule is known. Only `prepare` knows the types of the call, so that what runs a
  /// schedule is compiled once for all of them; and schedules chosen at run time fly behind one type, so that it is
  /// compiled once for all of those too. An indirect call for each step is nothing beside a message.
  struct blocking_call {
    engine<X>& motor;
    job& work;
    flight_base::streams uses;

    template <schedule S>
    schedule_ref keep(S const& s) const noexcept {
      return schedule_ref(s);
    }
    template <class Flight>
    void fly() const {
      motor.execute(work, uses, [&](X& x, workspace& memory) { return Flight(x, work, memory); });
    }
    template <schedule S>
    void fly(S const& s) const {
      motor.execute(work, uses, [&](X& x, workspace& memory) { return flight<S, X>(s, x, work, memory); });
    }
  };
  struct asynchronous_call {
    engine<X>& motor;
    pending& call;
    flight_base::streams uses;

    template <schedule S>
    schedule_ref keep(S const& s) const {
      auto const kept = std::make_shared<S const>(s);
      call.schedule = kept;
      return schedule_ref(*kept);
    }
    template <class Flight>
    void fly() const {
      motor.start(call.work, uses, [&](X& x, workspace& memory) -> flight_base& {
        return *(call.flight = std::make_unique<Flight>(x, call.work, memory));
      });
    }
    template <schedule S>
    void fly(S const& s) const {
      motor.start(call.work, uses, [&](X& x, workspace& memory) -> flight_base& {
        return *(call.flight = std::make_unique<flight<S, X>>(s, x, call.work, memory));
      });
    }
  };

  /// Chooses, checks, fills in the job and lets `go` fly it. Knows nothing of the request but its collective, so that
  /// it is compiled once for all requests. The buffers are touched last, when nothing is left to refuse.
  template <class Algorithm, collective C, bool Owned, class Go>
  void plan(preparation const& p, job& j, call_options const& options, Go const& go) {
    int const ranks = group_->size();
    j.ranks = ranks;
    j.patience = std::min(options.deadline.count() != 0 ? options.deadline : options_.deadline, longest_deadline);
    j.mark.collective = static_cast<std::uint16_t>(C);
    bool const ordered = options.ordered || options_.ordered;
    j.mark.ordered = ordered;
    if constexpr (std::is_same_v<Algorithm, single_message>) {
      prepare(j, p);
      bool const receives = go.uses.to == nobody;
      go.fly(collectives::single_message{ranks, receives ? go.uses.from : group_->rank(),
                                         receives ? group_->rank() : go.uses.to});
    } else if constexpr (std::is_same_v<Algorithm, automatic>) {
      if constexpr (Owned)
        if (options.algorithm == algorithm::automatic && owners_flight<X>::fits(engine_->shared(), p.widest))
          return go_to_owners(j, p, go);
      bool const shared = offers_boards<C>(p);
      algorithm const a = options.algorithm != algorithm::automatic
                              ? options.algorithm
                              : choices_.of({C, p.bytes, ranks, p.keep_order, ordered, shared});
      if (a == algorithm::direct && shared) return go_over_boards<C>(j, p, go);
      with_schedule<C>(a, around_.shape, p.root, p.bytes, [&](auto const& s) { go_by(go.keep(s), a, j, p, go); });
    } else if constexpr (std::is_same_v<Algorithm, direct> && C == collective::all_reduce) {
      if (!offers_boards<C>(p))
        throw invalid_argument("a direct all_reduce needs memory that all ranks share: use it over shm or in_process");
      go_over_boards<C>(j, p, go);
    } else {
      go_by(make_schedule<C, Algorithm>(around_.shape, p.root, p.bytes), named<Algorithm>(), j, p, go);
    }
  }

  /// Whether calls by Algorithm may go through shared memory, where X has that. Only all_reduce does.
  template <class Algorithm, collective C>
  static constexpr bool may_use_boards = C == collective::all_reduce&& addressable<X> &&
                                         (std::is_same_v<Algorithm, automatic> || std::is_same_v<Algorithm, direct>);

  /// Whether the owners of its elements may make the result of the request, where X has shared memory.
  template <class Request>
  static constexpr bool owned = collectives::owned_request<Request>&& addressable<X>;

  /// Refuses at compile time, in a sentence, an algorithm that cannot do what is requested.
  template <class Algorithm, class Request>
  static preparation preparation_of(Request const& request) noexcept {
    if constexpr (!std::is_same_v<Algorithm, single_message> && !std::is_same_v<Algorithm, automatic> &&
                  !(std::is_same_v<Algorithm, direct> && Request::kind == collective::all_reduce)) {
      using S = schedule_t<Request::kind, Algorithm>;
      static_assert(!std::is_void_v<S>, "this algorithm does not offer this collective: use another one, or automatic");
      if constexpr (Request::keeps_order)
        static_assert(S::keeps_rank_order,
                      "this algorithm reorders operands: use tree or recursive_doubling, or declare the operation "
                      "commutative");
    }
    return preparation::of<may_use_boards<Algorithm, Request::kind>, owned<Request>>(request);
  }

  /// Can the call go through shared memory?
  template <collective C>
  bool offers_boards(preparation const& p) const noexcept {
    if constexpr (may_use_boards<automatic, C>) return board_flight<X>::fits(engine_->shared(), p.wide_bytes);
    return false;
  }

  /// Fills in the job of a call that the transport carries.
  void prepare(job& j, preparation const& p) {
    p.function(p.request, j, group_->rank(), group_->size());
    if (takes_device_memory(engine_->transport())) return;
    for (chunk const& c : j.chunks)
      if (c.home) detail::check_host_memory(c.home, c.count * j.math.element);  // else no step of this rank uses it
    if (j.chunks.empty()) detail::check_host_memory(j.home, j.count * j.math.element);
  }

  template <collective C, class Go>
  void go_over_boards(job& j, preparation const& p, Go const& go) {
    if constexpr (may_use_boards<automatic, C>) {
      j.mark.algorithm = static_cast<std::uint8_t>(algorithm::direct);
      p.function(p.request, j, group_->rank(), group_->size());
      if (letter_flight<X>::fits(engine_->shared(), j.count * j.math.element))
        return go.template fly<letter_flight<X>>();
      go.template fly<board_flight<X>>();
    }
  }

  template <class Go>
  void go_to_owners(job& j, preparation const& p, Go const& go) {
    j.mark.algorithm = static_cast<std::uint8_t>(algorithm::direct);
    p.of_owners(p.request, j, group_->rank(), group_->size());
    go.template fly<owners_flight<X>>();
  }

  template <class S, class Go>
  void go_by(S const& s, algorithm a, job& j, preparation const& p, Go const& go) {
    p.check(s, a, j.mark.ordered != 0);
    j.mark.algorithm = static_cast<std::uint8_t>(a);
    prepare(j, p);
    go.fly(s);
  }

  std::shared_ptr<group> group_;
  communicator_options options_;
  surroundings around_;
  choices choices_;
  std::shared_ptr<engine<X>> engine_;
};

}  // namespace rondo::inline v0::run
