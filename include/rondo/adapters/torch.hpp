#pragma once

#include <rondo/adapters/torch/elements.hpp>
#include <rondo/adapters/torch/join.hpp>
#include <rondo/adapters/torch/lane.hpp>
#include <rondo/adapters/torch/mailroom.hpp>
#include <rondo/adapters/torch/tensors.hpp>
#include <rondo/adapters/torch/work.hpp>
#include <rondo/communicator.hpp>
#include <rondo/transports/multi.hpp>

#include <ATen/ATen.h>
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <torch/csrc/distributed/c10d/Types.hpp>
#include <torch/version.h>
#include <utility>
#include <vector>

#if TORCH_VERSION_MAJOR >= 2
#include <torch/csrc/distributed/c10d/Backend.hpp>
#else
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#endif

namespace rondo::inline v0 {

/// What PyTorch calls the collectives of: a Backend since 2.0, a ProcessGroup before.
#if TORCH_VERSION_MAJOR >= 2
using torch_interface = c10d::Backend;
#else
using torch_interface = c10d::ProcessGroup;
#endif

/// A backend of torch.distributed, for dense tensors of the CPU: shared memory within a host, TCP between hosts.
///
/// Collectives run in the order of the calls, one after the other, on a thread of the backend; sends and receives run
/// beside them on another one, and are matched by tags. Every call returns a handle at once. Tensors may have any
/// strides; those that are not contiguous are copied on the way. A call that cannot be made throws at once, changes
/// nothing and leaves the backend usable; what goes wrong later is thrown by wait() of the handle, on all ranks, and
/// the backend is unusable from then on. All ranks get the same bits.
class torch_backend : public torch_interface {
 public:
  using handle = c10::intrusive_ptr<c10d::Work>;
  using tensors = detail::tensors;

  /// Every rank must construct one, with a store that all of them share and that no other backend has used; blocks
  /// until all have. `timeout` is that of joining, and of every call that brings none.
  torch_backend(c10::intrusive_ptr<c10d::Store> const& store, int rank, int size, std::chrono::milliseconds timeout)
      : torch_interface(rank, size), timeout_(timeout), group_(detail::join_store(*store, rank, size, timeout)),
        comm_(group_, multi::connect(group_, {}, until(timeout)), {.deadline = timeout}),
        mail_(std::in_place, group_, multi::connect(group_, {}, until(timeout))), lane_(std::in_place) {}

  /// Waits for the calls in flight, whose timeouts bound the wait.
  ~torch_backend() override { close(); }

  /// What the destructor does. Later calls throw.
  void close() {
    lane_.reset();
    mail_.reset();
  }

  const std::string getBackendName() const override { return "rondo"; }

  handle allreduce(tensors& data, c10d::AllreduceOptions const& o) override {
    return reduce_all(c10d::OpType::ALLREDUCE, detail::single("all_reduce", data), o);
  }
  handle allreduce_coalesced(tensors& data, c10d::AllreduceCoalescedOptions const& o) override {
    detail::check_tensors("all_reduce_coalesced", data);
    return reduce_all(c10d::OpType::ALLREDUCE_COALESCED, data, o);
  }

  handle reduce(tensors& data, c10d::ReduceOptions const& o) override {
    auto const mine = detail::single("reduce", data);
    auto const root = checked_rank("reduce", "root", o.rootRank);
    detail::check_reduction(mine.front().scalar_type(), o.reduceOp);
    return start(c10d::OpType::REDUCE, mine, [=, this, op = o.reduceOp, timeout = o.timeout] {
      detail::packed all(mine);
      all.load();
      detail::with_reduction(all.type(), op, [&]<class T>(std::type_identity<T>, auto const& f) {
        comm_.reduce(all.as<T>(), f, root, within(timeout));
      });
      if (root == getRank()) all.store();
    });
  }

  handle reduce_scatter(tensors& out, std::vector<tensors>& in, c10d::ReduceScatterOptions const& o) override {
    detail::check_count("reduce_scatter", "list of input tensors", 1, in.size());
    detail::check_count("reduce_scatter", "input tensors", size(), in.front().size());
    auto const mine = detail::single("reduce_scatter", out);
    return start(c10d::OpType::REDUCE_SCATTER, mine,
                 scattered_sums(in.front(), mine, detail::counts_of(in.front()), o));
  }
  handle _reduce_scatter_base(at::Tensor& out, at::Tensor& in, c10d::ReduceScatterOptions const& o) override {
    return start(c10d::OpType::_REDUCE_SCATTER_BASE, {out}, scattered_sums({in}, {out}, even_blocks(out), o));
  }

