#include "collectives.hpp"

#include <tuple>

namespace collectives_test {

template <class T, class Op>
void all_reduce(comm& c, std::span<T const> in, std::span<T> out, Op const& op, call_options const& options) {
  c.all_reduce(in, out, op, options);
}
template <class T, class Op>
work start_all_reduce(comm& c, std::span<T const> in, std::span<T> out, Op const& op, call_options const& options) {
  return c.start_all_reduce(in, out, op, options);
}

template <class T, class... Ops>
auto calls() {
  return std::tuple(&all_reduce<T, Ops>...);
}
template <class T>
auto number() {
  return calls<T, sum_op, prod_op, min_op, max_op, avg_op, premul_sum_op<factor_of<T>>, logical_and_op, logical_or_op,
               logical_xor_op, small_first>();
}
template <class T>
auto integer() {
  return std::tuple(number<T>(), calls<T, bit_and_op, bit_or_op, bit_xor_op>());
}

// Taking the address of a call is what compiles it here.
template auto number<float>();
template auto number<double>();
template auto number<float16>();
template auto number<bfloat16>();
template auto number<float8_e4m3>();
template auto number<float8_e5m2>();
template auto integer<std::int8_t>();
template auto integer<std::uint8_t>();
template auto integer<std::int16_t>();
template auto integer<std::uint16_t>();
template auto integer<std::int32_t>();
template auto integer<std::uint32_t>();
template auto integer<std::int64_t>();
template auto integer<std::uint64_t>();
template auto calls<affine, sum_op, min_op, max_op, composition>();

template work start_all_reduce(comm&, std::span<std::int32_t const>, std::span<std::int32_t>, sum_op const&,
                               call_options const&);
template work start_all_reduce(comm&, std::span<std::uint64_t const>, std::span<std::uint64_t>, sum_op const&,
                               call_options const&);
template work start_all_reduce(comm&, std::span<float const>, std::span<float>, avg_op const&, call_options const&);
template work start_all_reduce(comm&, std::span<affine const>, std::span<affine>, composition const&,
                               call_options const&);

}  // namespace collectives_test
