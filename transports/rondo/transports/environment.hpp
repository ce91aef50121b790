#pragma once

#include <rondo/detail/file_text.hpp>
#include <rondo/detail/text.hpp>
#include <rondo/error.hpp>

#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <unistd.h>

namespace rondo::inline v0 {

/// Who this process is among the ranks of its job, and where rank 0 waits for the others.
///
/// Either all fields are filled in by hand, or detect() reads what the launcher has set. The address and the port must
/// be the same on all ranks. With no address or port 0 all ranks must be on one host: they find each other through an
/// abstract Unix socket that is named after the user and `job`.
struct environment {
  int rank = 0;
  int size = 1;
  int local_rank = 0;      ///< number of this rank on its host; 0 if the launcher does not say
  int local_size = 0;      ///< ranks on this host; 0 if the launcher does not say
  std::string address{};   ///< host name or IP address of rank 0; empty: this host
  std::uint16_t port = 0;  ///< where rank 0 listens; 0: found through `job`
  int ports = 1;           ///< rank 0 takes the first free one of port, port + 1, …; the others look at all of them
  std::string job{};       ///< keeps jobs of one user and host apart; no secret
  std::string token{};     ///< the secret that every rank must prove to know; empty: `job` takes its place
  int listen_fd = -1;      ///< rank 0: a socket that already listens at the address; stays open; -1: none
  std::string launcher{};  ///< who set the variables, for messages

  /// The value of a variable, or nullptr.
  using lookup = std::function<char const*(char const*)>;

  /// Reads RONDO_*, else what torchrun, Open MPI, MPICH and other PMI launchers, or Slurm set, in this order; a process
  /// that nobody launched is a world of 1. RONDO_ADDR, RONDO_PORT, RONDO_TOKEN and RONDO_JOB override the launcher's.
  /// Throws invalid_argument that names the variable.
  static environment detect(lookup const& get = [](char const* name) -> char const* { return std::getenv(name); });
};

namespace detail {

/// Variables with the checks that every one of them needs. An empty variable counts as unset.
class variables {
 public:
  explicit variables(environment::lookup const& get) : get_(get) {}

  std::optional<std::string> text(char const* name) const {
    char const* const value = name ? get_(name) : nullptr;
    if (!value || !*value) return std::nullopt;
    return std::string(value);
  }

  std::optional<int> number(char const* name, int least, int most) const {
    auto const value = text(name);
    if (!value) return std::nullopt;
    int result = 0;
    auto const [end, wrong] = std::from_chars(value->data(), value->data() + value->size(), result);
    if (wrong != std::errc{} || end != value->data() + value->size() || result < least || result > most)
      throw invalid_argument(text_of({name, "=", *value, " is not a number from ", least,
                                      most < std::numeric_limits<int>::max() ? text_of({" to ", most}) : " on",
                                      ": correct it, or unset it if this process is not part of a job"}));
    return result;
  }

