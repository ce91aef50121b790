#pragma once

#include <string_view>

namespace rondo::bench {

/// One line on a terminal that says what is going on, and is overwritten by what comes next. Nothing where stderr is no
/// terminal.
class progress_line {
 public:
  progress_line();
  ~progress_line() { clear(); }
  progress_line(progress_line const&) = delete;
  progress_line& operator=(progress_line const&) = delete;

  void show(std::string_view text);
  void clear();

 private:
  bool terminal_;
  bool shown_ = false;
};

}  // namespace rondo::bench
