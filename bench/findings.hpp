#pragma once

#include "machine.hpp"

#include <string>
#include <string_view>

namespace rondo::bench {

/// Prints what `rondo doctor` finds, one line each, with the fix below what is not well.
class findings {
 public:
  explicit findings(bool in_color) : in_color_(in_color) {}

  void section(std::string_view name);
  void ok(std::string_view topic, std::string_view text);
  void note(std::string_view topic, std::string_view text, std::string_view fix = {});
  void problem(std::string_view topic, std::string_view text, std::string_view fix);

  int notes() const { return notes_; }
  int problems() const { return problems_; }

 private:
  void line(std::string_view mark, std::string_view color, std::string_view topic, std::string_view text,
            std::string_view fix);

  bool in_color_;
  int notes_ = 0, problems_ = 0;
};

/// Memory and the limits on it. Returns whether ranks can share memory.
bool look_at_memory(findings& found, machine const& m);

/// Interfaces, and which of them TCP would use.
void look_at_network(findings& found);

/// RDMA devices, their ports and addresses, and which of them verbs would use.
void look_at_rdma(findings& found);

void look_at_gpus(findings& found);

/// What a launcher has set, in one line; empty if none has.
std::string launcher_variables();

}  // namespace rondo::bench
