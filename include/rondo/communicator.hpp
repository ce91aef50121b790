#pragma once

#include <rondo/algorithm.hpp>
#include <rondo/collectives/all_gather.hpp>
#include <rondo/collectives/all_reduce.hpp>
#include <rondo/collectives/all_to_all.hpp>
#include <rondo/collectives/barrier.hpp>
#include <rondo/collectives/broadcast.hpp>
#include <rondo/collectives/gather.hpp>
#include <rondo/collectives/reduce.hpp>
#include <rondo/collectives/reduce_scatter.hpp>
#include <rondo/collectives/scatter.hpp>
#include <rondo/collectives/send_receive.hpp>
#include <rondo/group.hpp>
#include <rondo/memory.hpp>
#include <rondo/options.hpp>
#include <rondo/reconnect.hpp>
#include <rondo/run/engine.hpp>
#include <rondo/run/families.hpp>
#include <rondo/run/preparation.hpp>
#include <rondo/run/survey.hpp>
#include <rondo/run/two_shot.hpp>
#include <rondo/select.hpp>
#include <rondo/transport.hpp>
#include <rondo/work.hpp>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace rondo::inline v0 {

/// The ranks of a job, and everything that they can do together.
///
/// Every rank makes the same collective calls in the same order. A call that ranks disagree about, that a rank does not
/// join before the deadline, or during which a rank is lost throws the same error on every rank, and the communicator
/// is unusable from then on; destroying it does not block then. Blocking calls return when the result is in place and
/// the buffers may be used again; start_… calls return a handle at once. Calls may come from several threads; keeping
/// the order the same on all ranks is then the caller's duty. All ranks always get the same bits.
///
/// A buffer is any contiguous range: vector, array, span. An operation is one of ops.hpp or any callable; a callable
/// that is not declared commutative keeps the order of ranks. Wrong arguments throw invalid_argument, change nothing
/// and leave the communicator usable.
template <transport X>
class communicator {
 public:
  /// Every rank of the group must construct one; blocks until all have.
  communicator(std::shared_ptr<group> g, X transport, communicator_options const& options = {})
      : group_(std::move(g)), options_(options),
        around_(run::survey(*group_, has_board(transport), group::clock::now() + options.deadline)),
        engine_(std::make_shared<run::engine<X>>(group_, std::move(transport), around_.crowded)) {}

  rank_t rank() const noexcept { return group_->rank(); }
  int size() const noexcept { return group_->size(); }

  /// Every rank ends with op over the contributions of all ranks, element by element. In place, or from `in`, which is
  /// kept, to `out` of the same size.
  template <class Algorithm = automatic, writable_buffer R, reduce_op<element_of<R>> Op>
  void all_reduce(R&& data, Op const& op, call_options const& options = {}) {
    all_reduce<Algorithm>(data, data, op, options);
  }
  template <class Algorithm = automatic, buffer In, writable_buffer_of<In> Out, reduce_op<element_of<In>> Op>
  void all_reduce(In&& in, Out&& out, Op const& op, call_options const& options = {}) {
    run<Algorithm>(all_reduce_of(read(in), write(out), op), options);
  }
  template <class Algorithm = automatic, writable_buffer R, reduce_op<element_of<R>> Op>
  work start_all_reduce(R&& data, Op const& op, call_options const& options = {}) {
    return start_all_reduce<Algorithm>(data, data, op, options);
  }
  template <class Algorithm = automatic, buffer In, writable_buffer_of<In> Out, reduce_op<element_of<In>> Op>
  work start_all_reduce(In&& in, Out&& out, Op const& op, call_options const& options = {}) {
    return start<Algorithm>(all_reduce_of(read(in), write(out), op), options);
  }

