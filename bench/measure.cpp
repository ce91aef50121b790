#include "measure.hpp"

#include "limit.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <fmt/format.h>
#include <map>
#include <span>
#include <sys/mman.h>

namespace rondo::bench {
namespace {

using clock = std::chrono::steady_clock;

double seconds_since(clock::time_point start) { return std::chrono::duration<double>(clock::now() - start).count(); }

std::size_t rounded_up(std::size_t bytes, std::size_t unit) { return (bytes + unit - 1) / unit * unit; }

}  // namespace

void* arena::at_least(std::size_t bytes) {
  if (bytes > size_ || !data_) {
    data_.reset();
    size_ = rounded_up(std::max<std::size_t>(bytes, 1), 4096);
    data_.reset(std::aligned_alloc(4096, size_));
    if (!data_) throw world_error(fmt::format("{} bytes of memory are not available: ask for smaller sizes.", size_));
    std::memset(data_.get(), 0, size_);
  }
  return data_.get();
}

void arena::release::operator()(void* data) const { std::free(data); }

pattern const& workshop::inputs(datatype type, reduction op) {
  auto& found = patterns_[{type, op}];
  if (!found) found = make_pattern(type, op, me_.size());
  return *found;
}

double workshop::limit(call const& what, std::vector<std::size_t> const& counts) {
  std::map<std::size_t, double> known;
  double sum = 0;
  for (auto const count : counts) {
    auto const bytes = shape_of(what.what, count, me_.size(), me_.rank(), what.root).total * size_of(what.type);
    auto const [found, is_new] = known.try_emplace(bytes, not_measured);
    if (is_new) found->second = limit_us(me_, what.what, bytes, what.root);
    sum += found->second;
  }
  return sum;
}

measurement::measurement(workshop& shop, job what)
    : shop_(shop), job_(std::move(what)),
      inputs_(shop.inputs(job_.what.type, reduces(job_.what.what) ? job_.what.op : reduction::sum)) {
  auto const most =
      job_.work.name.empty() ? std::size_t(-1) : std::max<std::size_t>(1, shop.memory() / size_of(job_.what.type));
  for (auto const count : job_.work.counts)
    for (std::size_t left = count, next;; left -= next) {
      next = std::min(left, most);
      place(next);
      if (left == next) break;
    }
}

void measurement::place(std::size_t count) {
  auto const p = shop_.me().size();
  auto const size = size_of(job_.what.type);
  auto const elements = shape_of(job_.what.what, count, p, shop_.me().rank(), job_.what.root);
  auto const bytes = rounded_up(std::max({elements.in, elements.out, elements.total}) * size, 64);
  if (!job_.work.name.empty() && next_ + bytes > shop_.memory()) next_ = 0;
  pieces_.push_back({elements, next_, next_ >= extent_});
  next_ += bytes;
  extent_ = std::max(extent_, next_);
}

std::size_t measurement::own_block(collective of, piece const& p) const {
  if (!job_.in_place || job_.what.what != of) return 0;
  return static_cast<std::size_t>(shop_.me().rank()) * p.elements.count * size_of(job_.what.type);
}

void* measurement::output_of(piece const& p) {
  return static_cast<std::byte*>(shop_.out(extent_)) + p.offset + own_block(collective::reduce_scatter, p);
}

void* measurement::input_of(piece const& p) {
  auto* const base = job_.in_place ? shop_.out(extent_) : shop_.in(extent_);
  return static_cast<std::byte*>(base) + p.offset + own_block(collective::all_gather, p);
}

void measurement::fill(piece const& p, std::size_t phase) {
  inputs_.fill(input_of(p), p.elements.in, shop_.me().rank(), 0, phase);
}

void measurement::iterate(std::size_t phase) {
  auto& me = shop_.me();
  for (auto const& p : pieces_)
    if (p.first_lap) fill(p, phase);
  me.together.barrier();
  auto const start = clock::now();
  for (auto const& p : pieces_) perform(me.communicator, job_.what, p.elements, input_of(p), output_of(p));
  times_.push_back(seconds_since(start) * 1e6);
  std::uint64_t hash = 0;
  for (auto const& p : pieces_)
    if (p.first_lap)
      hash = hash * 31 +
             hash_bytes({static_cast<std::byte const*>(output_of(p)), p.elements.out * size_of(job_.what.type)});
  hashes_.push_back(hash);
}

void measurement::warm_up() {
  for (int i = 0; i < std::max(1, job_.warm_up); ++i) {
    auto const start = clock::now();
    iterate_untimed();
    iteration_s_ = shop_.me().together.agree(seconds_since(start));
    if (iteration_s_ > job_.budget_s && job_.iterations == 0) break;
  }
  iterations_ = job_.iterations > 0 ? job_.iterations : iterations_for(job_.budget_s, iteration_s_, 3, 2000);
}

void measurement::run(int turns) {
  int const turn = static_cast<int>(turn_ends_.size()) % turns;
  int const some = iterations_ * (turn + 1) / turns - iterations_ * turn / turns;
  // What was measured in between has taken the caches: who shares memory with it would be ahead of who does not.
  if (turns > 1)
    for (int i = 0; i < (some + 1) / 2; ++i) iterate_untimed();
  for (int i = 0; i < some; ++i) iterate(++phase_);
  turn_ends_.push_back(times_.size());
}

void measurement::iterate_untimed() {
  iterate(++phase_);
  times_.pop_back();
  hashes_.pop_back();
}

std::vector<double> measurement::times_of(std::vector<std::size_t> const& turns) const {
  std::vector<double> times;
  for (auto const t : turns)
    for (auto i = t == 0 ? 0 : turn_ends_[t - 1]; i < turn_ends_[t]; ++i) times.push_back(times_[i]);
  return times.empty() ? times_ : times;  // of large sizes there are fewer iterations than turns
}

std::size_t measurement::check(piece const& p, std::size_t phase) {
  auto& me = shop_.me();
  auto const bytes = size_of(job_.what.type);
  auto* const out = static_cast<std::byte*>(output_of(p));
  std::memset(out, 0xff, p.elements.out * bytes);
  fill(p, phase);
  perform(me.communicator, job_.what, p.elements, input_of(p), out);
  std::size_t wrong = 0;
  if (p.elements.out > 0)
    for (auto const& o : origins(job_.what.what, p.elements, me.size(), me.rank(), job_.what.root))
      wrong += inputs_.count_wrong(out + o.at * bytes, o.count, o.source, o.offset, phase);
  hashes_.push_back(hash_bytes({out, p.elements.out * bytes}));
  return wrong;
}

row measurement::finish(std::vector<std::size_t> const& counted) {
  auto& me = shop_.me();
  auto const counted_times = times_of(counted);
  std::uint64_t wrong = 0;
  bool repeats = true;
  std::vector<std::uint64_t> first;
  auto timed_hashes = std::exchange(hashes_, {});
  ++phase_;
  for (int c = 0; c < job_.checks; ++c) {
    hashes_.clear();
    for (auto const& p : pieces_) wrong += check(p, phase_);
    if (c == 0) first = hashes_;
    repeats = repeats && hashes_ == first;
  }
  if (replicates(job_.what.what))
    timed_hashes.insert(timed_hashes.end(), first.begin(), first.end());
  else
    timed_hashes.clear();
  timed_hashes.push_back(repeats ? 1 : 0);

  auto const all_wrong = me.together.gather(std::span<std::uint64_t const>(&wrong, 1));
  auto const all_hashes = me.together.gather(std::span<std::uint64_t const>(timed_hashes));
  auto const all_times = me.together.gather(std::span<double const>(counted_times));

  row r;
  r.transport = me.transport;
  r.ranks = me.size();
  r.algorithm = std::string(to_string(job_.what.how));
  r.collective = std::string(to_string(job_.what.what));
  r.type = std::string(name_of(job_.what.type));
  r.op = reduces(job_.what.what) ? std::string(name_of(job_.what.op)) : "none";
  r.root = has_root(job_.what.what) ? job_.what.root : -1;
  r.workload = job_.work.name;
  for (auto const& p : pieces_) {
    r.bytes += p.elements.total * size_of(job_.what.type);
    r.count += p.elements.count;
  }
  if (job_.what.how == algorithm::automatic && pieces_.size() == 1)
    r.chosen = std::string(to_string(chosen(me.communicator, job_.what.what, r.bytes)));
  r.in_place = job_.in_place;
  r.buffers = static_cast<int>(pieces_.size());
  r.iterations = static_cast<int>(counted_times.size());
  auto const times = summarise(slowest(all_times, counted_times.size()));
  r.min_us = times.min;
  r.p50_us = times.p50;
  r.p99_us = times.p99;
  r.algbw_GBps = static_cast<double>(r.bytes) / times.p50 / 1e3;
  r.busbw_GBps = r.algbw_GBps * bus_factor(job_.what.what, me.size());
  for (auto const w : all_wrong) r.wrong += w;
  r.checked = job_.checks > 0;
  for (std::size_t i = 0; i < all_hashes.size(); ++i)
    r.hashes_equal = r.hashes_equal && all_hashes[i] == timed_hashes[i % timed_hashes.size()];
  return r;
}

}  // namespace rondo::bench
