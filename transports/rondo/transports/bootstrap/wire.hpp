#pragma once

#include <rondo/error.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <limits>
#include <string>
#include <string_view>

namespace rondo::inline v0::detail {

/// What a frame of the control plane says. The numbers are the protocol: append, never renumber.
enum class message : std::uint32_t {
  hello,       ///< -> nonce of the joining rank
  challenge,   ///< <- nonce of the coordinator
  proof,       ///< -> settings, and the proof that the sender knows the token
  welcome,     ///< <- who the coordinator is, and its proof
  refusal,     ///< <- code and sentence
  open,        ///< -> members of a new group
  contribute,  ///< -> round, blob: this rank's part of an exchange
  gathered,    ///< <- round, last?, piece of all blobs
  overdue,     ///< -> round: the deadline of an exchange has passed
  report,      ///< -> failure, entered
  verdict,     ///< <- failure
  probe,       ///< <- number
  progress,    ///< -> number, entered, finished
  leave,       ///< -> finished: this rank needs the group no more
  departed,    ///< <- rank, finished
  goodbye,     ///< -> the connection will close and nobody died
  farewell     ///< <- the same from the coordinator
};

/// A peer sent what no rank would send.
struct malformed : std::exception {
  char const* what() const noexcept override { return "malformed frame"; }
};

/// Writes numbers (little endian) and texts (length first).
class packer {
 public:
  template <std::integral T>
  packer& number(T value) {
    auto rest = static_cast<std::uint64_t>(value);
    for (std::size_t i = 0; i < sizeof(T); ++i, rest >>= 8) bytes_ += static_cast<char>(rest & 0xff);
    return *this;
  }
  packer& raw(std::string_view bytes) { return bytes_ += bytes, *this; }
  packer& text(std::string_view bytes) { return number(static_cast<std::uint32_t>(bytes.size())).raw(bytes); }

  operator std::string_view() const noexcept { return bytes_; }

 private:
  std::string bytes_;
};

/// Reads what packer wrote. Throws malformed rather than reading past the end.
class unpacker {
 public:
  explicit unpacker(std::string_view bytes) noexcept : bytes_(bytes) {}

  template <std::integral T>
  T number() {
    auto const bytes = raw(sizeof(T));
    std::uint64_t value = 0;
    for (std::size_t i = sizeof(T); i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[i]);
    return static_cast<T>(value);
  }
  std::string_view raw(std::size_t n) {
    if (n > bytes_.size()) throw malformed{};
    auto const result = bytes_.substr(0, n);
    bytes_.remove_prefix(n);
    return result;
  }
  std::string_view text() { return raw(number<std::uint32_t>()); }
  std::string_view rest() noexcept { return bytes_; }

 private:
  std::string_view bytes_;
};

inline void pack(packer& out, failure const& f) {
  out.number(static_cast<std::uint8_t>(f.why)).number(f.rank).text(std::string_view(f.what).substr(0, 4096));
}

/// `size`: of the group; a rank outside of it becomes nobody.
inline failure unpack_failure(unpacker& in, int size) {
  auto const why = in.number<std::uint8_t>();
  auto const rank = in.number<rank_t>();
  std::string what(in.text());
  if (why == 0 || why > static_cast<std::uint8_t>(failure::kind::other)) throw malformed{};
  return {static_cast<failure::kind>(why), rank >= 0 && rank < size ? rank : nobody, std::move(what)};
}

}  // namespace rondo::inline v0::detail
