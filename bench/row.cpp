#include "row.hpp"

#include "text.hpp"

#include <cmath>
#include <fmt/format.h>
#include <fstream>
#include <nlohmann/json.hpp>

namespace rondo::bench {
namespace {

/// Calls visit(name, member) for every column, in order.
template <class Row, class Visitor>
void for_columns(Row& r, Visitor&& visit) {
  visit("transport", r.transport);
  visit("ranks", r.ranks);
  visit("algorithm", r.algorithm);
  visit("chosen", r.chosen);
  visit("collective", r.collective);
  visit("type", r.type);
  visit("op", r.op);
  visit("root", r.root);
  visit("workload", r.workload);
  visit("bytes", r.bytes);
  visit("count", r.count);
  visit("in_place", r.in_place);
  visit("buffers", r.buffers);
  visit("iterations", r.iterations);
  visit("min_us", r.min_us);
  visit("p50_us", r.p50_us);
  visit("p99_us", r.p99_us);
  visit("algbw_GBps", r.algbw_GBps);
  visit("busbw_GBps", r.busbw_GBps);
  visit("wrong", r.wrong);
  visit("checked", r.checked);
  visit("hashes_equal", r.hashes_equal);
  visit("flag_round_trip_ns", r.flag_round_trip_ns);
  visit("limit_us", r.limit_us);
}

nlohmann::ordered_json object_of(row const& r) {
  auto object = nlohmann::ordered_json::object();
  for_columns(r, [&](char const* name, auto const& value) { object[name] = value; });
  return object;
}

std::ofstream open_to_write(std::string const& path) {
  std::ofstream file(path);
  if (!file) throw usage_error(fmt::format("'{}' cannot be written: check the folder and its permissions.", path));
  return file;
}

void close(std::ofstream& file, std::string const& path) {
  file.close();
  if (!file) throw usage_error(fmt::format("Writing '{}' failed: the disk may be full.", path));
}

}  // namespace

std::string to_line(std::span<row const> rows) {
  auto list = nlohmann::ordered_json::array();
  for (auto const& r : rows) list.push_back(object_of(r));
  return list.dump();
}

std::vector<row> from_line(std::string_view line) {
  std::vector<row> rows;
  for (auto const& object : nlohmann::ordered_json::parse(line))
    for_columns(rows.emplace_back(), [&]<class T>(char const* name, T& value) {
      auto const found = object.find(name);
      if (found == object.end()) return;
      if constexpr (std::is_same_v<T, double>)
        value = found->is_null() ? not_measured : found->template get<double>();
      else
        value = found->template get<T>();
    });
  return rows;
}

void write_json(std::string const& path, std::span<row const> rows) {
  auto file = open_to_write(path);
  char const* separator = "[\n";
  for (auto const& r : rows) {
    file << separator << object_of(r).dump();
    separator = ",\n";
  }
  file << (rows.empty() ? "[]\n" : "\n]\n");
  close(file, path);
}

void write_csv(std::string const& path, std::span<row const> rows) {
  auto file = open_to_write(path);
  row const names{};
  char const* separator = "";
  for_columns(names, [&](char const* name, auto const&) {
    file << separator << name;
    separator = ",";
  });
  for (auto const& r : rows) {
    separator = "\n";
    for_columns(r, [&]<class T>(char const*, T const& value) {
      file << separator;
      if constexpr (std::is_same_v<T, double>)
        file << (std::isfinite(value) ? fmt::format("{}", value) : std::string());
      else
        file << fmt::format("{}", value);
      separator = ",";
    });
  }
  file << '\n';
  close(file, path);
}

}  // namespace rondo::bench
