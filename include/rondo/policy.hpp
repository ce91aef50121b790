#pragma once

#include <rondo/algorithm.hpp>
#include <rondo/detail/file_text.hpp>
#include <rondo/detail/insertion_sort.hpp>
#include <rondo/detail/text.hpp>
#include <rondo/error.hpp>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rondo::inline v0 {

/// Choices of algorithms that were measured on a machine, as `rondo tune` writes them: communicator_options::policy.
///
/// A text, line by line; what follows a # is a comment. Each line has nine words:
///
///     collective transport ranks bytes up_to algorithm microseconds runner_up microseconds
///     all_reduce tcp       4     65536 185363 ring     412.5        mixed_radix 437.1
///
/// `bytes` were measured; the line holds for all buffers up to `up_to` bytes that the lines before do not cover, *
/// means all that are larger. A runner-up `-` with 0 microseconds: there was no other. Immutable, so that communicators
/// share one.
class policy {
 public:
  struct line {
    rondo::collective collective{};
    std::string transport;
    int ranks = 0;
    std::size_t bytes = 0;  ///< of the buffer of one rank, measured
    std::size_t up_to = 0;  ///< bytes
    rondo::algorithm algorithm{};
    double microseconds = 0;
    rondo::algorithm runner_up{};  ///< automatic: there was none
    double runner_up_microseconds = 0;
  };
  static constexpr std::size_t any_size = std::numeric_limits<std::size_t>::max();

  /// Lines in any order; of two for the same case the first one counts. The name is for messages.
  explicit policy(std::vector<line> lines, std::string name = "a policy without a name")
      : lines_(std::move(lines)), name_(std::move(name)) {
    detail::insertion_sort(lines_, before);  // they have been written in order
  }

  /// Throws invalid_argument that names the line and says what to do.
  static policy parse(std::string_view text, std::string name = "policy");

  /// Reads a file; the policy has its name. Throws invalid_argument if it cannot be read, or as parse().
  static policy load(std::string const& path);

  std::vector<line> const& lines() const noexcept { return lines_; }
  std::string const& name() const noexcept { return name_; }

  /// The lines for a collective over a transport, by size. For a number of ranks that was not measured those of the
  /// nearest one below, but not of half as many or fewer: nothing then, and nothing where none was measured.
  std::span<line const> lines_for(collective what, std::string_view transport, int ranks) const noexcept;

  /// 64 bits that two policies have in common if they choose alike. 0: no lines.
  std::uint64_t digest() const noexcept;

 private:
  static bool before(line const& a, line const& b) noexcept {
    if (a.collective != b.collective) return a.collective < b.collective;
    if (a.transport != b.transport) return a.transport < b.transport;
    return a.ranks != b.ranks ? a.ranks < b.ranks : a.up_to < b.up_to;
  }

  std::vector<line> lines_;
  std::string name_;
};

/// The line of lines_for() that holds for a buffer of that size, or nullptr.
inline policy::line const* line_for(std::span<policy::line const> lines, std::size_t bytes) noexcept {
  for (auto const& l : lines)
    if (bytes <= l.up_to) return &l;
  return nullptr;
}

/// As a line of text, which parse() reads.
std::string to_string(policy::line const& l);

namespace detail {

/// The words of one line of a policy, with sentences for what is wrong with them.
class policy_words {
 public:
  policy_words(std::string_view text, std::string const& name, std::size_t number) : name_(name), number_(number) {
    text = text.substr(0, text.find('#'));
    constexpr std::string_view blank = " \t\r";
    for (auto at = text.find_first_not_of(blank); at < text.size(); at = text.find_first_not_of(blank, at)) {
      auto const end = std::min(text.find_first_of(blank, at), text.size());
      words_.push_back(text.substr(at, end - at));
      at = end;
    }
  }

  bool empty() const noexcept { return words_.empty(); }