 private:
  environment::lookup const& get_;
};

/// How one kind of launcher names things; nullptr: it does not say.
struct dialect {
  char const* launcher;
  char const* rank;
  char const* size;
  char const* local_rank;
  char const* local_size;
  char const* job;
  char const* proof;  ///< must be set as well
  char const* token;
};

/// Slurm sets SLURM_PROCID in batch scripts too, where nobody has started the other ranks: only a step has them all.
inline constexpr dialect dialects[]{
    {"RONDO_RANK", "RONDO_RANK", "RONDO_WORLD_SIZE", "RONDO_LOCAL_RANK", "RONDO_LOCAL_WORLD_SIZE", nullptr, nullptr,
     nullptr},
    {"torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "TORCHELASTIC_RUN_ID", "TORCHELASTIC_RUN_ID",
     nullptr},
    {"RANK", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", nullptr, nullptr, nullptr},
    {"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
     "OMPI_COMM_WORLD_LOCAL_SIZE", "OMPI_MCA_ess_base_jobid", nullptr, "OMPI_MCA_orte_precondition_transports"},
    {"PMI", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS", nullptr, nullptr, nullptr},
    {"Slurm", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", nullptr, "SLURM_JOB_ID", "SLURM_STEP_ID",
     nullptr},
};

/// The nearest ancestor process that does not have the variable itself: the launcher, whatever shells and wrappers
/// stand between it and this process.
inline pid_t launcher_pid(std::string_view variable) {
  auto const read = [](pid_t pid, char const* file) {
    return file_text(text_of({"/proc/", pid, "/", file}).c_str()).value_or("");
  };
  constexpr std::string_view end("", 1);  // of a variable
  auto const found = text_of({end, variable, "="});
  pid_t pid = ::getppid();
  while (pid > 1 && text_of({end, read(pid, "environ")}).find(found) != std::string::npos) {
    auto const stat = read(pid, "stat");  // pid (name) state parent …; the name may hold anything
    auto const name_end = stat.rfind(')');
    if (name_end == std::string::npos) break;
    pid = static_cast<pid_t>(std::strtol(stat.c_str() + name_end + 3, nullptr, 10));
  }
  return pid;
}

/// The first host of a Slurm node list such as "node[07-12,20],login" or "a,b".
inline std::string first_host(std::string_view list) {
  auto const open = list.find_first_of("[,");
  std::string host(list.substr(0, open));
  if (open == list.npos || list[open] == ',') return host;
  list.remove_prefix(open + 1);
  host += list.substr(0, list.find_first_of("-,]"));
  if (auto const close = list.find(']'); close != list.npos) {
    list.remove_prefix(close + 1);
    host += list.substr(0, list.find(','));
  }
  return host;
}

}  // namespace detail

inline environment environment::detect(lookup const& get) {
  using detail::text_of;
  constexpr int many = std::numeric_limits<int>::max();
  detail::variables const set(get);
  environment found;

  detail::dialect const* spoken = nullptr;
  for (auto const& dialect : detail::dialects)
    if (set.text(dialect.rank) && (!dialect.proof || set.text(dialect.proof))) {
      spoken = &dialect;
      break;
    }
  if (!spoken) {
    for (auto const size : {"RONDO_WORLD_SIZE", "WORLD_SIZE"})
      if (set.number(size, 1, many).value_or(1) > 1)
        throw invalid_argument(text_of({size, " is set but the rank is not: set RANK as well, or neither"}));
    found.local_size = 1;
    return found;
  }

  bool const slurm = std::string_view(spoken->launcher) == "Slurm";
  found.launcher = spoken->launcher;
  auto const size_name = slurm && !set.text(spoken->size) ? "SLURM_NTASKS" : spoken->size;
  auto const size = set.number(size_name, 1, many);
  if (!size) throw invalid_argument(text_of({spoken->rank, " is set but ", size_name, " is not: set both"}));
  found.size = *size;
  found.rank = set.number(spoken->rank, 0, many).value_or(0);
  if (found.rank >= found.size)
    throw invalid_argument(text_of(
        {spoken->rank, "=", found.rank, " but ", size_name, "=", found.size, ": ranks go from 0 to ", found.size - 1}));
  found.local_rank = set.number(spoken->local_rank, 0, many).value_or(0);
  found.local_size = set.number(spoken->local_size, 1, found.size).value_or(found.size == 1 ? 1 : 0);
  if (found.local_size && found.local_rank >= found.local_size)
    throw invalid_argument(text_of({spoken->local_rank, "=", found.local_rank, " but ", spoken->local_size, "=",
                                    found.local_size, ": local ranks count the processes of one host from 0"}));

  auto const override_address = set.text("RONDO_ADDR"), override_job = set.text("RONDO_JOB");
  auto const override_port = set.number("RONDO_PORT", 0, 65535);
  found.listen_fd = set.number("RONDO_LISTEN_FD", 0, many).value_or(-1);

  if (override_job)
    found.job = *override_job;
  else if (auto const job = set.text(spoken->job))
    found.job = text_of({*job, ".", set.text("TORCHELASTIC_RESTART_COUNT").value_or("0"), ".",
                         set.text(slurm ? "SLURM_STEP_ID" : nullptr).value_or("0")});
  found.token = set.text("RONDO_TOKEN").value_or(set.text(spoken->token).value_or(""));

  found.address = override_address ? *override_address : set.text("MASTER_ADDR").value_or("");
  auto const port = set.number("MASTER_PORT", 0, 65535);
  if (override_port)
    found.port = static_cast<std::uint16_t>(*override_port);
  else if (port && *port)  // the agent of torchrun keeps its own store at MASTER_PORT
    found.port =
        static_cast<std::uint16_t>(std::string_view(spoken->launcher) == "torchrun" ? *port % 65535 + 1 : *port);
  else if (!port && !found.address.empty())
    found.port = 29500;

  if (found.address.empty() && slurm) {
    auto const nodes = set.text("SLURM_STEP_NODELIST"), all = set.text("SLURM_JOB_NODELIST");
    found.address = detail::first_host(nodes ? *nodes : all.value_or(""));
    if (!override_port && !found.port && !found.address.empty()) {
      unsigned hash = 2166136261U;  // FNV-1a: neighbouring jobs of one node get ports far apart
      for (char const c : found.job) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619U;
      found.port = static_cast<std::uint16_t>(20000 + hash % 10000);
      found.ports = 8;
    }
  }
  bool const by_name = found.address.empty() || !found.port;
  if (by_name && found.job.empty()) found.job = text_of({"launcher ", detail::launcher_pid(spoken->rank)});
  if (by_name && found.local_size && found.local_size < found.size)
    throw invalid_argument(
        text_of({"MASTER_ADDR and MASTER_PORT are not both set, but only ", found.local_size, " of ", found.size,
                 " ranks are on this host: set them to the host of rank 0 and a port that is free there"}));
  return found;
}

}  // namespace rondo::inline v0
