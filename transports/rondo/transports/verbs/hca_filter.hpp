#pragma once

#include <rondo/error.hpp>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace rondo::inline v0 {

/// Chooses RDMA devices and their ports by name, in the grammar of NCCL_IB_HCA.
///
///     mlx5,rxe          the devices whose names start with mlx5 or rxe
///     =mlx5_0:1,mlx5_1  exactly port 1 of mlx5_0, and mlx5_1
///     ^mlx5_2,rxe       all but those that start so; ^= excludes exact names
///
/// The empty text is the default: every device.
class hca_filter {
 public:
  hca_filter() = default;
  explicit hca_filter(std::string_view text) : text_(text) {
    auto const skip = [&](char c) { return text.starts_with(c) && (text.remove_prefix(1), true); };
    exclude_ = skip('^');
    exact_ = skip('=');
    while (!text.empty()) {
      auto const entry = text.substr(0, text.find(','));
      if (!entry.empty()) entries_.push_back(read(entry));
      text.remove_prefix(std::min(entry.size() + 1, text.size()));
    }
    if (entries_.empty() && !text_.empty()) refuse();
  }

  /// The text in RONDO_IB_HCA, else that in NCCL_IB_HCA, else the default.
  static hca_filter from_environment() {
    for (char const* variable : {"RONDO_IB_HCA", "NCCL_IB_HCA"})
      if (char const* text = std::getenv(variable); text != nullptr && *text != '\0') return hca_filter(text);
    return {};
  }

  std::string const& text() const noexcept { return text_; }

  bool accepts(std::string_view device, int port) const noexcept {
    if (entries_.empty()) return true;
    auto const named = [&](entry const& e) {
      return (exact_ ? device == e.name : device.starts_with(e.name)) && (e.port == 0 || e.port == port);
    };
    return std::any_of(entries_.begin(), entries_.end(), named) != exclude_;
  }

 private:
  struct entry {
    std::string name;
    int port;  // 0: any
  };

  entry read(std::string_view text) const {
    auto const name = text.substr(0, text.find(':'));
    if (name.size() == text.size()) return {std::string(name), 0};
    auto const digits = text.substr(name.size() + 1);
    int port = 0;
    auto const [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
    if (name.empty() || code != std::errc{} || end != digits.data() + digits.size() || port < 1) refuse();
    return {std::string(name), port};
  }

  [[noreturn]] void refuse() const {
    throw invalid_argument("the filter of RDMA devices \"" + text_ +
                           "\" cannot be read; write mlx5,rxe or =mlx5_0:1 or ^mlx5_2");
  }

  std::string text_;
  std::vector<entry> entries_;
  bool exclude_ = false;
  bool exact_ = false;
};

}  // namespace rondo::inline v0
