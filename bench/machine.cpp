#include "machine.hpp"

#include "cores.hpp"
#include "text.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <unistd.h>

namespace rondo::bench {
namespace {

/// What follows "key :" in a file of such lines.
std::string value_in(std::string const& path, std::string_view key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(key)) continue;
    auto const colon = line.find(':');
    if (colon == std::string::npos) continue;
    auto const start = line.find_first_not_of(" \t", colon + 1);
    return start == std::string::npos ? std::string() : line.substr(start);
  }
  return {};
}

std::size_t kilobytes(std::string const& text) { return std::strtoull(text.c_str(), nullptr, 10) * 1024; }

std::size_t cache_bytes(int level) {
  for (int index = 0; index < 8; ++index) {
    auto const folder = fmt::format("/sys/devices/system/cpu/cpu0/cache/index{}/", index);
    if (first_line(folder + "level") != std::to_string(level) || first_line(folder + "type") == "Instruction") continue;
    return kilobytes(first_line(folder + "size"));
  }
  long const said = ::sysconf(level == 2 ? _SC_LEVEL2_CACHE_SIZE : _SC_LEVEL3_CACHE_SIZE);
  return said > 0 ? static_cast<std::size_t>(said) : 0;
}

}  // namespace

std::string first_line(std::string const& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

std::vector<std::string> names_in(std::string const& folder) {
  std::vector<std::string> names;
  std::error_code missing;
  for (auto const& entry : std::filesystem::directory_iterator(folder, missing))
    names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

machine this_machine() {
  machine m;
  utsname names{};
  if (::uname(&names) == 0) {
    m.host = names.nodename;
    m.kernel = fmt::format("{} {}", names.sysname, names.release);
  }
  m.cpu = value_in("/proc/cpuinfo", "model name");
  if (m.cpu.empty()) m.cpu = value_in("/proc/cpuinfo", "CPU part");
  if (fmt::format(" {} ", value_in("/proc/cpuinfo", "flags")).find(" hypervisor ") != std::string::npos) {
    m.hypervisor = first_line("/sys/class/dmi/id/sys_vendor");
    if (m.hypervisor.empty()) m.hypervisor = "virtual machine";
  }
  m.online_cores = static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN));
  m.allowed_cores = bench::allowed_cores();
  auto const quota = first_line("/sys/fs/cgroup/cpu.max");
  if (!quota.empty() && quota.front() != 'm') {
    char* end = nullptr;
    double const share = std::strtod(quota.c_str(), &end), period = std::strtod(end, nullptr);
    if (period > 0) m.cpu_quota = share / period;
  }
  m.l2 = cache_bytes(2);
  m.l3 = cache_bytes(3);
  m.memory = kilobytes(value_in("/proc/meminfo", "MemTotal"));
  m.available_memory = kilobytes(value_in("/proc/meminfo", "MemAvailable"));
  auto const limit = first_line("/sys/fs/cgroup/memory.max");
  if (!limit.empty() && limit != "max") m.memory_limit = std::strtoull(limit.c_str(), nullptr, 10);
  if (::getloadavg(&m.load, 1) != 1) m.load = 0;
  return m;
}

std::string describe(machine const& m) {
  auto text = fmt::format("{}, {} of {} cores", m.cpu.empty() ? "unknown processor" : m.cpu, m.allowed_cores.size(),
                          m.online_cores);
  if (m.l3 > 0) text += fmt::format(", {} of L3 cache", format_bytes(m.l3));
  text += fmt::format(", {} of memory, {}", format_bytes(m.memory), m.kernel);
  if (!m.hypervisor.empty()) text += fmt::format(" ({})", m.hypervisor);
  return text;
}

}  // namespace rondo::bench
