#pragma once

#include "layer.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>
#include <zlib.h>

namespace fashion_mnist {

/// Labelled images of 28 x 28 grey values, row by row, one image a column.
struct dataset {
  Eigen::MatrixX<std::uint8_t> images;
  std::vector<std::uint8_t> labels;

  std::size_t size() const noexcept { return labels.size(); }
};

/// A gzipped file in the idx format of MNIST: a big-endian header of extents, then bytes.
class idx_file {
 public:
  explicit idx_file(std::filesystem::path const& path) : path_(path.string()), file_(gzopen(path.c_str(), "rb")) {
    if (!file_)
      throw std::runtime_error("cannot open " + path_ +
                               ": install the Debian package dataset-fashion-mnist, or give its "
                               "directory with --data");
  }

  void read(std::span<std::uint8_t> bytes) {
    if (gzread(file_.get(), bytes.data(), static_cast<unsigned>(bytes.size())) != static_cast<int>(bytes.size()))
      throw std::runtime_error(path_ + " ends early or is damaged: install dataset-fashion-mnist again");
  }

  /// The extents that follow the header; refuses a file with another number of dimensions.
  template <std::size_t Dimensions>
  std::array<std::size_t, Dimensions> extents() {
    std::array<std::uint8_t, 4 + 4 * Dimensions> header;
    read(header);
    if (header[2] != 8 || header[3] != Dimensions)
      throw std::runtime_error(path_ + " is not an idx file of bytes: give the directory of Fashion-MNIST with --data");
    std::array<std::size_t, Dimensions> result{};
    for (std::size_t i = 0; i < 4 * Dimensions; ++i) result[i / 4] = result[i / 4] << 8 | header[4 + i];
    return result;
  }

 private:
  struct close {
    void operator()(gzFile_s* file) const noexcept { gzclose(file); }
  };

  std::string path_;
  std::unique_ptr<gzFile_s, close> file_;
};

/// The first `limit` images of a part of Fashion-MNIST: "train" (60,000 in all) or "t10k" (10,000).
inline dataset load(std::filesystem::path const& directory, std::string const& part, std::size_t limit) {
  idx_file images(directory / (part + "-images-idx3-ubyte.gz")), labels(directory / (part + "-labels-idx1-ubyte.gz"));
  auto const [count, height, width] = images.extents<3>();
  if (labels.extents<1>()[0] != count || height != 28 || width != 28)
    throw std::runtime_error(directory.string() + " does not hold images of 28 x 28 with a label each: give the "
                                                  "directory of Fashion-MNIST with --data");
  dataset result;
  result.labels.resize(std::min(count, limit));
  labels.read(result.labels);
  result.images.resize(28 * 28, static_cast<Eigen::Index>(result.size()));
  images.read({result.images.data(), static_cast<std::size_t>(result.images.size())});
  return result;
}

/// What a net is given: pixels with mean 0 and variance 1 over the training set, and their labels.
template <class T>
struct batch {
  batch(dataset const& from, std::span<std::size_t const> which)
      : images(from.images.rows(), static_cast<Eigen::Index>(which.size())), labels(which.size()) {
    for (std::size_t i = 0; i < which.size(); ++i) {
      images.col(static_cast<Eigen::Index>(i)) =
          (from.images.col(static_cast<Eigen::Index>(which[i])).template cast<T>().array() - T(72.94)) / T(90.02);
      labels[i] = from.labels[which[i]];
    }
  }

  matrix<T> images;
  std::vector<std::uint8_t> labels;
};

}  // namespace fashion_mnist
