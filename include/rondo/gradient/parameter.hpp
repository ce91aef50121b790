#pragma once

#include <rondo/element.hpp>
#include <rondo/options.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace rondo::inline v0 {

/// What tensors of a model are made of.
template <class T>
concept real =
    std::same_as<T, float> || std::same_as<T, double> || std::same_as<T, float16> || std::same_as<T, bfloat16>;

/// The same at run time.
enum class real_type : std::uint8_t { float32, float64, float16, bfloat16 };

template <real T>
inline constexpr real_type real_type_of = std::same_as<T, float>     ? real_type::float32
                                          : std::same_as<T, double>  ? real_type::float64
                                          : std::same_as<T, float16> ? real_type::float16
                                                                     : real_type::bfloat16;

/// Calls f(std::type_identity<T>) with the type.
template <class F>
constexpr decltype(auto) with_real(real_type type, F&& f) {
  switch (type) {
    case real_type::float64: return f(std::type_identity<double>());
    case real_type::float16: return f(std::type_identity<rondo::float16>());
    case real_type::bfloat16: return f(std::type_identity<rondo::bfloat16>());
    default: return f(std::type_identity<float>());
  }
}

constexpr std::string_view to_string(real_type type) noexcept {
  return with_real(type, []<class T>(std::type_identity<T>) { return type_name<T>(); });
}

/// Bytes of a value.
constexpr std::size_t size_of(real_type type) noexcept {
  return with_real(type, []<class T>(std::type_identity<T>) { return sizeof(T); });
}

/// The type that gradients of such values are added in: accumulator_t.
constexpr real_type sum_type(real_type type) noexcept {
  return type == real_type::float64 ? real_type::float64 : real_type::float32;
}

/// One tensor of a model: where its values and their gradient lie. Both stay where they are, and must outlive whatever
/// was given the parameter.
struct parameter {
  /// A gradient is of the type of its values, or of the one that they are added in: float for float16 and bfloat16.
  template <writable_buffer V, writable_buffer G>
    requires real<element_of<V>> &&
        (std::same_as<element_of<G>, element_of<V>> ||
         std::same_as<element_of<G>, accumulator_t<element_of<V>>>)parameter(std::string the_name, V&& the_values,
                                                                             G&& the_gradient)
        : parameter(std::move(the_name), std::forward<V>(the_values)) {
      gradient_type = real_type_of<element_of<G>>;
      gradient = std::span(the_gradient).data();
      gradient_count = std::size(the_gradient);
    }

    /// A gradient that lies in the bucket, where no copy is needed; of the type that it is added in.
    template <writable_buffer V>
      requires real<element_of<V>> parameter(std::string the_name, V&& the_values)
          : name(std::move(the_name)), type(real_type_of<element_of<V>>), gradient_type(sum_type(type)),
            count(std::size(the_values)), gradient_count(count), values(std::span(the_values).data()) {}

      /// As error messages name it: 'fc.weight' (float32, 7840 elements).
      std::string text() const {
        return "'" + name + "' (" + std::string(to_string(type)) + ", " + std::to_string(count) + " elements)";
      }

      std::string name;
      real_type type, gradient_type;
      std::size_t count, gradient_count;
      void* values;
      void* gradient = nullptr;  ///< null: in the bucket
};

}  // namespace rondo::inline v0
