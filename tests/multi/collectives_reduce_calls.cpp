#include "collectives.hpp"

#include <tuple>

namespace collectives_test {

template <class T, class Op>
void reduce(comm& c, std::span<T const> in, std::span<T> out, Op const& op, rank_t root, call_options const& options) {
  c.reduce(in, out, op, root, options);
}
template <class T, class Op>
work start_reduce(comm& c, std::span<T const> in, std::span<T> out, Op const& op, rank_t root,
                  call_options const& options) {
  return c.start_reduce(in, out, op, root, options);
}

template <class T, class Op>
void reduce_scatter(comm& c, std::span<T const> in, std::span<T> out, counts sizes, Op const& op,
                    call_options const& options) {
  if (sizes.empty())
    c.reduce_scatter(in, out, op, options);
  else
    c.reduce_scatter_v(in, out, sizes, op, options);
}
template <class T, class Op>
work start_reduce_scatter(comm& c, std::span<T const> in, std::span<T> out, Op const& op, call_options const& options) {
  return c.start_reduce_scatter(in, out, op, options);
}

template <class T, class... Ops>
auto calls() {
  return std::tuple(std::tuple(&reduce<T, Ops>...), std::tuple(&reduce_scatter<T, Ops>...));
}
template <class T>
auto number() {
  return calls<T, sum_op, max_op, avg_op, premul_sum_op<factor_of<T>>>();
}

// Taking the address of a call is what compiles it here.
template auto number<float>();
template auto number<double>();
template auto number<float16>();
template auto number<bfloat16>();
template auto number<float8_e4m3>();
template auto number<float8_e5m2>();
template auto number<std::int8_t>();
template auto number<std::uint16_t>();
template auto number<std::int32_t>();
template auto number<std::uint64_t>();
template auto calls<affine, sum_op, composition>();

template work start_reduce(comm&, std::span<std::int32_t const>, std::span<std::int32_t>, sum_op const&, rank_t,
                           call_options const&);
template work start_reduce_scatter(comm&, std::span<std::int32_t const>, std::span<std::int32_t>, sum_op const&,
                                   call_options const&);

}  // namespace collectives_test
