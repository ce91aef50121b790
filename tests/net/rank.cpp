// One rank of the tests of networks, which a launcher's environment describes:
//
//   net-rank TRANSPORT check                  connects, says how, and makes collectives whose results it knows
//   net-rank TRANSPORT until-error DEADLINE   all_reduces one after the other until one throws; DEADLINE in ms
//   net-rank TRANSPORT time ALGORITHM BYTES   the median time of an all_reduce, in ms
//
// What goes wrong is one line: error, the rank at fault, the words. The exit status is 0 in any case that is foreseen.

#include <rondo/communicator.hpp>
#include <rondo/ops.hpp>
#include <rondo/transports/any_transport.hpp>
#include <rondo/transports/bootstrap.hpp>
#include <rondo/transports/multi.hpp>
#include <rondo/transports/tcp.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

using namespace rondo;
using comm = communicator<any_transport>;
using clock = std::chrono::steady_clock;

any_transport connect(std::string const& transport, std::shared_ptr<group> const& g) {
  auto const deadline = group::clock::now() + std::chrono::seconds(20);
  if (transport == "multi") return multi::connect(g, {}, deadline);
  if (transport == "tcp") return tcp::connect(g, {}, deadline);
  throw std::invalid_argument("no transport " + transport);
}

void demand(bool holds, std::string const& otherwise) {
  if (!holds) throw std::runtime_error(otherwise);
}

/// Sums that are exact in any order.
void check_sums(comm& c, std::size_t count, call_options const& options) {
  std::vector<std::int64_t> v(count);
  for (std::size_t i = 0; i < count; ++i) v[i] = static_cast<std::int64_t>(i) * (c.rank() + 1);
  c.all_reduce(v, sum, options);
  std::int64_t const ranks = c.size() * (c.size() + 1) / 2;
  for (std::size_t i = 0; i < count; ++i)
    demand(v[i] == static_cast<std::int64_t>(i) * ranks, "a wrong sum at " + std::to_string(i));
}

void check(comm& c) {
  std::cout << c.explain() << '\n';
  std::cout << "chosen " << to_string(c.chosen(collective::all_reduce, std::size_t{25} << 20)) << '\n';
  for (std::size_t const count : {1U, 1000U, 100'001U, 700'001U}) check_sums(c, count, {});
  for (auto const a : {algorithm::ring, algorithm::hierarchical, algorithm::recursive_doubling})
    check_sums(c, 300'007, {.algorithm = a});
  std::vector<int> const mine(10'000, c.rank());
  std::vector<int> all(mine.size() * static_cast<std::size_t>(c.size()));
  c.all_gather(mine, all);
  for (std::size_t i = 0; i < all.size(); ++i)
    demand(all[i] == static_cast<int>(i / mine.size()), "a wrong block of all_gather");
  std::vector<int> news(50'000, c.rank() == c.size() - 1 ? 42 : 0);
  c.broadcast(news, c.size() - 1);
  demand(std::count(news.begin(), news.end(), 42) == 50'000, "a wrong broadcast");
  c.barrier();
  std::cout << "right\n";
}

void until_error(comm& c) {
  std::vector<float> v(std::size_t{1} << 20, 1.0F);
  for (int i = 0;; ++i) {
    c.all_reduce(v, sum);
    std::fill(v.begin(), v.end(), 1.0F);
    if (i == 3) std::cout << "running" << std::endl;
  }
}

void time(comm& c, algorithm how, std::size_t bytes) {
  std::vector<float> v(bytes / sizeof(float), 1.0F);
  std::vector<double> ms;
  for (int i = 0; i < 7; ++i) {
    c.barrier();
    auto const start = clock::now();
    c.all_reduce(v, max, {.algorithm = how});
    c.barrier();
    if (i > 1) ms.push_back(std::chrono::duration<double, std::milli>(clock::now() - start).count());
  }
  std::nth_element(ms.begin(), ms.begin() + static_cast<std::ptrdiff_t>(ms.size() / 2), ms.end());
  demand(std::count(v.begin(), v.end(), 1.0F) == static_cast<std::ptrdiff_t>(v.size()), "a wrong maximum");
  std::cout << to_string(how == algorithm::automatic ? c.chosen(collective::all_reduce, bytes) : how) << ' '
            << ms[ms.size() / 2] << " ms\n";
}

}  // namespace

int main(int count, char** words) try {
  std::vector<std::string> const argument(words + 1, words + count);
  auto const& task = argument.at(1);
  try {
    auto const g = join(environment::detect(), {.deadline = std::chrono::seconds(20)});
    std::chrono::milliseconds const deadline(task == "until-error" ? std::stoi(argument.at(2)) : 60'000);
    comm c(g, connect(argument.at(0), g), {.deadline = deadline});
    if (task == "check") check(c);
    if (task == "until-error") until_error(c);
    if (task == "time") time(c, algorithm_from(argument.at(2)), std::stoul(argument.at(3)));
    c.barrier();
  } catch (rondo::error const& e) { std::cout << "error " << e.rank() << ' ' << e.what() << std::endl; }
  return 0;
} catch (std::exception const& e) {
  std::cout << "broken " << e.what() << std::endl;
  return 1;
}
