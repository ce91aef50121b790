#pragma once

#include <rondo/group.hpp>
#include <rondo/transports/bootstrap/introduced.hpp>

#include <chrono>
#include <memory>
#include <string>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <vector>

namespace rondo::inline v0::detail {

/// Texts that ranks leave for each other in a c10d store, under names that all of them count alike.
class store_notes {
 public:
  store_notes(c10d::Store& store, rank_t rank, int size, std::chrono::milliseconds patience)
      : store_(store), rank_(rank), size_(size), patience_(patience) {}

  /// Gives every rank the text of rank 0.
  std::string tell(std::string const& text) {
    auto const name = next();
    return rank_ == 0 ? write(name, text) : read(name);
  }

  /// Is the flag true on all ranks?
  bool all(bool flag) {
    auto const name = next();
    if (rank_ != 0) write(name + "/" + std::to_string(rank_), flag ? "yes" : "no");
    for (rank_t q = 1; rank_ == 0 && q < size_; ++q) flag = read(name + "/" + std::to_string(q)) == "yes" && flag;
    return tell(flag ? "yes" : "no") == "yes";
  }

 private:
  std::string next() { return "rondo/" + std::to_string(notes_++); }

  std::string write(std::string const& name, std::string const& text) {
    store_.set(name, std::vector<std::uint8_t>(text.begin(), text.end()));
    return text;
  }
  std::string read(std::string const& name) {
    store_.wait({name}, patience_);
    auto const text = store_.get(name);
    return {text.begin(), text.end()};
  }

  c10d::Store& store_;
  rank_t rank_;
  int size_;
  std::chrono::milliseconds patience_;
  int notes_ = 0;
};

/// Joins the ranks that use the store, which must not have served for this before. Throws what join() throws.
inline std::shared_ptr<group> join_store(c10d::Store& store, rank_t rank, int size,
                                         std::chrono::milliseconds deadline) {
  store_notes notes(store, rank, size, deadline);
  environment who;
  who.rank = rank;
  who.size = size;
  who.launcher = "PyTorch";
  return join_introduced(
      who, {.deadline = deadline}, [&](std::string const& text) { return notes.tell(text); },
      [&](bool flag) { return notes.all(flag); });
}

}  // namespace rondo::inline v0::detail
