#pragma once

#include <rondo/adapters/nccl/status.hpp>
#include <rondo/adapters/nccl/types.h>
#include <rondo/detail/sha256.hpp>
#include <rondo/transports/bootstrap/handshake.hpp>
#include <rondo/transports/bootstrap/wire.hpp>
#include <rondo/transports/tcp/wiring.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace rondo::inline v0::nccl {

/// What the 128 bytes of an ncclUniqueId say: where the ranks of a communicator meet, and the secret by which they know
/// each other. Whoever has the bytes can join.
///
///     magic (8)  secret (32)  machine (8)  port (2)  number of addresses (1)  for each: prefix (1) length (1) text
struct unique_id {
  std::string secret;
  detail::tcp_wiring place{.streams = 1, .stripe = 1, .machine = {}, .secret = {}, .endpoints = {}};

  /// Addresses that find no room are left out: the best come first.
  ncclUniqueId pack() const {
    detail::packer addresses;
    std::uint8_t count = 0;
    for (auto const& e : place.endpoints) {
      auto const text = e.address.to_string();
      if (fixed_bytes + std::string_view(addresses).size() + 3 + text.size() > NCCL_UNIQUE_ID_BYTES) break;
      addresses.number(static_cast<std::uint8_t>(e.prefix)).number(static_cast<std::uint8_t>(text.size())).raw(text);
      ++count;
    }
    detail::packer all;
    all.number(magic).raw(secret).raw(digest_of(place.machine)).number(place.endpoints.front().port).number(count);
    std::string const bytes(std::string_view(all.raw(addresses)));
    ncclUniqueId id{};
    std::copy(bytes.begin(), bytes.end(), id.internal);
    return id;
  }

  /// Throws refusal for bytes that pack() did not make.
  static unique_id unpack(ncclUniqueId const& bytes) {
    try {
      detail::unpacker in({bytes.internal, sizeof bytes.internal});
      if (in.number<std::uint64_t>() != magic) throw detail::malformed{};
      unique_id id;
      id.secret = in.raw(detail::nonce_size);
      auto const own = detail::tcp_wiring::this_machine();
      id.place.machine = in.raw(machine_bytes) == digest_of(own) ? own : "";
      auto const port = in.number<std::uint16_t>();
      for (auto count = in.number<std::uint8_t>(); count > 0; --count) {
        auto const prefix = in.number<std::uint8_t>();
        auto const address = ip_address::parse(std::string(in.raw(in.number<std::uint8_t>())));
        if (!address) throw detail::malformed{};
        id.place.endpoints.push_back({*address, prefix, port});
      }
      if (id.place.endpoints.empty()) throw detail::malformed{};
      return id;
    } catch (detail::malformed const&) {
      throw refusal(ncclInvalidArgument, "these bytes are no id of ncclGetUniqueId: hand all 128 bytes of it to every "
                                         "rank, and build all ranks with the same rondo");
    }
  }

 private:
  static constexpr std::uint64_t magic = 0x3144496f646e6f72;  // "rondoID1"
  static constexpr std::size_t machine_bytes = 8;
  static constexpr std::size_t fixed_bytes = 8 + detail::nonce_size + machine_bytes + 2 + 1;

  static std::string digest_of(std::string_view machine) {
    return std::string(detail::view(detail::sha256{}.update(machine).finish()).substr(0, machine_bytes));
  }
};

}  // namespace rondo::inline v0::nccl
