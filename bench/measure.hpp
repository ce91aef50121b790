#pragma once

#include "calls.hpp"
#include "pattern.hpp"
#include "row.hpp"
#include "world.hpp"

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace rondo::bench {

/// What is called in one iteration: one buffer of some size, or all gradient buffers of a model.
struct workload {
  std::string name;                 ///< "" for a plain size
  std::vector<std::size_t> counts;  ///< elements of each call
};

/// One series of calls.
struct job {
  call what;
  workload work;
  bool in_place = false;
  int warm_up = 3;
  int iterations = 0;  ///< 0: as many as fit into budget_s
  double budget_s = 0.3;
  int checks = 1;  ///< repetitions with every element compared; 0: none
};

/// Page-aligned memory that grows and is used again by every job of a rank.
class arena {
 public:
  void* at_least(std::size_t bytes);

 private:
  struct release {
    void operator()(void* data) const;
  };
  std::unique_ptr<void, release> data_;
  std::size_t size_ = 0;
};

/// Buffers and tables of inputs that the jobs of one rank share.
class workshop {
 public:
  /// No more than `memory` bytes are used for the input and as many for the output: buffers of a workload that is
  /// larger take turns in the same memory, and a single one that is larger is called in pieces.
  workshop(member& me, std::size_t memory) : me_(me), memory_(memory) {}

  member& me() const { return me_; }
  std::size_t memory() const { return memory_; }
  void* in(std::size_t bytes) { return in_.at_least(bytes); }
  void* out(std::size_t bytes) { return out_.at_least(bytes); }
  pattern const& inputs(datatype type, reduction op);

  /// limit_us of the sizes together, each size measured once. Every rank must call.
  double limit(call const& what, std::vector<std::size_t> const& counts);

 private:
  member& me_;
  std::size_t memory_;
  arena in_, out_;
  std::map<std::pair<datatype, reduction>, std::unique_ptr<pattern const>> patterns_;
};

/// Runs a job piece by piece, so that several jobs can take turns. Every rank must make the same calls.
class measurement {
 public:
  measurement(workshop& shop, job what);

  /// Warms up and decides on the number of iterations.
  void warm_up();

  /// One of `turns` turns, which together are all iterations, each with a few before them that are not timed. Further
  /// turns repeat the first: see finish().
  void run(int turns = 1);

  /// Seconds of one iteration of the slowest rank with all that belongs to it; after warm_up().
  double iteration_s() const { return iteration_s_; }
  algorithm how() const { return job_.what.how; }

  /// Checks every element; collects the ranks' times, of the turns that count only. The row is complete on every rank.
  row finish(std::vector<std::size_t> const& counted = {0});

 private:
  /// One call of the workload: where it lies in the arenas.
  struct piece {
    shape elements;
    std::size_t offset;  ///< bytes
    bool first_lap;      ///< the first piece that lies in its memory: the one that is filled and read around the timer
  };

  void place(std::size_t count);
  std::size_t own_block(collective of, piece const& p) const;
  void* input_of(piece const& p);
  void* output_of(piece const& p);
  void fill(piece const& p, std::size_t phase);
  void iterate(std::size_t phase);
  void iterate_untimed();
  std::vector<double> times_of(std::vector<std::size_t> const& turns) const;
  std::size_t check(piece const& p, std::size_t phase);

  workshop& shop_;
  job job_;
  pattern const& inputs_;
  std::vector<piece> pieces_;
  std::size_t extent_ = 0;  ///< bytes used of each arena
  std::size_t next_ = 0;    ///< bytes
  std::vector<double> times_;
  std::vector<std::size_t> turn_ends_;  ///< in times_
  std::vector<std::uint64_t> hashes_;
  double iteration_s_ = 0;
  int iterations_ = 0;
  std::size_t phase_ = 0;
};

}  // namespace rondo::bench