  handle broadcast(tensors& data, c10d::BroadcastOptions const& o) override {
    auto const mine = detail::single("broadcast", data);
    auto const root = checked_rank("broadcast", "root", o.rootRank);
    return start(c10d::OpType::BROADCAST, mine, [=, this] {
      detail::packed all(mine);
      all.load();
      detail::with_element(
          all.type(), [&]<class T>(std::type_identity<T>) { comm_.broadcast(all.as<T>(), root, within(o.timeout)); });
      all.store();
    });
  }

  handle allgather(std::vector<tensors>& out, tensors& in, c10d::AllgatherOptions const& o) override {
    detail::check_count("all_gather", "list of output tensors", 1, out.size());
    detail::check_count("all_gather", "output tensors", size(), out.front().size());
    auto const mine = detail::single("all_gather", in);
    return start(c10d::OpType::ALLGATHER, out.front(),
                 gathered(mine, out.front(), detail::counts_of(out.front()), o.timeout));
  }
  handle _allgather_base(at::Tensor& out, at::Tensor& in, c10d::AllgatherOptions const& o) override {
    return start(c10d::OpType::_ALLGATHER_BASE, {out}, gathered({in}, {out}, even_blocks(in), o.timeout));
  }
  /// out[r] are the tensors of rank r.
  handle allgather_coalesced(std::vector<tensors>& out, tensors& in, c10d::AllgatherOptions const& o) override {
    detail::check_count("all_gather_coalesced", "lists of output tensors", size(), out.size());
    tensors all;
    std::vector<std::size_t> counts;
    for (auto const& of_rank : out) {
      all.insert(all.end(), of_rank.begin(), of_rank.end());
      counts.push_back(collectives::total(detail::counts_of(of_rank)));
    }
    return start(c10d::OpType::ALLGATHER_COALESCED, all, gathered(in, all, std::move(counts), o.timeout));
  }

#if TORCH_VERSION_MAJOR >= 2
  handle allgather_into_tensor_coalesced(tensors& out, tensors& in, c10d::AllgatherOptions const& o) override {
    return start_each(in.size(), out,
                      [&](std::size_t i) { return gathered({in[i]}, {out[i]}, even_blocks(in[i]), o.timeout); });
  }
  handle reduce_scatter_tensor_coalesced(tensors& out, tensors& in, c10d::ReduceScatterOptions const& o) override {
    return start_each(in.size(), out,
                      [&](std::size_t i) { return scattered_sums({in[i]}, {out[i]}, even_blocks(out[i]), o); });
  }
#endif

  handle gather(std::vector<tensors>& out, tensors& in, c10d::GatherOptions const& o) override {
    auto const mine = detail::single("gather", in);
    auto const root = checked_rank("gather", "root", o.rootRank);
    auto const all = of_root("gather", "output", root, out, mine);
    return start(c10d::OpType::GATHER, all, [=, this] {
      detail::packed from(mine), to(all);
      from.load();
      detail::with_element(from.type(), [&]<class T>(std::type_identity<T>) {
        comm_.gather(from.as<T>(), to.as<T>(), root, within(o.timeout));
      });
      to.store();
    });
  }
  handle scatter(tensors& out, std::vector<tensors>& in, c10d::ScatterOptions const& o) override {
    auto const mine = detail::single("scatter", out);
    auto const root = checked_rank("scatter", "root", o.rootRank);
    auto const all = of_root("scatter", "input", root, in, mine);
    return start(c10d::OpType::SCATTER, mine, [=, this] {
      detail::packed from(all), to(mine);
      from.load();
      detail::with_element(to.type(), [&]<class T>(std::type_identity<T>) {
        comm_.scatter(from.as<T>(), to.as<T>(), root, within(o.timeout));
      });
      to.store();
    });
  }

  handle alltoall(tensors& out, tensors& in, c10d::AllToAllOptions const& o) override {
    detail::check_count("all_to_all", "output tensors", size(), out.size());
    detail::check_count("all_to_all", "input tensors", size(), in.size());
    return start(c10d::OpType::ALLTOALL, out,
                 exchanged(in, detail::counts_of(in), out, detail::counts_of(out), o.timeout));
  }
  /// The splits count rows; without any all ranks get the same number.
  handle alltoall_base(at::Tensor& out, at::Tensor& in, std::vector<std::int64_t>& out_rows,
                       std::vector<std::int64_t>& in_rows, c10d::AllToAllOptions const& o) override {
    return start(c10d::OpType::ALLTOALL_BASE, {out},
                 exchanged({in}, rows_of("input", in, in_rows), {out}, rows_of("output", out, out_rows), o.timeout));
  }

