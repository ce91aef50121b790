#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace rondo::bench {

/// Text made safe for HTML and SVG.
std::string escaped(std::string_view text);

/// How a line looks: an index into the colours, dashes and markers of the style sheet. The same name always looks the
/// same, on every plot; lines differ by marker and dash as well as by colour.
int look_of(std::string_view name);

/// The CSS that the functions below rely on: colours for light and dark screens and for paper.
std::string plot_style();

struct plot_point {
  std::size_t bytes;
  double value;
};

struct plot_line {
  std::string name;
  std::vector<plot_point> points;
};

struct plot_axes {
  std::string title;
  std::string unit;          ///< of the values: "us" is shown as us, ms or s
  bool logarithmic = false;  ///< the values; sizes always are
  double low = 0, high = 0;  ///< of the values; the same for plots that are to be compared
};

/// Values over sizes as an SVG element.
std::string line_plot(plot_axes const& axes, std::vector<plot_line> const& lines);

/// The looks of the lines with these names, in a row that wraps.
std::string legend(std::vector<std::string> const& names);

/// One cell of a map: what won, and by how much.
struct map_cell {
  std::string name;  ///< empty: nothing was measured
  std::string note;  ///< below the name, smaller
  std::string hint;  ///< shown when the pointer rests on the cell
};

/// A table of winners: cells[row][column], as an SVG element.
std::string winner_map(std::string_view title, std::vector<std::string> const& columns,
                       std::vector<std::string> const& rows, std::vector<std::vector<map_cell>> const& cells);

}  // namespace rondo::bench
