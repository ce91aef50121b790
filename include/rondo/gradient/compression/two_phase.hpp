#pragma once

#include <rondo/communicator.hpp>
#include <rondo/gradient/compression/compressor.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <map>
#include <span>
#include <vector>

namespace rondo::inline v0 {

/// Numbers in fewer bits: bytes(n) for n floats, the same for every value, so that both ends know what comes. encode()
/// and decode() are functions of their arguments alone.
template <class C>
concept codec = requires(C const c, std::size_t n, std::span<float const> in, std::span<float> out, std::byte* to,
                         std::byte const* from) {
  { c.bytes(n) } -> std::same_as<std::size_t>;
  {c.encode(in, to)};
  {c.decode(from, out)};
};

/// A compressor that sends encoded numbers and adds up decoded ones, as floats: each rank encodes a part for each owner
/// (all_to_all); the owner adds them up in the order of ranks, encodes the sum once (all_gather), and takes the decoded
/// sum itself, so that all ranks have the same bits. Two roundings in all, whatever the number of ranks, where a ring
/// has one a hop (the scheme of 1-bit Adam, Tang et al. 2021, arXiv 2102.02888, section 4, and of ZeRO++, Wang et al.
/// 2023, arXiv 2306.10209).
///
/// With feedback the owner keeps the error of its rounding, too.
template <codec Codec>
class two_phase {
 public:
  explicit two_phase(Codec codec = {}) : codec_(codec) {}

  template <transport X>
  compression_cost reduce(communicator<X>& ranks, compression_job const& job) {
    auto const n = static_cast<std::size_t>(ranks.size()), me = static_cast<std::size_t>(ranks.rank());
    std::size_t const each = (job.mine.size() + n - 1) / n, bytes = codec_.bytes(each);
    auto const part = [&](auto all, std::size_t r) {
      std::size_t const first = std::min(all.size(), r * each);
      return all.subspan(first, std::min(all.size() - first, each));
    };
    out_.resize(n * bytes);
    in_.resize(n * bytes);
    for (std::size_t r = 0; r < n; ++r) {
      codec_.encode(part(job.mine, r), out_.data() + r * bytes);
      codec_.decode(out_.data() + r * bytes, part(job.sent, r));
    }
    ranks.all_to_all(out_, in_);

    auto const own = part(job.total, me);
    sum_.assign(own.size(), 0.0F);
    for (std::size_t r = 0; r < n; ++r) {
      codec_.decode(in_.data() + r * bytes, own);
      for (std::size_t i = 0; i < own.size(); ++i) sum_[i] += own[i];
    }
    auto& error = errors_[job.bucket];
    if (job.feeds_back) {
      error.resize(own.size(), 0.0F);
      for (std::size_t i = 0; i < own.size(); ++i) sum_[i] += error[i];
    }
    std::byte* const mine = out_.data() + me * bytes;
    codec_.encode(sum_, mine);
    if (job.feeds_back) {
      codec_.decode(mine, own);
      for (std::size_t i = 0; i < own.size(); ++i) {
        float const left = sum_[i] - own[i];
        error[i] = left - left == 0 ? left : 0;
      }
    }
    ranks.all_gather(std::span(out_).subspan(me * bytes, bytes), in_);
    for (std::size_t r = 0; r < n; ++r) codec_.decode(in_.data() + r * bytes, part(job.total, r));
    return {2 * (n - 1) * bytes};
  }

 private:
  Codec codec_;
  std::vector<std::byte> out_, in_;
  std::vector<float> sum_;
  std::map<std::size_t, std::vector<float>> errors_;  // of the own part, by bucket
};

}  // namespace rondo::inline v0
