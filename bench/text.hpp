#pragma once

#include <cstddef>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace rondo::bench {

/// What the user asked for cannot be done; what() is one sentence that says why and what to do instead.
class usage_error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// "8", "64K", "1.5MiB", "1G" as bytes; the suffixes mean powers of 1024, as nccl-tests has it. Throws usage_error.
std::size_t parse_bytes(std::string_view text);

/// 8 -> "8 B", 65536 -> "64 KiB", 25 MiB + 1 -> "25.0 MiB".
std::string format_bytes(std::size_t bytes);

/// Three significant digits with a fitting unit: "0.24 us", "45.1 us", "2.29 ms", "1.02 s"; "-" for NaN.
std::string format_us(double us);

/// The time of day here, in the format of strftime.
std::string local_time(char const* format);

/// Splits at commas; empty pieces are dropped.
std::vector<std::string> split_list(std::string_view text);

/// "shm, tcp and in_process", for sentences.
std::string join_words(std::vector<std::string> const& words, std::string_view last = "and");

/// "shm, tcp or all": the words and those that always work, for sentences that offer a choice.
std::string one_of(std::vector<std::string> words, std::vector<std::string> const& always = {"all"});

}  // namespace rondo::bench