  /// Rank r ends with block r of op over all contributions: `in` has size() blocks of the size of `out`, or the blocks
  /// of `counts`, which is the same on all ranks. `in` is kept; `out` may be block r of it.
  template <class Algorithm = automatic, buffer In, writable_buffer_of<In> Out, reduce_op<element_of<In>> Op>
  void reduce_scatter(In&& in, Out&& out, Op const& op, call_options const& options = {}) {
    run<Algorithm>(reduce_scatter_of(read(in), write(out), collectives::blocks(std::size(out)), op), options);
  }
  template <class Algorithm = automatic, buffer In, writable_buffer_of<In> Out, reduce_op<element_of<In>> Op>
  work start_reduce_scatter(In&& in, Out&& out, Op const& op, call_options const& options = {}) {
    return start<Algorithm>(reduce_scatter_of(read(in), write(out), collectives::blocks(std::size(out)), op), options);
  }
  template <class Algorithm = automatic, buffer In, writable_buffer_of<In> Out, reduce_op<element_of<In>> Op>
  void reduce_scatter_v(In&& in, Out&& out, std::span<std::size_t const> counts, Op const& op,
                        call_options const& options = {}) {
    run<Algorithm>(reduce_scatter_of(read(in), write(out), collectives::blocks(counts), op), options);
  }

  /// Every rank ends with the blocks of all ranks, in their order. `in` may be block r of `out`.
  template <class Algorithm = automatic, buffer In, writable_buffer_of<In> Out>
  void all_gather(In&& in, Out&& out, call_options const& options = {}) {
    run<Algorithm>(all_gather_of(read(in), write(out), collectives::blocks(std::size(in))), options);
  }
  template <class Algorithm = automatic, buffer In, writable_buffer_of<In> Out>
  work start_all_gather(In&& in, Out&& out, call_options const& options = {}) {
    return start<Algorithm>(all_gather_of(read(in), write(out), collectives::blocks(std::size(in))), options);
  }
  template <class Algorithm = automatic, buffer In, writable_buffer_of<In> Out>
  void all_gather_v(In&& in, Out&& out, std::span<std::size_t const> counts, call_options const& options = {}) {
    run<Algorithm>(all_gather_of(read(in), write(out), collectives::blocks(counts)), options);
  }

  /// Every rank ends with the values of the root. No rank returns before all that it sends to have entered the call.
  template <class Algorithm = automatic, writable_buffer R>
  void broadcast(R&& data, rank_t root, call_options const& options = {}) {
    run<Algorithm>(collectives::broadcast<element_of<R>>{{root}, write(data)}, options);
  }
  template <class Algorithm = automatic, writable_buffer R>
  work start_broadcast(R&& data, rank_t root, call_options const& options = {}) {
    return start<Algorithm>(collectives::broadcast<element_of<R>>{{root}, write(data)}, options);
  }

  /// The root ends with op over all contributions; the buffers of other ranks are kept. In place, or from `in` to the
  /// root's `out`, which is ignored elsewhere.
  template <class Algorithm = automatic, writable_buffer R, reduce_op<element_of<R>> Op>
  void reduce(R&& data, Op const& op, rank_t root, call_options const& options = {}) {
    reduce<Algorithm>(data, data, op, root, options);
  }
  template <class Algorithm = automatic, buffer In, writable_buffer_of<In> Out, reduce_op<element_of<In>> Op>
  void reduce(In&& in, Out&& out, Op const& op, rank_t root, call_options const& options = {}) {
    run<Algorithm>(reduce_of(read(in), write(out), op, root), options);
  }
  template <class Algorithm = automatic, buffer In, writable_buffer_of<In> Out, reduce_op<element_of<In>> Op>
  work start_reduce(In&& in, Out&& out, Op const& op, rank_t root, call_options const& options = {}) {
    return start<Algorithm>(reduce_of(read(in), write(out), op, root), options);
  }

