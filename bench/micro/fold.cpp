// Folding and converting: bytes of result a second, by operation, type, instruction set and size.
#include <rondo/element.hpp>
#include <rondo/fold.hpp>
#include <rondo/ops.hpp>

#include <benchmark/benchmark.h>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace {

using namespace rondo;
using detail::instruction_set;

/// The three fit the first, second and third cache of most processors.
constexpr std::size_t sizes[] = {std::size_t{8} << 10, std::size_t{96} << 10, std::size_t{2} << 20};
constexpr std::size_t most_sources = 8;

template <class T>
std::vector<T> small_numbers(std::size_t bytes, std::size_t period) {
  std::vector<T> values;
  for (std::size_t i = 0; i < bytes / sizeof(T); ++i) values.push_back(static_cast<T>(accumulator_t<T>(i % period)));
  return values;
}

void count_bytes(benchmark::State& state, std::size_t bytes) {
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(bytes));
}

std::string text(std::size_t bytes) { return std::to_string(bytes >> 10) + "KiB"; }

template <class T, class Op>
void fold(benchmark::State& state, instruction_set set, Op op, std::size_t bytes, std::size_t k) {
  std::vector<std::vector<T>> values;
  std::vector<std::byte const*> sources;
  for (std::size_t i = 0; i < k; ++i) values.push_back(small_numbers<T>(bytes, 31 + i));
  for (auto const& source : values) sources.push_back(reinterpret_cast<std::byte const*>(source.data()));
  std::vector<T> result(bytes / sizeof(T));
  std::byte* const out = reinterpret_cast<std::byte*>(result.data());
  detail::fold_tree<T, Op> tree(set, op);
  for ([[maybe_unused]] auto _ : state) {
    tree(std::span(&out, 1), sources, result.size());
    benchmark::ClobberMemory();
  }
  count_bytes(state, bytes);
}

template <class T, class Op>
void register_folds(std::string const& name, Op op) {
  constexpr std::string_view names[] = {"baseline", "avx2", "avx512", "vbmi"};
  for (auto const set :
       {instruction_set::baseline, instruction_set::avx2, instruction_set::avx512, instruction_set::vbmi}) {
    if (set > detail::best_instruction_set()) continue;
    std::string const start =
        "fold/" + name + "/" + std::string(type_name<T>()) + "/" + std::string(names[static_cast<int>(set)]) + "/";
    for (std::size_t const bytes : sizes)
      benchmark::RegisterBenchmark((start + text(bytes)).c_str(),
                                   [=](benchmark::State& state) { fold<T>(state, set, op, bytes, 2); });
  }
}

/// As algorithms over streams fold what arrives.
template <class T>
void register_in_place() {
  benchmark::RegisterBenchmark(("in_place/max/" + std::string(type_name<T>()) + "/" + text(sizes[1])).c_str(),
                               [](benchmark::State& state) {
                                 auto data = small_numbers<T>(sizes[1], 31);
                                 auto const arrived = small_numbers<T>(sizes[1], 32);
                                 auto* const out = reinterpret_cast<std::byte*>(data.data());
                                 auto const add = make_reduction<T>(rondo::max);  // which no repetition lets overflow
                                 for ([[maybe_unused]] auto _ : state) {
                                   add(out, out, reinterpret_cast<std::byte const*>(arrived.data()), data.size());
                                   benchmark::ClobberMemory();
                                 }
                                 count_bytes(state, sizes[1]);
                               });
}

template <class T>
void register_fan_in() {
  for (std::size_t k = 3; k <= most_sources; ++k)
    benchmark::RegisterBenchmark(
        ("fan_in/sum/" + std::string(type_name<T>()) + "/" + std::to_string(k) + "/" + text(sizes[1])).c_str(),
        [k](benchmark::State& state) { fold<T>(state, detail::best_instruction_set(), sum, sizes[1], k); });
}

template <class T>
void register_conversions() {
  auto const name = std::string(type_name<T>());
  benchmark::RegisterBenchmark(("convert/" + name + "/float32").c_str(), [](benchmark::State& state) {
    auto const in = small_numbers<T>(sizes[1], 31);
    std::vector<float> out(in.size());
    for ([[maybe_unused]] auto _ : state) {
      detail::convert_range<float, T>(reinterpret_cast<std::byte*>(out.data()),
                                      reinterpret_cast<std::byte const*>(in.data()), in.size());
      benchmark::ClobberMemory();
    }
    count_bytes(state, sizes[1]);
  });
  benchmark::RegisterBenchmark(("convert/float32/" + name).c_str(), [](benchmark::State& state) {
    auto const in = small_numbers<float>(sizes[1] / sizeof(T) * sizeof(float), 31);
    std::vector<T> out(in.size());
    for ([[maybe_unused]] auto _ : state) {
      detail::convert_range<T, float>(reinterpret_cast<std::byte*>(out.data()),
                                      reinterpret_cast<std::byte const*>(in.data()), in.size());
      benchmark::ClobberMemory();
    }
    count_bytes(state, sizes[1]);
  });
}

/// What a call of two elements costs.
template <class T>
void two_elements(benchmark::State& state) {
  reduction const add = make_reduction<T>(sum);
  T a[2]{}, b[2]{}, out[2];
  for ([[maybe_unused]] auto _ : state) {
    benchmark::DoNotOptimize(add);
    add(reinterpret_cast<std::byte*>(out), reinterpret_cast<std::byte const*>(a), reinterpret_cast<std::byte const*>(b),
        2);
    benchmark::ClobberMemory();
  }
}

[[maybe_unused]] bool const registered = [] {
  register_folds<float>("sum", sum);
  register_folds<float>("lambda", [](float a, float b) noexcept { return a + b; });
  register_folds<float>("max", rondo::max);
  register_folds<double>("sum", sum);
  register_folds<double>("prod", prod);
  register_folds<bfloat16>("sum", sum);
  register_folds<bfloat16>("lambda", [](float a, float b) noexcept { return a + b; });
  register_folds<bfloat16>("max", rondo::max);
  register_folds<float16>("sum", sum);
  register_folds<float8_e4m3>("sum", sum);
  register_folds<float8_e5m2>("sum", sum);
  register_folds<std::int8_t>("max", rondo::max);
  register_folds<std::int32_t>("sum", sum);
  register_folds<std::int64_t>("max", rondo::max);
  register_in_place<float>();
  register_in_place<double>();
  register_in_place<std::int32_t>();
  register_fan_in<float>();
  register_fan_in<bfloat16>();
  register_conversions<bfloat16>();
  register_conversions<float16>();
  register_conversions<float8_e4m3>();
  benchmark::RegisterBenchmark("fold/sum/float32/2_elements", two_elements<float>);
  benchmark::RegisterBenchmark("fold/sum/bfloat16/2_elements", two_elements<bfloat16>);
  return true;
}();

}  // namespace
