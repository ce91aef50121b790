#pragma once

#include <rondo/types.hpp>

#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace rondo::inline v0 {

/// Base of everything that rondo throws. what() is one sentence that names the call, the rank and what to do.
class error : public std::runtime_error {
 public:
  [[gnu::cold]] explicit error(std::string const& what, rank_t rank = nobody)
      : std::runtime_error(std::string(prefix) + what), rank_(rank) {}

  /// The rank at fault, or nobody.
  rank_t rank() const noexcept { return rank_; }

  /// what() without the name of the library, to go on with another sentence.
  std::string_view sentence() const noexcept { return std::string_view(what()).substr(prefix.size()); }

 private:
  static constexpr std::string_view prefix = "rondo: ";

  rank_t rank_;
};

/// An argument that no call could accept. Nothing was sent; the communicator stays usable.
class invalid_argument : public error {
 public:
  using error::error;
};

/// The ranks could not be joined: wrong world size, wrong token, a duplicate rank, nobody listening, …
class connect_error : public error {
 public:
  using error::error;
};

/// A rank died, was cut off, or has left while others still waited for it. The communicator is unusable.
class peer_lost : public error {
 public:
  using error::error;
};

/// A call was not finished within its deadline; rank() is the one that it waited for. The communicator is unusable.
class deadline_exceeded : public error {
 public:
  using error::error;
};

/// Ranks called different collectives, or the same one with different arguments. The communicator is unusable.
class collective_mismatch : public error {
 public:
  using error::error;
};

/// Why a communicator became unusable: the same value on every rank.
struct failure {
  enum class kind : unsigned char { none, peer_lost, deadline, mismatch, other };

  kind why = kind::none;
  rank_t rank = nobody;  ///< the rank at fault
  std::string what;      ///< one sentence

  /// Throws the exception that belongs to `why`.
  [[noreturn]] void raise() const {
    switch (why) {
      case kind::peer_lost: throw rondo::peer_lost(what, rank);
      case kind::deadline: throw deadline_exceeded(what, rank);
      case kind::mismatch: throw collective_mismatch(what, rank);
      default: throw error(what, rank);
    }
  }
};

}  // namespace rondo::inline v0