  /// Block q of rank r's `in` ends as block r of rank q's `out`. `out` may be `in`. In the _v form a rank's counts say
  /// how many elements it sends to each rank and gets from each; a pair that disagrees gets collective_mismatch.
  template <class Algorithm = automatic, buffer In, writable_buffer_of<In> Out>
  void all_to_all(In&& in, Out&& out, call_options const& options = {}) {
    run<Algorithm>(even_all_to_all(read(in), write(out)), options);
  }
  template <class Algorithm = automatic, buffer In, writable_buffer_of<In> Out>
  work start_all_to_all(In&& in, Out&& out, call_options const& options = {}) {
    return start<Algorithm>(even_all_to_all(read(in), write(out)), options);
  }
  template <class Algorithm = automatic, buffer In, writable_buffer_of<In> Out>
  void all_to_all_v(In&& in, std::span<std::size_t const> to, Out&& out, std::span<std::size_t const> from,
                    call_options const& options = {}) {
    run<Algorithm>(
        collectives::all_to_all<element_of<In>>{
            {}, read(in), collectives::blocks(to), write(out), collectives::blocks(from)},
        options);
  }

  /// The root's `out` ends with the blocks of all ranks in their order; it is ignored elsewhere.
  template <class Algorithm = automatic, buffer In, writable_buffer_of<In> Out>
  void gather(In&& in, Out&& out, rank_t root, call_options const& options = {}) {
    run<Algorithm>(collectives::gather<element_of<In>>{{root}, read(in), write(out)}, options);
  }
  template <class Algorithm = automatic, buffer In, writable_buffer_of<In> Out>
  work start_gather(In&& in, Out&& out, rank_t root, call_options const& options = {}) {
    return start<Algorithm>(collectives::gather<element_of<In>>{{root}, read(in), write(out)}, options);
  }

  /// Rank r's `out` ends with block r of the root's `in`, which is ignored elsewhere.
  template <class Algorithm = automatic, buffer In, writable_buffer_of<In> Out>
  void scatter(In&& in, Out&& out, rank_t root, call_options const& options = {}) {
    run<Algorithm>(collectives::scatter<element_of<In>>{{root}, read(in), write(out)}, options);
  }
  template <class Algorithm = automatic, buffer In, writable_buffer_of<In> Out>
  work start_scatter(In&& in, Out&& out, rank_t root, call_options const& options = {}) {
    return start<Algorithm>(collectives::scatter<element_of<In>>{{root}, read(in), write(out)}, options);
  }

  /// No rank returns before all ranks have entered.
  template <class Algorithm = automatic>
  void barrier(call_options const& options = {}) {
    run<Algorithm>(collectives::barrier{}, options);
  }
  work start_barrier(call_options const& options = {}) { return start<automatic>(collectives::barrier{}, options); }

  /// One message between two ranks, in the order of the sends. send() returns when the buffer may be used again, which
  /// for more than the transport holds is not before the peer receives. The receiver must know the size.
  template <buffer R>
  void send(R&& data, rank_t to, call_options const& options = {}) {
    run<single_message>(collectives::message<element_of<R> const>{{}, read(data), to}, options, to, nobody);
  }
  template <writable_buffer R>
  void receive(R&& data, rank_t from, call_options const& options = {}) {
    run<single_message>(collectives::message<element_of<R>>{{}, write(data), from}, options, nobody, from);
  }
  template <buffer R>
  work start_send(R&& data, rank_t to, call_options const& options = {}) {
    return start<single_message>(collectives::message<element_of<R> const>{{}, read(data), to}, options, to, nobody);
  }
  template <writable_buffer R>
  work start_receive(R&& data, rank_t from, call_options const& options = {}) {
    return start<single_message>(collectives::message<element_of<R>>{{}, write(data), from}, options, nobody, from);
  }

  /// The ranks that call with the same color, in the order of (key, rank), as a communicator of their own; nothing for
  /// a negative color. Every rank must call; blocks until all have.
  std::optional<communicator> split(int color, int key = 0) {
    auto const deadline = group::clock::now() + options_.deadline;
    auto part = group_->split(color, key, deadline);
    if (!part) return std::nullopt;
    X link = reconnect(engine_->transport(), part, deadline);
    return communicator(std::move(part), std::move(link), options_);
  }

  /// The same ranks with streams of their own, so that calls on both do not wait for each other. As split().
  communicator duplicate() { return *split(0, rank()); }

