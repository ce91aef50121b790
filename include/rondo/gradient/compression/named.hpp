#pragma once

#include <rondo/bfloat16.hpp>
#include <rondo/communicator.hpp>
#include <rondo/error.hpp>
#include <rondo/float16.hpp>
#include <rondo/float8.hpp>
#include <rondo/gradient/compression/compressor.hpp>
#include <rondo/gradient/compression/gradient_compression.hpp>
#include <rondo/gradient/compression/low_rank.hpp>
#include <rondo/gradient/compression/narrowed.hpp>
#include <rondo/gradient/compression/one_bit.hpp>
#include <rondo/gradient/compression/powersgd.hpp>
#include <rondo/gradient/compression/quantized.hpp>
#include <rondo/gradient/compression/top_k.hpp>

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <variant>
#include <vector>

namespace rondo::inline v0 {

/// A gradient_compression whose compressor is named at run time, as on a command line.
class named_compression {
 public:
  /// float16, bfloat16, int8, float8, one_bit, top_k:RATIO or powersgd:RANK, with error feedback. Throws
  /// invalid_argument for anything else. `matrices`: as powersgd_options has them; no matter for the others.
  explicit named_compression(std::string_view text, std::map<std::size_t, std::vector<matrix_place>> matrices = {})
      : chosen_(of_name(text, std::move(matrices))) {}

  /// As gradient_compression's.
  template <transport X>
  void all_reduce(communicator<X>& ranks, std::size_t bucket, std::span<float> values) {
    std::visit([&](auto& chosen) { chosen.all_reduce(ranks, bucket, values); }, chosen_);
  }
  template <transport X, class Bucket>
  void operator()(communicator<X>& ranks, Bucket const& bucket) {
    all_reduce(ranks, bucket.number, bucket.values);
  }
  compression_statistics const& statistics() const noexcept {
    return std::visit(
        [](auto const& chosen) -> auto const& { return chosen.statistics(); }, chosen_);
  }
  std::span<float> error(std::size_t bucket) {
    return std::visit([&](auto& chosen) { return chosen.error(bucket); }, chosen_);
  }

 private:
  template <class Compressor>
  using with = gradient_compression<Compressor>;
  using any = std::variant<with<narrowed<float16>>, with<narrowed<bfloat16>>, with<quantized<std::int8_t>>,
                           with<quantized<float8_e4m3>>, with<one_bit>, with<top_k>, with<powersgd>>;

  static any of_name(std::string_view text, std::map<std::size_t, std::vector<matrix_place>> matrices) {
    if (text == "float16") return with<narrowed<float16>>(narrowed<float16>());
    if (text == "bfloat16") return with<narrowed<bfloat16>>(narrowed<bfloat16>());
    if (text == "int8") return with<quantized<std::int8_t>>(quantized<std::int8_t>());
    if (text == "float8") return with<quantized<float8_e4m3>>(quantized<float8_e4m3>());
    if (text == "one_bit") return with<one_bit>(one_bit());
    std::size_t const colon = text.find(':');
    std::string_view const name = text.substr(0, colon),
                           value = colon == text.npos ? std::string_view() : text.substr(colon + 1);
    if (name == "top_k")
      if (double ratio = 0; read(value, ratio)) return with<top_k>(top_k(ratio));
    if (name == "powersgd")
      if (std::size_t rank = 0; read(value, rank))
        return with<powersgd>(powersgd({.rank = rank, .matrices = std::move(matrices)}));
    throw invalid_argument("there is no compression " + std::string(text) +
                           ": give float16, bfloat16, int8, float8, one_bit, top_k:RATIO or powersgd:RANK");
  }

  template <class N>
  static bool read(std::string_view text, N& number) {
    auto const [end, wrong] = std::from_chars(text.data(), text.data() + text.size(), number);
    return wrong == std::errc() && end == text.data() + text.size() && !text.empty();
  }

  any chosen_;
};

}  // namespace rondo::inline v0