  handle barrier(c10d::BarrierOptions const& o) override {
    return start(c10d::OpType::BARRIER, {}, [timeout = o.timeout, this] { comm_.barrier(within(timeout)); });
  }
  /// A barrier whose error names a rank that did not come, whether or not all are waited for.
  void monitoredBarrier(c10d::BarrierOptions const& o, bool) override { barrier(o)->wait(); }

  /// A message of a tensor. Between two ranks, those of one tag arrive in the order of the sends.
  handle send(tensors& data, int to, int tag) override {
    return post("send", c10d::OpType::SEND, data, checked_peer("send", to), tag);
  }
  handle recv(tensors& data, int from, int tag) override {
    return post("recv", c10d::OpType::RECV, data, checked_peer("recv", from), tag);
  }
  /// sourceRank() of the handle says whose it was.
  handle recvAnysource(tensors& data, int tag) override {
    return post("recv", c10d::OpType::RECVANYSOURCE, data, nobody, tag);
  }

  /// Makes call(communicator) in the place of a collective, in its turn and on the thread of the collectives. Every
  /// rank must; it throws nothing.
  void between_collectives(std::function<void(communicator<multi>&)> call) {
    push([this, call = std::move(call)] { call(comm_); });
  }

  /// The number of collectives so far, which is the same on all ranks.
  void setSequenceNumberForGroup() override {}
  std::uint64_t getSequenceNumberForGroup() override { return sequence_; }

 private:
  static group::clock::time_point until(std::chrono::milliseconds patience) {
    return group::clock::now() + std::min<std::chrono::milliseconds>(patience, std::chrono::hours(24 * 365));
  }

  std::size_t size() const { return static_cast<std::size_t>(getSize()); }

  call_options within(std::chrono::milliseconds timeout) const {
    return {.deadline = timeout.count() > 0 ? timeout : timeout_};
  }

  rank_t checked_rank(char const* call, char const* what, std::int64_t rank) const {
    if (rank < 0 || rank >= getSize())
      throw invalid_argument(std::string(call) + " has " + what + ' ' + std::to_string(rank) + " among " +
                             std::to_string(getSize()) + " ranks: give a rank of the group");
    return static_cast<rank_t>(rank);
  }
  rank_t checked_peer(char const* call, int peer) const {
    if (peer == getRank())
      throw invalid_argument(std::string(call) + " names this rank itself: copy the tensor instead");
    return checked_rank(call, "peer", peer);
  }

  std::vector<std::size_t> even_blocks(at::Tensor const& block) const {
    return std::vector<std::size_t>(size(), detail::count_of(block));
  }

  std::vector<std::size_t> rows_of(char const* what, at::Tensor const& t, std::vector<std::int64_t> const& rows) const {
    auto const all = t.dim() == 0 ? std::int64_t{1} : t.size(0);
    if (rows.empty() && all % getSize() != 0)
      throw invalid_argument("all_to_all has " + std::to_string(all) + " rows in its " + what +
                             " tensor, which do not divide by " + std::to_string(getSize()) +
                             " ranks: say how many each of them gets");
    if (!rows.empty()) detail::check_count("all_to_all", "split sizes", size(), rows.size());
    auto const row = all == 0 ? std::size_t{0} : detail::count_of(t) / static_cast<std::size_t>(all);
    std::vector<std::size_t> counts(size(), row * static_cast<std::size_t>(all / getSize()));
    for (std::size_t i = 0; i < rows.size(); ++i) counts[i] = row * static_cast<std::size_t>(rows[i]);
    return counts;
  }

  /// The tensors of a list that only the root gives, one like `mine` for each rank; none elsewhere.
  tensors of_root(char const* call, char const* what, rank_t root, std::vector<tensors> const& given,
                  tensors const& mine) const {
    if (getRank() != root) return {};
    detail::check_count(call, "list of tensors on its root", 1, given.size());
    detail::check_count(call, "tensors in the list of its root", size(), given.front().size());
    detail::check_sizes(call, what, given.front(), even_blocks(mine.front()), mine.front().scalar_type());
    if (detail::counts_of(given.front()) != even_blocks(mine.front()))
      throw invalid_argument(std::string(call) + " was given a list of tensors of several sizes: all ranks get as many "
                                                 "elements");
    return given.front();
  }

  void push(detail::lane::job call) {
    if (!lane_) throw error("the process group was destroyed: make a new one");
    ++sequence_;
    lane_->push(std::move(call));
  }

