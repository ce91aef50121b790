#include "datatype.hpp"

#include "text.hpp"

#include <array>
#include <fmt/format.h>

namespace rondo::bench {
namespace {

struct datatype_entry {
  datatype type;
  std::string_view name, other_name;
  std::size_t size;
};

constexpr std::array datatypes{datatype_entry{datatype::int8, "int8", "i8", 1},
                               datatype_entry{datatype::uint8, "uint8", "u8", 1},
                               datatype_entry{datatype::int32, "int32", "i32", 4},
                               datatype_entry{datatype::uint32, "uint32", "u32", 4},
                               datatype_entry{datatype::int64, "int64", "i64", 8},
                               datatype_entry{datatype::uint64, "uint64", "u64", 8},
                               datatype_entry{datatype::half, "half", "float16", 2},
                               datatype_entry{datatype::float32, "float", "float32", 4},
                               datatype_entry{datatype::float64, "double", "float64", 8},
                               datatype_entry{datatype::bfloat16, "bfloat16", "bf16", 2},
                               datatype_entry{datatype::f8e4m3, "f8e4m3", "float8_e4m3", 1},
                               datatype_entry{datatype::f8e5m2, "f8e5m2", "float8_e5m2", 1}};

constexpr std::array<std::string_view, 6> reductions{"sum", "prod", "min", "max", "avg", "mulsum"};

template <class Names>
std::string listed(Names const& names) {
  std::vector<std::string> words;
  for (auto const name : names) words.emplace_back(name);
  return one_of(words);
}

}  // namespace

std::vector<datatype> all_datatypes() {
  std::vector<datatype> all;
  for (auto const& e : datatypes) all.push_back(e.type);
  return all;
}

std::vector<reduction> all_reductions() {
  using enum reduction;
  return {sum, prod, min, max, avg, mulsum};
}

std::string_view name_of(datatype type) noexcept { return datatypes[static_cast<std::size_t>(type)].name; }
std::string_view name_of(reduction op) noexcept { return reductions[static_cast<std::size_t>(op)]; }
std::size_t size_of(datatype type) noexcept { return datatypes[static_cast<std::size_t>(type)].size; }

datatype datatype_from(std::string_view name) {
  std::vector<std::string_view> names;
  for (auto const& e : datatypes) {
    if (name == e.name || name == e.other_name) return e.type;
    names.push_back(e.name);
  }
  throw usage_error(fmt::format("There is no type '{}': choose {}.", name, listed(names)));
}

reduction reduction_from(std::string_view name) {
  for (auto const op : all_reductions())
    if (name == name_of(op)) return op;
  throw usage_error(fmt::format("There is no op '{}': choose {}.", name, listed(reductions)));
}

}  // namespace rondo::bench
