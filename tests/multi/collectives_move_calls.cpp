#include "collectives.hpp"

#include <tuple>

namespace collectives_test {

template <class T>
void all_gather(comm& c, std::span<T const> in, std::span<T> out, counts sizes, call_options const& options) {
  if (sizes.empty())
    c.all_gather(in, out, options);
  else
    c.all_gather_v(in, out, sizes, options);
}
template <class T>
work start_all_gather(comm& c, std::span<T const> in, std::span<T> out, call_options const& options) {
  return c.start_all_gather(in, out, options);
}

template <class T>
void broadcast(comm& c, std::span<T> data, rank_t root, call_options const& options) {
  c.broadcast(data, root, options);
}
template <class T>
work start_broadcast(comm& c, std::span<T> data, rank_t root, call_options const& options) {
  return c.start_broadcast(data, root, options);
}

template <class T>
void all_to_all(comm& c, std::span<T const> in, counts to, std::span<T> out, counts from, call_options const& options) {
  if (to.empty() && from.empty())
    c.all_to_all(in, out, options);
  else
    c.all_to_all_v(in, to, out, from, options);
}
template <class T>
work start_all_to_all(comm& c, std::span<T const> in, std::span<T> out, call_options const& options) {
  return c.start_all_to_all(in, out, options);
}

template <class T>
void gather(comm& c, std::span<T const> in, std::span<T> out, rank_t root, call_options const& options) {
  c.gather(in, out, root, options);
}
template <class T>
work start_gather(comm& c, std::span<T const> in, std::span<T> out, rank_t root, call_options const& options) {
  return c.start_gather(in, out, root, options);
}

template <class T>
void scatter(comm& c, std::span<T const> in, std::span<T> out, rank_t root, call_options const& options) {
  c.scatter(in, out, root, options);
}
template <class T>
work start_scatter(comm& c, std::span<T const> in, std::span<T> out, rank_t root, call_options const& options) {
  return c.start_scatter(in, out, root, options);
}

template <class T>
void send(comm& c, std::span<T const> data, rank_t to, call_options const& options) {
  c.send(data, to, options);
}
template <class T>
void receive(comm& c, std::span<T> data, rank_t from, call_options const& options) {
  c.receive(data, from, options);
}
template <class T>
work start_send(comm& c, std::span<T const> data, rank_t to, call_options const& options) {
  return c.start_send(data, to, options);
}
template <class T>
work start_receive(comm& c, std::span<T> data, rank_t from, call_options const& options) {
  return c.start_receive(data, from, options);
}

void barrier(comm& c, call_options const& options) { c.barrier(options); }
work start_barrier(comm& c, call_options const& options) { return c.start_barrier(options); }

template <class T>
auto calls() {
  return std::tuple(&all_gather<T>, &broadcast<T>, &all_to_all<T>, &gather<T>, &scatter<T>, &send<T>, &receive<T>);
}
template <class T>
auto starts() {
  return std::tuple(&start_all_gather<T>, &start_broadcast<T>, &start_all_to_all<T>, &start_gather<T>,
                    &start_scatter<T>, &start_send<T>, &start_receive<T>);
}

// Taking the address of a call is what compiles it here.
template auto calls<std::byte>();
template auto calls<std::int32_t>();
template auto calls<std::uint64_t>();
template auto calls<float16>();
template auto calls<affine>();
template auto starts<std::int32_t>();

}  // namespace collectives_test
