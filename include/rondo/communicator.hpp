#pragma once

#include <rondo/algorithm.hpp>
#include <rondo/collectives/all_gather.hpp>
#include <rondo/collectives/all_gather_produced.hpp>
#include <rondo/collectives/all_reduce.hpp>
#include <rondo/collectives/all_to_all.hpp>
#include <rondo/collectives/barrier.hpp>
#include <rondo/collectives/broadcast.hpp>
#include <rondo/collectives/gather.hpp>
#include <rondo/collectives/reduce.hpp>
#include <rondo/collectives/reduce_scatter.hpp>
#include <rondo/collectives/reduce_scatter_epilogue.hpp>
#include <rondo/collectives/scatter.hpp>
#include <rondo/collectives/send_receive.hpp>
#include <rondo/explain.hpp>
#include <rondo/fused/epilogue.hpp>
#include <rondo/group.hpp>
#include <rondo/options.hpp>
#include <rondo/reconnect.hpp>
#include <rondo/registered_buffer.hpp>
#include <rondo/run/dispatcher.hpp>
#include <rondo/run/families.hpp>
#include <rondo/select.hpp>
#include <rondo/transport.hpp>
#include <rondo/work.hpp>

#include <algorithm>
#include <chrono>
#include <memory>
#include <memory_resource>
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
      : calls_(std::move(g), std::move(transport), options) {}

  rank_t rank() const noexcept { return calls_.ranks().rank(); }
  int size() const noexcept { return calls_.ranks().size(); }

  /// Every rank ends with op over the contributions of all ranks, element by element. In place, or from `in`, which is
  /// kept, to `out` of the same size.
  template <class Algorithm = automatic, writable_buffer R, reduce_op<element_of<R>> Op>
  void all_reduce(R&& data, Op const& op, call_options const& options = {}) {
    all_reduce<Algorithm>(data, data, op, options);
  }
  template <class Algorithm = automatic, buffer In, writable_buffer_of<In> Out, reduce_op<element_of<In>> Op>
  void all_reduce(In&& in, Out&& out, Op const& op, call_options const& options = {}) {
    calls_.template run<Algorithm>(all_reduce_of(read(in), write(out), op), options);
  }
  template <class Algorithm = automatic, writable_buffer R, reduce_op<element_of<R>> Op>
  work start_all_reduce(R&& data, Op const& op, call_options const& options = {}) {
    return start_all_reduce<Algorithm>(data, data, op, options);
  }
  template <class Algorithm = automatic, buffer In, writable_buffer_of<In> Out, reduce_op<element_of<In>> Op>
  work start_all_reduce(In&& in, Out&& out, Op const& op, call_options const& options = {}) {
    return calls_.template start<Algorithm>(all_reduce_of(read(in), write(out), op), options);
  }

  /// Rank r ends with block r of op over all contributions: `in` has size() blocks of the size of `out`, or the blocks
  /// of `counts`, which is the same on all ranks. `in` is kept; `out` may be block r of it.
  template <class Algorithm = automatic, buffer In, writable_buffer_of<In> Out, reduce_op<element_of<In>> Op>
  void reduce_scatter(In&& in, Out&& out, Op const& op, call_options const& options = {}) {
    calls_.template run<Algorithm>(reduce_scatter_of(read(in), write(out), collectives::blocks(std::size(out)), op),
                                   options);
  }
  template <class Algorithm = automatic, buffer In, writable_buffer_of<In> Out, reduce_op<element_of<In>> Op>
  work start_reduce_scatter(In&& in, Out&& out, Op const& op, call_options const& options = {}) {
    return calls_.template start<Algorithm>(
        reduce_scatter_of(read(in), write(out), collectives::blocks(std::size(out)), op), options);
  }
  template <class Algorithm = automatic, buffer In, writable_buffer_of<In> Out, reduce_op<element_of<In>> Op>
  void reduce_scatter_v(In&& in, Out&& out, std::span<std::size_t const> counts, Op const& op,
                        call_options const& options = {}) {
    calls_.template run<Algorithm>(reduce_scatter_of(read(in), write(out), collectives::blocks(counts), op), options);
  }

  /// As reduce_scatter(), but what is stored is what the epilogue makes of each reduced value, in the same pass over
  /// memory (rondo/fused/epilogue.hpp). Values are reduced in accumulator_t of the input and not rounded on the way, so
  /// over streams that is what travels. `out` may have elements of another type; it is apart from `in`.
  template <class Algorithm = automatic, buffer In, writable_buffer Out, reduce_op<element_of<In>> Op,
            epilogue<accumulator_t<element_of<In>>, element_of<Out>> E>
  void reduce_scatter(In&& in, Out&& out, Op const& op, E const& e, call_options const& options = {}) {
    calls_.template run<Algorithm>(reduce_scatter_of(read(in), write(out), collectives::blocks(std::size(out)), op, e),
                                   options);
  }
  template <class Algorithm = automatic, buffer In, writable_buffer Out, reduce_op<element_of<In>> Op,
            epilogue<accumulator_t<element_of<In>>, element_of<Out>> E>
  work start_reduce_scatter(In&& in, Out&& out, Op const& op, E const& e, call_options const& options = {}) {
    return calls_.template start<Algorithm>(
        reduce_scatter_of(read(in), write(out), collectives::blocks(std::size(out)), op, e), options);
  }
  template <class Algorithm = automatic, buffer In, writable_buffer Out, reduce_op<element_of<In>> Op,
            epilogue<accumulator_t<element_of<In>>, element_of<Out>> E>
  void reduce_scatter_v(In&& in, Out&& out, std::span<std::size_t const> counts, Op const& op, E const& e,
                        call_options const& options = {}) {
    calls_.template run<Algorithm>(reduce_scatter_of(read(in), write(out), collectives::blocks(counts), op, e),
                                   options);
  }

  /// Every rank ends with the blocks of all ranks, in their order. `in` may be block r of `out`.
  template <class Algorithm = automatic, buffer In, writable_buffer_of<In> Out>
  void all_gather(In&& in, Out&& out, call_options const& options = {}) {
    calls_.template run<Algorithm>(all_gather_of(read(in), write(out), collectives::blocks(std::size(in))), options);
  }
  template <class Algorithm = automatic, buffer In, writable_buffer_of<In> Out>
  work start_all_gather(In&& in, Out&& out, call_options const& options = {}) {
    return calls_.template start<Algorithm>(all_gather_of(read(in), write(out), collectives::blocks(std::size(in))),
                                            options);
  }
  template <class Algorithm = automatic, buffer In, writable_buffer_of<In> Out>
  void all_gather_v(In&& in, Out&& out, std::span<std::size_t const> counts, call_options const& options = {}) {
    calls_.template run<Algorithm>(all_gather_of(read(in), write(out), collectives::blocks(counts)), options);
  }

  /// As all_gather(), but a rank's own block is what its producer makes, in the same pass over memory
  /// (rondo/fused/epilogue.hpp).
  template <class Algorithm = automatic, writable_buffer Out, producer<element_of<Out>> P>
  void all_gather(P const& p, Out&& out, call_options const& options = {}) {
    calls_.template run<Algorithm>(all_gather_of(p, write(out), even_blocks(std::size(out))), options);
  }
  template <class Algorithm = automatic, writable_buffer Out, producer<element_of<Out>> P>
  work start_all_gather(P const& p, Out&& out, call_options const& options = {}) {
    return calls_.template start<Algorithm>(all_gather_of(p, write(out), even_blocks(std::size(out))), options);
  }
  template <class Algorithm = automatic, writable_buffer Out, producer<element_of<Out>> P>
  void all_gather_v(P const& p, Out&& out, std::span<std::size_t const> counts, call_options const& options = {}) {
    calls_.template run<Algorithm>(all_gather_of(p, write(out), collectives::blocks(counts)), options);
  }

  /// Every rank ends with the values of the root. No rank returns before all that it sends to have entered the call.
  template <class Algorithm = automatic, writable_buffer R>
  void broadcast(R&& data, rank_t root, call_options const& options = {}) {
    calls_.template run<Algorithm>(collectives::broadcast<element_of<R>>{{root}, write(data)}, options);
  }
  template <class Algorithm = automatic, writable_buffer R>
  work start_broadcast(R&& data, rank_t root, call_options const& options = {}) {
    return calls_.template start<Algorithm>(collectives::broadcast<element_of<R>>{{root}, write(data)}, options);
  }

  /// The root ends with op over all contributions; the buffers of other ranks are kept. In place, or from `in` to the
  /// root's `out`, which is ignored elsewhere.
  template <class Algorithm = automatic, writable_buffer R, reduce_op<element_of<R>> Op>
  void reduce(R&& data, Op const& op, rank_t root, call_options const& options = {}) {
    reduce<Algorithm>(data, data, op, root, options);
  }
  template <class Algorithm = automatic, buffer In, writable_buffer_of<In> Out, reduce_op<element_of<In>> Op>
  void reduce(In&& in, Out&& out, Op const& op, rank_t root, call_options const& options = {}) {
    calls_.template run<Algorithm>(reduce_of(read(in), write(out), op, root), options);
  }
  template <class Algorithm = automatic, buffer In, writable_buffer_of<In> Out, reduce_op<element_of<In>> Op>
  work start_reduce(In&& in, Out&& out, Op const& op, rank_t root, call_options const& options = {}) {
    return calls_.template start<Algorithm>(reduce_of(read(in), write(out), op, root), options);
  }

  /// Block q of rank r's `in` ends as block r of rank q's `out`. `out` may be `in`. In the _v form a rank's counts say
  /// how many elements it sends to each rank and gets from each; a pair that disagrees gets collective_mismatch.
  template <class Algorithm = automatic, buffer In, writable_buffer_of<In> Out>
  void all_to_all(In&& in, Out&& out, call_options const& options = {}) {
    calls_.template run<Algorithm>(even_all_to_all(read(in), write(out)), options);
  }
  template <class Algorithm = automatic, buffer In, writable_buffer_of<In> Out>
  work start_all_to_all(In&& in, Out&& out, call_options const& options = {}) {
    return calls_.template start<Algorithm>(even_all_to_all(read(in), write(out)), options);
  }
  template <class Algorithm = automatic, buffer In, writable_buffer_of<In> Out>
  void all_to_all_v(In&& in, std::span<std::size_t const> to, Out&& out, std::span<std::size_t const> from,
                    call_options const& options = {}) {
    calls_.template run<Algorithm>(
        collectives::all_to_all<element_of<In>>{
            {}, read(in), collectives::blocks(to), write(out), collectives::blocks(from)},
        options);
  }

  /// The root's `out` ends with the blocks of all ranks in their order; it is ignored elsewhere.
  template <class Algorithm = automatic, buffer In, writable_buffer_of<In> Out>
  void gather(In&& in, Out&& out, rank_t root, call_options const& options = {}) {
    calls_.template run<Algorithm>(collectives::gather<element_of<In>>{{root}, read(in), write(out)}, options);
  }
  template <class Algorithm = automatic, buffer In, writable_buffer_of<In> Out>
  work start_gather(In&& in, Out&& out, rank_t root, call_options const& options = {}) {
    return calls_.template start<Algorithm>(collectives::gather<element_of<In>>{{root}, read(in), write(out)}, options);
  }

  /// Rank r's `out` ends with block r of the root's `in`, which is ignored elsewhere.
  template <class Algorithm = automatic, buffer In, writable_buffer_of<In> Out>
  void scatter(In&& in, Out&& out, rank_t root, call_options const& options = {}) {
    calls_.template run<Algorithm>(collectives::scatter<element_of<In>>{{root}, read(in), write(out)}, options);
  }
  template <class Algorithm = automatic, buffer In, writable_buffer_of<In> Out>
  work start_scatter(In&& in, Out&& out, rank_t root, call_options const& options = {}) {
    return calls_.template start<Algorithm>(collectives::scatter<element_of<In>>{{root}, read(in), write(out)},
                                            options);
  }

  /// No rank returns before all ranks have entered.
  template <class Algorithm = automatic>
  void barrier(call_options const& options = {}) {
    calls_.template run<Algorithm>(collectives::barrier{}, options);
  }
  work start_barrier(call_options const& options = {}) {
    return calls_.template start<automatic>(collectives::barrier{}, options);
  }

  /// One message between two ranks, in the order of the sends. send() returns when the buffer may be used again, which
  /// for more than the transport holds is not before the peer receives. The receiver must know the size.
  template <buffer R>
  void send(R&& data, rank_t to, call_options const& options = {}) {
    calls_.template run<run::single_message>(collectives::message<element_of<R> const>{{}, read(data), to}, options,
                                             {.to = to});
  }
  template <writable_buffer R>
  void receive(R&& data, rank_t from, call_options const& options = {}) {
    calls_.template run<run::single_message>(collectives::message<element_of<R>>{{}, write(data), from}, options,
                                             {.from = from});
  }
  template <buffer R>
  work start_send(R&& data, rank_t to, call_options const& options = {}) {
    return calls_.template start<run::single_message>(collectives::message<element_of<R> const>{{}, read(data), to},
                                                      options, {.to = to});
  }
  template <writable_buffer R>
  work start_receive(R&& data, rank_t from, call_options const& options = {}) {
    return calls_.template start<run::single_message>(collectives::message<element_of<R>>{{}, write(data), from},
                                                      options, {.from = from});
  }

  /// The ranks that call with the same color, in the order of (key, rank), as a communicator of their own; nothing for
  /// a negative color. Every rank must call; blocks until all have.
  std::optional<communicator> split(int color, int key = 0) {
    auto const deadline = group::clock::now() + calls_.options().deadline;
    auto part = calls_.ranks().split(color, key, deadline);
    if (!part) return std::nullopt;
    X link = reconnect(calls_.transport(), part, deadline);
    return communicator(std::move(part), std::move(link), calls_.options());
  }

  /// The same ranks with streams of their own, so that calls on both do not wait for each other. As split().
  communicator duplicate() { return *split(0, rank()); }

  /// Ends the communicator on every rank, for one that cannot go on: calls under way and later ones throw error with
  /// this sentence. Communicators that it was split from, and those that were split from it, go on. Returns within
  /// about a second.
  void abort(std::string why) noexcept { calls_.ranks().report({failure::kind::other, rank(), std::move(why)}); }

  /// `count` elements, zero bytes at first, that every rank of the host can address where the transport has shared
  /// memory, and ordinary memory elsewhere. An all_reduce between such buffers on all ranks copies nothing on the way.
  /// Local: no other rank takes part. Throws error with sizes if memory is short.
  template <element T>
  registered_buffer<T> allocate(std::size_t count) {
    return registered_buffer<T>(memory(), count);
  }

  /// Where allocate() takes its memory from, for containers: std::pmr::vector<float> v(memory.get()). Whole pages, so
  /// put a pool in front of it for small objects. To calls of other communicators it is ordinary memory.
  std::shared_ptr<std::pmr::memory_resource> memory() const {
    if (auto const& registered = calls_.shared().registered()) return registered;
    return {std::shared_ptr<void>(), std::pmr::new_delete_resource()};
  }

  /// The algorithm that a call without a choice of its own would take; direct for send and receive.
  algorithm chosen(collective c, std::size_t bytes) const noexcept {
    return calls_.automatic_choices().of(plain_call(c, bytes));
  }

  /// The same and the reasons for it, in two or three lines: the line of the policy with its figures, or the terms of
  /// the model with the three best. For people; the wording may change.
  std::string explain(collective c, std::size_t bytes) const {
    auto const& known = calls_.automatic_choices();
    auto const& boards = calls_.shared();
    return rondo::explain(plain_call(c, bytes), known.transport(), known.measured().get(),
                          boards ? boards.slot_bytes() : 0);
  }

  /// How this rank is connected with the others, and why so, as far as the transport can tell: see multi. For people;
  /// the wording may change.
  std::string explain() const { return rondo::explain(calls_.transport()); }

  /// Does the algorithm offer the collective here? As supports(), and a direct all_reduce where ranks share memory.
  bool offers(algorithm a, collective c) const noexcept { return supports(a, c, size(), calls_.around().boards); }

 private:
  /// A call that brings no options and whose operation, if it has one, commutes.
  situation plain_call(collective c, std::size_t bytes) const noexcept {
    situation s = calls_.automatic_choices().place();
    s.collective = c;
    s.bytes = bytes;
    s.ordered = calls_.options().ordered;
    s.shared_memory = c == collective::all_reduce && offers(algorithm::direct, c);
    return s;
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
  template <class T, class U, class Op, class E>
  static auto reduce_scatter_of(std::span<T const> in, std::span<U> out, collectives::blocks counts, Op const& op,
                                E const& e) {
    return collectives::reduce_scatter_epilogue<T, U, Op, E>{{}, in, out, counts, op, e};
  }
  template <class T>
  static auto all_gather_of(std::span<T const> in, std::span<T> out, collectives::blocks counts) {
    return collectives::all_gather<T>{{}, in, out, counts};
  }
  template <class U, class P>
  static auto all_gather_of(P const& p, std::span<U> out, collectives::blocks counts) {
    return collectives::all_gather_produced<U, P>{{}, p, out, counts};
  }
  collectives::blocks even_blocks(std::size_t count) const {
    return collectives::blocks(count / static_cast<std::size_t>(size()));
  }
  template <class T>
  auto even_all_to_all(std::span<T const> in, std::span<T> out) const {
    collectives::blocks const each = even_blocks(in.size());
    return collectives::all_to_all<T>{{}, in, each, out, each};
  }

  run::dispatcher<X> calls_;
};

}  // namespace rondo::inline v0
