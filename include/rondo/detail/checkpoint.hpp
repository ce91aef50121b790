#pragma once

#include <rondo/detail/hash.hpp>
#include <rondo/error.hpp>
#include <rondo/gradient/bucket.hpp>
#include <rondo/gradient/parameter.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <istream>
#include <ostream>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

namespace rondo::inline v0::detail {

/// The state of a sharded optimizer as a stream of bytes, whatever the number of ranks and the sizes of buckets:
///
///   a head, and for each parameter its name and count;
///   then for every array of every parameter, in any order, a record: which one, a hash of its floats, and these.
///
/// Integers are little-endian words of 64 bits, as they lie in memory.
struct checkpoint_head {
  std::array<char, 8> magic = {'r', 'o', 'n', 'd', 'o', 'c', 'p', '1'};
  std::uint64_t parameters = 0, arrays = 0, steps = 0;
};

struct checkpoint_record {
  std::uint64_t parameter, array, count, hash;
};

template <class T>
void write_raw(std::ostream& out, std::span<T const> values) {
  static_assert(std::is_trivially_copyable_v<T>);
  out.write(reinterpret_cast<char const*>(values.data()), static_cast<std::streamsize>(values.size_bytes()));
  if (!out) throw error("the stream of a checkpoint failed: see that its file can be written and the disk is not full");
}

template <class T>
void read_raw(std::istream& in, std::span<T> values) {
  static_assert(std::is_trivially_copyable_v<T>);
  in.read(reinterpret_cast<char*>(values.data()), static_cast<std::streamsize>(values.size_bytes()));
  if (!in) throw error("a checkpoint ends early: give every rank a stream of all that save() has written");
}

inline void write_checkpoint_head(std::ostream& out, std::span<parameter const> parameters, std::size_t arrays,
                                  std::uint64_t steps) {
  checkpoint_head head;
  head.parameters = parameters.size();
  head.arrays = arrays;
  head.steps = steps;
  write_raw(out, std::span<checkpoint_head const>(&head, 1));
  for (parameter const& p : parameters) {
    std::uint64_t const sizes[] = {p.name.size(), p.count};
    write_raw(out, std::span<std::uint64_t const>(sizes));
    write_raw(out, std::span<char const>(p.name));
  }
}

/// Writes one array of the tensors of a bucket.
inline void write_checkpoint_array(std::ostream& out, bucket const& b, std::size_t array, std::span<float const> all) {
  for (bucket_slot const& slot : b.slots) {
    auto const values = all.subspan(slot.offset, slot.count);
    checkpoint_record const record{slot.parameter, array, slot.count, hasher().add(std::as_bytes(values)).value()};
    write_raw(out, std::span<checkpoint_record const>(&record, 1));
    write_raw(out, values);
  }
}

/// Throws invalid_argument unless the stream was written for these parameters and so many arrays of each. Returns the
/// number of steps.
inline std::uint64_t read_checkpoint_head(std::istream& in, std::span<parameter const> parameters, std::size_t arrays) {
  checkpoint_head head;
  read_raw(in, std::span(&head, 1));
  if (head.magic != checkpoint_head{}.magic)
    throw invalid_argument("this is not a checkpoint of a sharded optimizer: give load() what save() has written");
  if (head.parameters != parameters.size() || head.arrays != arrays)
    throw invalid_argument("the checkpoint has " + std::to_string(head.parameters) + " parameters with " +
                           std::to_string(head.arrays - 1) + " moments, the optimizer " +
                           std::to_string(parameters.size()) + " with " + std::to_string(arrays - 1) +
                           ": load it into the model and the rule that it was saved from");
  for (parameter const& p : parameters) {
    std::array<std::uint64_t, 2> sizes{};
    read_raw(in, std::span<std::uint64_t>(sizes));
    std::string name(sizes[0] < 4096 ? sizes[0] : 4096, '\0');
    read_raw(in, std::span(name));
    if (name != p.name || sizes[1] != p.count)
      throw invalid_argument("the checkpoint has '" + name + "' with " + std::to_string(sizes[1]) +
                             " elements in the place of parameter " + p.text() +
                             ": load it into the model that it was saved from");
  }
  return head.steps;
}

/// All arrays of all parameters: array a of parameter p is number p * arrays + a.
inline std::vector<std::vector<float>> read_checkpoint_arrays(std::istream& in, std::span<parameter const> parameters,
                                                              std::size_t arrays) {
  std::vector<std::vector<float>> all(parameters.size() * arrays);
  for (std::size_t n = 0; n < all.size(); ++n) {
    checkpoint_record record{};
    read_raw(in, std::span(&record, 1));
    if (record.parameter >= parameters.size() || record.array >= arrays ||
        record.count != parameters[record.parameter].count)
      throw error("a checkpoint is damaged: restore the file, or go back to an earlier one");
    auto& values = all[record.parameter * arrays + record.array];
    values.resize(record.count);
    read_raw(in, std::span(values));
    if (hasher().add(std::as_bytes(std::span(values))).value() != record.hash)
      throw error("a checkpoint is damaged in parameter " + parameters[record.parameter].text() +
                  ": restore the file, or go back to an earlier one");
  }
  return all;
}

}  // namespace rondo::inline v0::detail
