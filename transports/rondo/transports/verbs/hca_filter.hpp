#pragma once

#include <rondo/detail/environment_text.hpp>
#include <rondo/detail/name_list.hpp>
#include <rondo/error.hpp>

#include <charconv>
#include <cstddef>
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
  explicit hca_filter(std::string_view text) : text_(text), list_(text) {
    for (auto& name : list_.names) ports_.push_back(cut_port(name));
    if (ports_.empty() && !text_.empty()) refuse();
  }

  /// The text in RONDO_IB_HCA, else that in NCCL_IB_HCA, else the default.
  static hca_filter from_environment() {
    return hca_filter(detail::environment_text::first_of({"RONDO_IB_HCA", "NCCL_IB_HCA"}).text);
  }

  std::string const& text() const noexcept { return text_; }

  bool accepts(std::string_view device, int port) const noexcept {
    bool found = false;
    for (std::size_t i = 0; i < ports_.size(); ++i)
      found = found || (list_.stands_for(list_.names[i], device) && (ports_[i] == 0 || ports_[i] == port));
    return text_.empty() || found != list_.excludes;
  }

 private:
  /// Takes the port off the end of an entry; 0: any.
  int cut_port(std::string& entry) const {
    auto const colon = entry.find(':');
    if (colon == entry.npos) return 0;
    int port = 0;
    char const* const last = entry.data() + entry.size();
    auto const [end, code] = std::from_chars(entry.data() + colon + 1, last, port);
    if (colon == 0 || code != std::errc{} || end != last || port < 1) refuse();
    entry.resize(colon);
    return port;
  }

  [[noreturn]] void refuse() const {
    throw invalid_argument("the filter of RDMA devices \"" + text_ +
                           "\" cannot be read; write mlx5,rxe or =mlx5_0:1 or ^mlx5_2");
  }

  std::string text_;
  detail::name_list list_;
  std::vector<int> ports_;  // of each name
};

}  // namespace rondo::inline v0
