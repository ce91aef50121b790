#include "turns.hpp"

#include "statistics.hpp"

#include <algorithm>

namespace rondo::bench {
namespace {

bool is_near(double flag_ns) { return flag_ns <= near_ns; }

}  // namespace

void turns::add(double flag_ns) {
  flag_ns_.push_back(flag_ns);
  ever_near_ = ever_near_ || is_near(flag_ns);
}

bool turns::enough() const {
  auto const near = std::count_if(flag_ns_.begin(), flag_ns_.end(), is_near);
  auto const all = std::ssize(flag_ns_);
  return near >= wanted_ || all >= (ever_near_ ? 3 : 1) * wanted_;
}

std::vector<std::size_t> turns::counted() const {
  std::vector<std::size_t> near, all;
  for (std::size_t t = 0; t < flag_ns_.size(); ++t) {
    all.push_back(t);
    if (is_near(flag_ns_[t])) near.push_back(t);
  }
  return static_cast<int>(near.size()) < std::min(3, wanted_) ? all : near;
}

double turns::flag_ns() const {
  std::vector<double> ns;
  for (auto const t : counted()) ns.push_back(flag_ns_[t]);
  return summarise(ns).p50;
}

}  // namespace rondo::bench
