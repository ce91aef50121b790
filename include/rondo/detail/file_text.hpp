#pragma once

#include <rondo/detail/file_descriptor.hpp>

#include <array>
#include <cerrno>
#include <cstddef>
#include <fcntl.h>
#include <optional>
#include <string>
#include <unistd.h>

namespace rondo::inline v0::detail {

/// All that is in a file; nothing if it cannot be read. Streams would cost everyone who includes this a quarter of a
/// second.
inline std::optional<std::string> file_text(char const* path) {
  file_descriptor const file(::open(path, O_RDONLY | O_CLOEXEC));
  std::string text;
  for (std::array<char, 4096> piece; file;) {
    auto const n = ::read(file.get(), piece.data(), piece.size());
    if (n == 0) return text;
    if (n > 0)
      text.append(piece.data(), static_cast<std::size_t>(n));
    else if (errno != EINTR)
      break;
  }
  return std::nullopt;
}

}  // namespace rondo::inline v0::detail