  /// The algorithm that a call without a choice of its own would take.
  algorithm chosen(collective c, std::size_t bytes) const noexcept {
    return select({.collective = c,
                   .bytes = bytes,
                   .ranks = size(),
                   .ordered = options_.ordered,
                   .shared_memory = offers(algorithm::direct, c)});
  }

  /// Does the algorithm offer the collective here? As supports(), and a direct all_reduce where ranks share memory.
  bool offers(algorithm a, collective c) const noexcept { return supports(a, c, size(), around_.boards); }

 private:
  static constexpr std::chrono::milliseconds longest_deadline = std::chrono::hours(24 * 365);  // the clock ends later

  struct boards {};          // in the place of a schedule: the call goes through memory that the ranks share
  struct single_message {};  // in the place of an algorithm: sends and receives have none

  static bool has_board(X const& transport) {
    if constexpr (addressable<X>) return !transport.board(0).empty();
    return false;
  }

  template <class R>
  static std::span<element_of<R> const> read(R& r) noexcept {
    return std::span(r);
  }
  template <class R>
  static std::span<element_of<R>> write(R& r) noexcept {
    return std::span(r);
  }

  template <class T, class Op>
  static auto all_reduce_of(std::span<T const> in, std::span<T> out, Op const& op) {
    return collectives::all_reduce<T, Op>{{}, in, out, op};
  }
  template <class T, class Op>
  static auto reduce_of(std::span<T const> in, std::span<T> out, Op const& op, rank_t root) {
    return collectives::reduce<T, Op>{{root}, in, out, op};
  }
  template <class T, class Op>
  static auto reduce_scatter_of(std::span<T const> in, std::span<T> out, collectives::blocks counts, Op const& op) {
    return collectives::reduce_scatter<T, Op>{{}, in, out, counts, op};
  }
  template <class T>
  static auto all_gather_of(std::span<T const> in, std::span<T> out, collectives::blocks counts) {
    return collectives::all_gather<T>{{}, in, out, counts};
  }
  template <class T>
  auto even_all_to_all(std::span<T const> in, std::span<T> out) const {
    collectives::blocks const each(in.size() / static_cast<std::size_t>(size()));
    return collectives::all_to_all<T>{{}, in, each, out, each};
  }

  /// How a call goes on once its schedule is known. Only `prepare` knows the types of the call, so that what runs a
  /// schedule is compiled once for all of them.
  struct blocking_call {
    communicator& comm;
    run::job& job;
    run::flight_base::streams uses;

    void operator()(boards) const {
      comm.engine_->execute(job, uses, [&](X& x, run::workspace& memory) { return run::two_shot<X>(x, job, memory); });
    }
    template <schedule S>
    void operator()(S const& s) const {
      comm.engine_->execute(job, uses,
                            [&](X& x, run::workspace& memory) { return run::flight<S, X>(s, x, job, memory); });
    }
  };
  struct asynchronous_call {
    communicator& comm;
    run::pending& call;
    run::flight_base::streams uses;

    void operator()(boards) const {
      comm.engine_->start(call.work, uses, [&](X& x, run::workspace& memory) -> run::flight_base& {
        call.flight = std::make_unique<run::two_shot<X>>(x, call.work, memory);
        return *call.flight;
      });
    }
    template <schedule S>
    void operator()(S const& s) const {
      comm.engine_->start(call.work, uses, [&](X& x, run::workspace& memory) -> run::flight_base& {
        call.flight = std::make_unique<run::flight<S, X>>(s, x, call.work, memory);
        return *call.flight;
      });
    }
  };

