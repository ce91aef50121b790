#include "text.hpp"

#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <ctime>
#include <fmt/format.h>

namespace rondo::bench {

std::string local_time(char const* format) {
  auto const time = std::time(nullptr);
  std::array<char, 64> text{};
  std::tm broken{};
  std::strftime(text.data(), text.size(), format, ::localtime_r(&time, &broken));
  return text.data();
}

std::size_t parse_bytes(std::string_view text) {
  double value = 0;
  auto const [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  auto suffix = std::string_view(end, static_cast<std::size_t>(text.data() + text.size() - end));
  double unit = 1;
  if (!suffix.empty()) {
    switch (std::tolower(static_cast<unsigned char>(suffix.front()))) {
      case 'k': unit = 1024.0; break;
      case 'm': unit = 1024.0 * 1024; break;
      case 'g': unit = 1024.0 * 1024 * 1024; break;
      case 'b': break;
      default: unit = 0;
    }
    auto const rest = suffix.substr(1);
    if (!(rest.empty() || rest == "iB" || rest == "ib" || rest == "B" || rest == "b")) unit = 0;
  }
  if (status != std::errc{} || unit == 0 || value < 0 || value * unit > 1e15)
    throw usage_error(fmt::format("'{}' is not a number of bytes: write it as 8, 64K, 25MiB or 1G.", text));
  return static_cast<std::size_t>(std::llround(value * unit));
}

std::string format_bytes(std::size_t bytes) {
  static constexpr std::array units{"B", "KiB", "MiB", "GiB", "TiB"};
  std::size_t unit = 0;
  auto scaled = static_cast<double>(bytes);
  while (scaled >= 1024 && unit + 1 < units.size()) {
    scaled /= 1024;
    ++unit;
  }
  if (scaled == std::floor(scaled)) return fmt::format("{:.0f} {}", scaled, units[unit]);
  return fmt::format("{:.{}f} {}", scaled, scaled < 10 ? 2 : 1, units[unit]);
}

std::string format_us(double us) {
  if (!std::isfinite(us)) return "-";
  auto const digits = [](double v) { return v < 10 ? 2 : v < 100 ? 1 : 0; };
  if (us < 1e3) return fmt::format("{:.{}f} us", us, digits(us));
  if (us < 1e6) return fmt::format("{:.{}f} ms", us / 1e3, digits(us / 1e3));
  return fmt::format("{:.{}f} s", us / 1e6, digits(us / 1e6));
}

std::vector<std::string> split_list(std::string_view text) {
  std::vector<std::string> pieces;
  while (!text.empty()) {
    auto const comma = text.find(',');
    if (comma != 0) pieces.emplace_back(text.substr(0, comma));
    if (comma == std::string_view::npos) break;
    text.remove_prefix(comma + 1);
  }
  return pieces;
}

std::string join_words(std::vector<std::string> const& words, std::string_view last) {
  std::string joined;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (i > 0) joined += i + 1 == words.size() ? fmt::format(" {} ", last) : ", ";
    joined += words[i];
  }
  return joined;
}

std::string one_of(std::vector<std::string> words, std::vector<std::string> const& always) {
  words.insert(words.end(), always.begin(), always.end());
  return join_words(words, "or");
}

}  // namespace rondo::bench