  handle start(c10d::OpType type, tensors outputs, detail::lane::job call) {
    auto const work = c10::make_intrusive<detail::torch_work>(getRank(), type, std::move(outputs));
    push([work, call = std::move(call)] { work->run(call); });
    return work;
  }

#if TORCH_VERSION_MAJOR >= 2
  /// Starts call(i) for each of the outputs, of which there are `count`, under one handle.
  template <class Call>
  handle start_each(std::size_t count, tensors const& out, Call const& call) {
    detail::check_count("a call on several tensors", "outputs", count, out.size());
    std::vector<detail::lane::job> calls;
    for (std::size_t i = 0; i < count; ++i) calls.push_back(call(i));
    return start(c10d::OpType::COALESCED, out, [calls] {
      for (auto const& each : calls) each();
    });
  }
#endif

  template <class Options>
  handle reduce_all(c10d::OpType type, tensors const& data, Options const& o) {
    detail::check_reduction(data.front().scalar_type(), o.reduceOp);
    return start(type, data, [this, data, op = o.reduceOp, timeout = o.timeout] {
      detail::packed all(data);
      all.load();
      detail::with_reduction(all.type(), op, [&]<class T>(std::type_identity<T>, auto const& f) {
        comm_.all_reduce(all.as<T>(), f, within(timeout));
      });
      all.store();
    });
  }

  /// The calls below check their arguments at once and return what is to be done on the lane.
  detail::lane::job scattered_sums(tensors in, tensors out, std::vector<std::size_t> counts,
                                   c10d::ReduceScatterOptions const& o) {
    detail::check_sizes("reduce_scatter", "input", in, counts);
    detail::check_sizes("reduce_scatter", "output", out, own(counts), in.front().scalar_type());
    detail::check_reduction(in.front().scalar_type(), o.reduceOp);
    return [=, this, op = o.reduceOp, timeout = o.timeout] {
      detail::packed from(in), to(out);
      from.load();
      detail::with_reduction(from.type(), op, [&]<class T>(std::type_identity<T>, auto const& f) {
        comm_.reduce_scatter_v(from.as<T>(), to.as<T>(), counts, f, within(timeout));
      });
      to.store();
    };
  }

  detail::lane::job gathered(tensors in, tensors out, std::vector<std::size_t> counts,
                             std::chrono::milliseconds timeout) {
    detail::check_sizes("all_gather", "output", out, counts);
    detail::check_sizes("all_gather", "input", in, own(counts), out.front().scalar_type());
    return [=, this] {
      detail::packed from(in), to(out);
      from.load();
      detail::with_element(to.type(), [&]<class T>(std::type_identity<T>) {
        comm_.all_gather_v(from.as<T>(), to.as<T>(), counts, within(timeout));
      });
      to.store();
    };
  }

  detail::lane::job exchanged(tensors in, std::vector<std::size_t> to_each, tensors out,
                              std::vector<std::size_t> from_each, std::chrono::milliseconds timeout) {
    detail::check_sizes("all_to_all", "input", in, to_each);
    detail::check_sizes("all_to_all", "output", out, from_each, in.front().scalar_type());
    return [=, this] {
      detail::packed from(in), to(out);
      from.load();
      detail::with_element(to.type(), [&]<class T>(std::type_identity<T>) {
        comm_.all_to_all_v(from.as<T>(), to_each, to.as<T>(), from_each, within(timeout));
      });
      to.store();
    };
  }

  std::vector<std::size_t> own(std::vector<std::size_t> const& counts) const {
    return {counts[static_cast<std::size_t>(getRank())]};
  }

  handle post(char const* call, c10d::OpType type, tensors const& data, rank_t peer, int tag) {
    if (!mail_) throw error("the process group was destroyed: make a new one");
    auto const mine = detail::single(call, data);
    auto const box = std::make_shared<detail::packed>(mine);
    bool const is_sent = type == c10d::OpType::SEND;
    detail::parcel parcel{.bytes = box->as_bytes(),
                          .type = {},
                          .peer = peer,
                          .tag = static_cast<std::uint64_t>(tag),
                          .deadline = until(timeout_),
                          .receipt = {}};
    detail::with_element(box->type(),
                         [&]<class T>(std::type_identity<T>) { parcel.type = to_short_name(type_name<T>()); });
    if (is_sent) box->load();
    auto const work = c10::make_intrusive<detail::torch_work>(getRank(), type, mine);
    parcel.receipt = [=](rank_t source, std::exception_ptr const& wrong) {
      auto const arrive = [&] {
        if (wrong) std::rethrow_exception(wrong);
        if (!is_sent) box->store();
      };
      work->run(arrive, source);
    };
    is_sent ? mail_->send(std::move(parcel)) : mail_->receive(std::move(parcel));
    return work;
  }

  std::chrono::milliseconds timeout_;
  std::shared_ptr<group> group_;
  communicator<multi> comm_;
  std::uint64_t sequence_ = 0;
  std::optional<detail::mailroom<multi>> mail_;
  std::optional<detail::lane> lane_;
};

}  // namespace rondo::inline v0