  policy::line line() const {
    if (words_.size() != 9)
      complain({"has ", words_.size(),
                " words instead of 9 (collective transport ranks bytes up_to algorithm us runner_up us)"});
    policy::line l;
    l.collective = named(0, collective_from);
    l.transport = words_[1];
    l.ranks = number<int>(2, 1);
    l.bytes = number<std::size_t>(3, 0);
    l.up_to = words_[4] == "*" ? policy::any_size : number<std::size_t>(4, l.bytes);
    l.algorithm = named(5, algorithm_from);
    if (l.algorithm == algorithm::automatic || l.algorithm == algorithm::custom)
      complain({"chooses '", words_[5], "', which is no algorithm that can be chosen by name"});
    l.microseconds = number<double>(6, 0);
    if (words_[7] != "-") l.runner_up = named(7, algorithm_from);
    l.runner_up_microseconds = number<double>(8, 0);
    return l;
  }

 private:
  [[noreturn, gnu::cold]] void complain(std::initializer_list<text_piece> what) const {
    throw invalid_argument(text_of({"line ", number_, " of ", name_, " ", text_of(what),
                                    ": correct it, or write the file anew with 'rondo tune'"}));
  }

  template <class Value>
  Value named(std::size_t word, Value (*from)(std::string_view)) const {
    try {
      return from(words_[word]);
    } catch (invalid_argument const&) { complain({"has the unknown name '", words_[word], "' as word ", word + 1}); }
  }

  template <class T>
  T number(std::size_t word, T least) const {
    T value{};
    auto const text = words_[word];
    auto const [end, wrong] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (wrong != std::errc{} || end != text.data() + text.size() || !(value >= least))
      complain({"has '", text, "' as word ", word + 1, ", which is no number from ",
                static_cast<unsigned long long>(least), " on"});
    return value;
  }

  std::vector<std::string_view> words_;
  std::string const& name_;
  std::size_t number_;
};

}  // namespace detail

inline policy policy::parse(std::string_view text, std::string name) {
  std::vector<line> lines;
  for (std::size_t number = 1; !text.empty(); ++number) {
    auto const end = std::min(text.find('\n'), text.size());
    detail::policy_words const words(text.substr(0, end), name, number);
    if (!words.empty()) lines.push_back(words.line());
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return policy(std::move(lines), std::move(name));
}

inline policy policy::load(std::string const& path) {
  auto const text = detail::file_text(path.c_str());
  if (!text)
    throw invalid_argument(
        detail::text_of({"the policy '", path,
                         "' cannot be read: name a file that 'rondo tune' has written, or leave RONDO_POLICY unset"}));
  return parse(*text, path);
}

inline std::span<policy::line const> policy::lines_for(collective what, std::string_view transport,
                                                       int ranks) const noexcept {
  int nearest = 0;
  for (line const& l : lines_)
    if (l.collective == what && l.transport == transport && l.ranks <= ranks && 2 * l.ranks > ranks)
      nearest = std::max(nearest, l.ranks);
  auto const same = [&](line const& l) {
    return l.collective == what && l.transport == transport && l.ranks == nearest;
  };
  auto const first = std::find_if(lines_.begin(), lines_.end(), same);
  return {first, std::find_if_not(first, lines_.end(), same)};
}

inline std::uint64_t policy::digest() const noexcept {
  if (lines_.empty()) return 0;
  std::uint64_t hash = 14695981039346656037U;  // FNV-1a
  auto const add = [&](std::uint64_t value) { hash = (hash ^ value) * 1099511628211U; };
  for (line const& l : lines_) {
    add(static_cast<std::uint64_t>(l.collective));
    for (char const c : l.transport) add(static_cast<unsigned char>(c));
    add(static_cast<std::uint64_t>(l.ranks));
    add(l.up_to);
    add(static_cast<std::uint64_t>(l.algorithm));
  }
  return hash;
}

inline std::string to_string(policy::line const& l) {
  auto const us = [](double value) {
    auto const tenths = static_cast<long long>(value * 10 + 0.5);
    return detail::text_of({tenths / 10, ".", tenths % 10});
  };
  return detail::text_of({to_string(l.collective), " ", l.transport, " ", l.ranks, " ", l.bytes, " ",
                          l.up_to == policy::any_size ? "*" : detail::text_of({l.up_to}), " ", to_string(l.algorithm),
                          " ", us(l.microseconds), " ",
                          l.runner_up == algorithm::automatic ? "-" : to_string(l.runner_up), " ",
                          us(l.runner_up_microseconds)});
}

}  // namespace rondo::inline v0
