#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace rondo::inline v0::detail {

/// A name of at most 15 characters, padded with zeros: what fits into the fingerprint of a call.
class short_name {
 public:
  constexpr explicit short_name(std::string_view whole) {
    std::copy_n(whole.begin(), std::min(whole.size(), text_.size() - 1), text_.begin());
  }

  /// `whole` where it fits, else its last component and six digits that tell it from others like it.
  static constexpr short_name of(std::string_view whole) {
    if (whole.size() < sizeof text_) return short_name(whole);
    std::string_view plain = whole.substr(0, whole.find('<'));
    plain = plain.substr(plain.rfind(':') + 1);
    return short_name(plain.substr(0, 8), whole);
  }

  /// `front`, cut to 8 characters, an underscore, and six hexadecimal digits of the hash of `whole`.
  constexpr short_name(std::string_view front, std::string_view whole) : short_name(front.substr(0, 8)) {
    std::uint32_t hash = 2166136261U;  // FNV-1a
    for (char const c : whole) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619U;
    std::size_t at = view().size();
    text_[at++] = '_';
    for (int digit = 0; digit < 6; ++digit, hash >>= 4) text_[at++] = "0123456789abcdef"[hash & 15];
  }

  constexpr std::string_view view() const noexcept { return text_.data(); }

 private:
  std::array<char, 16> text_{};
};

template <class T>
constexpr std::string_view pretty_function() {
  return __PRETTY_FUNCTION__;
}

/// How the compiler spells T.
template <class T>
constexpr std::string_view spelled() {
  constexpr std::size_t before = pretty_function<double>().find("double");
  constexpr std::size_t around = pretty_function<double>().size() - std::string_view("double").size();
  std::string_view const all = pretty_function<T>();
  return all.substr(before, all.size() - around);
}

}  // namespace rondo::inline v0::detail
