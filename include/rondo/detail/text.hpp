#pragma once

#include <concepts>
#include <cstddef>
#include <initializer_list>
#include <string>
#include <string_view>

namespace rondo::inline v0::detail {

/// A part of a text: characters, or a whole number.
class text_piece {
 public:
  text_piece(char const* text) noexcept : text_(text) {}
  text_piece(std::string_view text) noexcept : text_(text) {}
  text_piece(std::string const& text) noexcept : text_(text) {}
  text_piece(std::unsigned_integral auto number) noexcept : number_(number), kind_(natural) {}
  text_piece(std::signed_integral auto number) noexcept
      : number_(number < 0 ? 0ULL - static_cast<unsigned long long>(number) : static_cast<unsigned long long>(number)),
        kind_(number < 0 ? negative : natural) {}
  text_piece(char) = delete;  // is it a character or a number?

  void append_to(std::string& all) const {
    if (kind_ == characters) {
      all.append(text_);
      return;
    }
    char digits[20];
    char* const end = digits + sizeof digits;
    char* first = end;
    unsigned long long rest = number_;
    do *--first = static_cast<char>('0' + rest % 10);
    while ((rest /= 10) != 0);
    if (kind_ == negative) all.push_back('-');
    all.append(first, static_cast<std::size_t>(end - first));
  }

 private:
  enum kind : unsigned char { characters, natural, negative };

  std::string_view text_;
  unsigned long long number_ = 0;
  kind kind_ = characters;
};

/// The pieces in a row: {"rank ", 3, " has left"}. Most of the library's text is that of errors; built like this, a
/// sentence costs its caller a list, and one function serves all, where each `+` between strings would be inlined.
[[gnu::noinline]] inline std::string text_of(std::initializer_list<text_piece> pieces) {
  std::string all;
  for (text_piece const& p : pieces) p.append_to(all);
  return all;
}

}  // namespace rondo::inline v0::detail
