#include "findings.hpp"

#include "text.hpp"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

namespace rondo::bench {
namespace {

/// Reserves pages of anonymous shared memory as the transport does; the error number, or 0.
int try_shared_memory(std::size_t bytes) {
  int const fd = ::memfd_create("rondo doctor", MFD_CLOEXEC);
  if (fd < 0) return errno;
  int const status =
      ::ftruncate(fd, static_cast<off_t>(bytes)) != 0 ? errno : ::posix_fallocate(fd, 0, static_cast<off_t>(bytes));
  ::close(fd);
  return status;
}

void look_at_files(findings& found) {
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  auto const text = fmt::format("{} open files", files.rlim_cur);
  if (files.rlim_cur < 1024)
    found.problem("open files", text + ": too few for many ranks, each of which needs some sockets to every other",
                  "ulimit -n 65536");
  else
    found.ok("open files", text);
}

}  // namespace

void findings::section(std::string_view name) { fmt::print("\n{}\n", name); }

void findings::ok(std::string_view topic, std::string_view text) { line("ok", "32", topic, text, {}); }

void findings::note(std::string_view topic, std::string_view text, std::string_view fix) {
  ++notes_;
  line("note", "33", topic, text, fix);
}

void findings::problem(std::string_view topic, std::string_view text, std::string_view fix) {
  ++problems_;
  line("problem", "31", topic, text, fix);
}

void findings::line(std::string_view mark, std::string_view color, std::string_view topic, std::string_view text,
                    std::string_view fix) {
  auto const padded = fmt::format("{:<7}", mark);
  fmt::print("  {} {:<16} {}\n", in_color_ ? fmt::format("\x1b[{}m{}\x1b[0m", color, padded) : padded, topic, text);
  if (!fix.empty()) fmt::print("  {:<7} {:<16} fix: {}\n", "", "", fix);
}

bool look_at_memory(findings& found, machine const& m) {
  found.section("Memory");
  auto const text = fmt::format("{} of {} available", format_bytes(m.available_memory), format_bytes(m.memory));
  if (m.available_memory < std::size_t{512} << 20)
    found.problem("memory", text, "end other programs, or run fewer ranks and smaller sizes");
  else
    found.ok("memory", text);
  if (m.memory_limit > 0)
    found.note("container",
               fmt::format("the container may use {}, shared memory included", format_bytes(m.memory_limit)),
               "raise --memory for large buffers or many ranks");
  constexpr std::size_t probe = std::size_t{4} << 20;
  int const status = try_shared_memory(probe);
  if (status == 0)
    found.ok("shared memory", "memfd works: nothing to configure, nothing is left behind");
  else
    found.problem("shared memory",
                  fmt::format("{} of memfd could not be reserved: {}", format_bytes(probe), std::strerror(status)),
                  "allow memfd_create in the sandbox, or raise its memory limit; until then use tcp");
  struct statvfs shm {};
  if (::statvfs("/dev/shm", &shm) == 0)
    found.ok("/dev/shm", fmt::format("{} free; rondo does not use it, other libraries do",
                                     format_bytes(static_cast<std::size_t>(shm.f_bavail) * shm.f_frsize)));
  look_at_files(found);
  return status == 0;
}

}  // namespace rondo::bench
