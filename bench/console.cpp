#include "console.hpp"

#include <cstdio>
#include <fmt/format.h>
#include <unistd.h>

namespace rondo::bench {

progress_line::progress_line() : terminal_(::isatty(STDERR_FILENO) == 1) {}

void progress_line::show(std::string_view text) {
  if (!terminal_) return;
  fmt::print(stderr, "\r\x1b[2K{}", text);
  shown_ = true;
}

void progress_line::clear() {
  if (!shown_) return;
  fmt::print(stderr, "\r\x1b[2K");
  shown_ = false;
}

}  // namespace rondo::bench