  /// Fills in the job and passes the schedule that does it to `go`. The buffers are touched last, when nothing is left
  /// to refuse.
  template <class Algorithm, collectives::request Request, class Go>
  void plan(Request const& request, run::job& j, call_options const& options, Go const& go) {
    j.ranks = size();
    auto const patience = options.deadline.count() != 0 ? options.deadline : options_.deadline;
    j.deadline = group::clock::now() + std::min(patience, longest_deadline);
    j.mark.collective = static_cast<std::uint16_t>(Request::kind);
    bool const ordered = options.ordered || options_.ordered;
    j.mark.ordered = ordered;
    auto const preparation = run::preparation::of(request, ordered);
    if constexpr (std::is_same_v<Algorithm, single_message>) {
      preparation.function(&request, j, rank(), size());
      go(collectives::single_message{size(), go.uses.to == nobody ? go.uses.from : rank(),
                                     go.uses.to == nobody ? rank() : go.uses.to});
    } else if constexpr (std::is_same_v<Algorithm, automatic>) {
      bool const shared = offers_boards<Request>();
      algorithm const a = options.algorithm != algorithm::automatic
                              ? options.algorithm
                              : select({Request::kind, request.bytes(), size(), Request::keeps_order, ordered, shared});
      if (a == algorithm::direct && shared) return go_over_boards(request, j, go);
      go_by_name<Request::kind>(a, request.root(), j, preparation, go);
    } else if constexpr (std::is_same_v<Algorithm, direct> && Request::kind == collective::all_reduce) {
      if (!offers_boards<Request>())
        throw invalid_argument("a direct all_reduce needs memory that all ranks share: use it over shm or in_process");
      go_over_boards(request, j, go);
    } else {
      using S = run::schedule_t<Request::kind, Algorithm>;
      static_assert(!std::is_void_v<S>, "this algorithm does not offer this collective: use another one, or automatic");
      if constexpr (Request::keeps_order)
        static_assert(S::keeps_rank_order,
                      "this algorithm reorders operands: use tree or recursive_doubling, or declare the operation "
                      "commutative");
      go_by(run::make_schedule<Request::kind, Algorithm>(around_.shape, request.root()), run::named<Algorithm>(), j,
            preparation, go);
    }
  }

  /// Can the call go through shared memory? Only all_reduce does.
  template <class Request>
  bool offers_boards() const {
    if constexpr (Request::kind == collective::all_reduce && addressable<X>)
      return around_.boards && run::two_shot<X>::fits(engine_->transport(), Request::wide_bytes);
    return false;
  }

  template <class Request, class Go>
  void go_over_boards(Request const& request, run::job& j, Go const& go) {
    if constexpr (Request::kind == collective::all_reduce && addressable<X>) {
      j.mark.algorithm = static_cast<std::uint8_t>(algorithm::direct);
      request.prepare(j, rank(), size());
      go(boards{});
    }
  }

  template <collective C, class Go>
  void go_by_name(algorithm a, rank_t root, run::job& j, run::preparation const& p, Go const& go) {
    run::with_schedule<C>(a, around_.shape, root, [&](auto const& s) { go_by(s, a, j, p, go); });
  }

  template <class S, class Go>
  void go_by(S const& s, algorithm a, run::job& j, run::preparation const& p, Go const& go) {
    p.check(s, to_string(a));
    j.mark.algorithm = static_cast<std::uint8_t>(a);
    p.function(p.request, j, rank(), size());
    go(s);
  }

  template <class Algorithm, class Request>
  void run(Request const& request, call_options const& options, rank_t to = nobody, rank_t from = nobody) {
    typename run::engine<X>::lease const lease(*engine_);
    plan<Algorithm>(request, *lease, options, blocking_call{*this, *lease, uses(to, from)});
  }

  template <class Algorithm, class Request>
  work start(Request const& request, call_options const& options, rank_t to = nobody, rank_t from = nobody) {
    auto call = std::make_unique<run::pending>();
    auto const kept = std::make_shared<Request const>(request);
    call->work.kept = kept;
    call->wait = [engine = engine_](run::flight_base const& flight, group::clock::time_point deadline) {
      return engine->wait(flight, deadline);
    };
    plan<Algorithm>(*kept, call->work, options, asynchronous_call{*this, *call, uses(to, from)});
    return work(std::move(call));
  }

  static run::flight_base::streams uses(rank_t to, rank_t from) noexcept {
    return {.all = to == nobody && from == nobody, .to = to, .from = from};
  }

  std::shared_ptr<group> group_;
  communicator_options options_;
  run::surroundings around_;
  std::shared_ptr<run::engine<X>> engine_;
};

}  // namespace rondo::inline v0
