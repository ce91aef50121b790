#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rondo::bench {

class comm;

/// A world could not be set up, or one of its ranks failed; what() is the sentence to print.
class world_error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// How the ranks of a benchmark keep together beside the library that they measure.
class coordinator {
 public:
  virtual ~coordinator() = default;

  /// Returns when every rank has called it. Spins briefly, then yields.
  virtual void barrier() = 0;

  /// What every rank passed, concatenated by rank; all pass the same number of words. Every rank must call.
  virtual std::vector<std::uint64_t> gather(std::span<std::uint64_t const> mine) = 0;

  std::vector<double> gather(std::span<double const> mine);

  /// The value of rank 0.
  double agree(double mine);
};

/// What the probe of the machine's limit needs: made before the ranks exist, empty where ranks were started by others.
struct probe_resources {
  std::span<std::byte> memory{};  ///< addressable by all ranks: an input and an output for each, in this order
  int to_next = -1;               ///< a connected socket to the next rank; -1: none
  int from_previous = -1;
  std::chrono::microseconds spin{100};  ///< how long a rank polls these before it sleeps
};

using line_sink = std::function<void(std::string_view)>;

/// One rank of a world.
class member {
 public:
  member(int rank, int size, std::string transport, comm& c, coordinator& ranks, line_sink sink)
      : communicator(c), together(ranks), transport(std::move(transport)), emit(std::move(sink)), rank_(rank),
        size_(size) {}

  comm& communicator;
  coordinator& together;
  probe_resources probe;
  std::string transport;
  line_sink emit;  ///< hands one line to the command, rank 0 only

  int rank() const { return rank_; }
  int size() const { return size_; }

 private:
  int rank_, size_;
};

struct world_spec {
  std::string transport;  ///< one of transport_names()
  int ranks = 2;
  bool pin = true;                     ///< one core a rank, where there are enough
  std::size_t probe_bytes = 0;         ///< the largest buffer that the limit is measured for; 0: no probe
  std::chrono::seconds deadline{120};  ///< of every call and of joining
};

using rank_body = std::function<void(member&)>;
/// Starts the ranks (threads of one child for in_process, else one child each), runs body on each of them, and calls
/// sink here with what rank 0 emits. Returns when all have ended well, throws world_error with the first failure
/// otherwise; no child outlives the call. The caller must not have started threads.
void run_world(world_spec const& spec, rank_body const& body, line_sink const& sink);

/// True when a launcher (rondo launch, torchrun, mpirun, srun) started this process as one of several ranks.
bool launched_as_rank();

/// This process becomes one rank of the world that the launcher started. spec.ranks is ignored.
void join_world(world_spec const& spec, rank_body const& body, line_sink const& sink);

/// Transports that this build can run, by name. Those over a library are there if it was when this was built.
std::vector<std::string> transport_names();

/// Those among them that connect ranks on any machine, each in a way of its own.
std::vector<std::string> usual_transports();

}  // namespace rondo::bench
