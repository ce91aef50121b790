#pragma once

#include <cstdlib>
#include <initializer_list>
#include <string_view>

namespace rondo::inline v0::detail {

/// What an environment variable says.
struct environment_text {
  std::string_view variable;
  std::string_view text;

  /// The first of these variables that is set and not empty; else without text.
  static environment_text first_of(std::initializer_list<char const*> variables) noexcept {
    for (char const* variable : variables)
      if (char const* text = std::getenv(variable); text != nullptr && *text != '\0') return {variable, text};
    return {};
  }
};

}  // namespace rondo::inline v0::detail
