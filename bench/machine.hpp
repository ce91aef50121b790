#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace rondo::bench {

/// What the kernel says about this machine; unknown texts are empty, unknown numbers 0.
struct machine {
  std::string host, kernel, cpu;
  std::string hypervisor;  ///< "" on bare metal
  int online_cores = 0;
  std::vector<int> allowed_cores;  ///< of this process
  double cpu_quota = 0;            ///< cores that a container may use; 0: no limit
  std::size_t l2 = 0, l3 = 0;      ///< bytes
  std::size_t memory = 0, available_memory = 0;
  std::size_t memory_limit = 0;  ///< of a container; 0: none
  double load = 0;               ///< runnable processes, averaged over a minute
};

machine this_machine();

/// "AMD EPYC, 2 of 2 cores, 32 MiB L3, 23.4 GiB of memory, Linux 6.1.0 (virtual machine)".
std::string describe(machine const& m);

/// The first line of a file, or nothing.
std::string first_line(std::string const& path);

/// What lies in a folder, in order; nothing if there is none.
std::vector<std::string> names_in(std::string const& folder);

}  // namespace rondo::bench
