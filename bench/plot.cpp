#include "plot.hpp"

#include "text.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>

namespace rondo::bench {
namespace {

struct look {
  std::string_view name, color, dark_color, dash;
};

// Based on the palette of Okabe and Ito, which the colour-blind can tell apart; a marker and a dash repeat what the
// colour says.
constexpr std::array looks{look{"ring", "#0072b2", "#4da3e0", ""},
                           look{"bidirectional_ring", "#3aa0d8", "#7cc7f5", "6 3"},
                           look{"tree", "#00805d", "#33c79a", ""},
                           look{"double_tree", "#8a7a00", "#e3d34a", "6 3"},
                           look{"recursive_doubling", "#c85200", "#ff8a3d", ""},
                           look{"recursive_halving", "#d18f00", "#f5b942", "6 3"},
                           look{"ordered_halving", "#a6558a", "#e39cc9", "2 2"},
                           look{"mixed_radix", "#7a4b3a", "#c79a86", ""},
                           look{"binomial", "#6b6b6b", "#b5b5b5", "6 3"},
                           look{"hierarchical", "#5146b8", "#a49bff", ""},
                           look{"direct", "#b0124f", "#ff6f9f", ""},
                           look{"automatic", "#111111", "#f4f4f4", "1 3"},
                           look{"limit", "#8f8f8f", "#8f8f8f", "3 3"},
                           look{"other", "#3f7f00", "#9fe05f", ""},
                           look{"other2", "#7a0099", "#d98cf0", "6 3"},
                           look{"other3", "#006a6a", "#5fd6d6", "2 2"}};
constexpr int first_free_look = 13;

constexpr double width = 430, height = 290, left = 52, right = 14, top = 34, bottom = 40;

std::string marker(int look, double x, double y) {
  auto const polygon = [&](std::string_view points) {
    return fmt::format("<polygon class=\"m k{}\" transform=\"translate({:.1f} {:.1f})\" points=\"{}\"/>", look, x, y,
                       points);
  };
  switch (look % 6) {
    case 0: return fmt::format("<circle class=\"m k{}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3.2\"/>", look, x, y);
    case 1: return polygon("-3,-3 3,-3 3,3 -3,3");
    case 2: return polygon("0,-4 3.7,3 -3.7,3");
    case 3: return polygon("0,-4.2 4.2,0 0,4.2 -4.2,0");
    case 4: return polygon("0,4 3.7,-3 -3.7,-3");
    default:
      return polygon("-1.3,-4 1.3,-4 1.3,-1.3 4,-1.3 4,1.3 1.3,1.3 1.3,4 -1.3,4 -1.3,1.3 -4,1.3 -4,-1.3 -1.3,-1.3");
  }
}

bool has_marker(int look) { return looks[static_cast<std::size_t>(look)].name != "limit"; }

std::string tick_label(plot_axes const& axes, double value) {
  if (axes.unit != "us") return fmt::format("{:g}", value);
  if (value < 1e3) return fmt::format("{:g} us", value);
  return value < 1e6 ? fmt::format("{:g} ms", value / 1e3) : fmt::format("{:g} s", value / 1e6);
}

/// 1, 2 or 5 times a power of ten, so that there are about five steps.
double nice_step(double range) {
  double const raw = range / 5, power = std::pow(10, std::floor(std::log10(raw)));
  for (double const factor : {1.0, 2.0, 5.0})
    if (factor * power >= raw) return factor * power;
  return 10 * power;
}

std::vector<double> ticks(plot_axes const& axes) {
  std::vector<double> at;
  if (axes.logarithmic)
    for (double v = std::pow(10, std::ceil(std::log10(axes.low) - 1e-9)); v <= axes.high * 1.0001; v *= 10)
      at.push_back(v);
  else
    for (double step = nice_step(axes.high - axes.low), v = axes.low; v <= axes.high * 1.0001; v += step)
      at.push_back(v);
  return at;
}

}  // namespace

std::string escaped(std::string_view text) {
  std::string safe;
  for (char const c : text) switch (c) {
      case '<': safe += "&lt;"; break;
      case '>': safe += "&gt;"; break;
      case '&': safe += "&amp;"; break;
      case '"': safe += "&quot;"; break;
      default: safe += c;
    }
  return safe;
}

int look_of(std::string_view name) {
  for (std::size_t i = 0; i < looks.size(); ++i)
    if (looks[i].name == name) return static_cast<int>(i);
  std::size_t sum = 0;
  for (char const c : name) sum = sum * 31 + static_cast<unsigned char>(c);
  return first_free_look + static_cast<int>(sum % (looks.size() - first_free_look));
}

std::string plot_style() {
  std::string light, dark, rules;
  for (std::size_t i = 0; i < looks.size(); ++i) {
    light += fmt::format("--k{}:{};", i, looks[i].color);
    dark += fmt::format("--k{}:{};", i, looks[i].dark_color);
    rules += fmt::format(".l.k{0}{{stroke:var(--k{0})", i);
    if (!looks[i].dash.empty()) rules += fmt::format(";stroke-dasharray:{}", looks[i].dash);
    rules += fmt::format("}}.m.k{0}{{fill:var(--k{0})}}", i);
  }
  return fmt::format(":root{{{}}}\n@media screen and (prefers-color-scheme:dark){{:root{{{}}}}}\n{}\n"
                     ".l{{fill:none;stroke-width:1.8;stroke-linejoin:round}}.m{{stroke:var(--paper);stroke-width:.8}}"
                     ".cell{{stroke:var(--paper);stroke-width:2}}.rule{{stroke:var(--line);stroke-width:1}}"
                     "svg text{{fill:var(--ink);font-size:11px}}svg .soft{{fill:var(--soft)}}svg "
                     ".head{{font-size:13px;font-weight:600}}"
                     "svg .on{{fill:var(--paper);font-weight:600;font-size:10.5px}}svg .on2{{fill:var(--paper)}}\n",
                     light, dark, rules);
}

std::string line_plot(plot_axes const& axes, std::vector<plot_line> const& lines) {
  std::vector<std::size_t> sizes;
  for (auto const& line : lines)
    for (auto const& p : line.points) sizes.push_back(p.bytes);
  std::sort(sizes.begin(), sizes.end());
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  if (sizes.empty()) return {};

  double const first = std::log2(static_cast<double>(std::max<std::size_t>(1, sizes.front())));
  double const last = std::max(first + 1, std::log2(static_cast<double>(sizes.back())));
  auto const x = [&](std::size_t bytes) {
    auto const at = std::log2(static_cast<double>(std::max<std::size_t>(1, bytes)));
    return left + (at - first) / (last - first) * (width - left - right);
  };
  auto const y = [&](double value) {
    double const at = axes.logarithmic ? std::log(value / axes.low) / std::log(axes.high / axes.low)
                                       : (value - axes.low) / (axes.high - axes.low);
    return height - bottom - at * (height - top - bottom);
  };

  auto svg = fmt::format(
      "<svg viewBox=\"0 0 {0} {1}\" role=\"img\" aria-label=\"{2}\"><text class=\"head\" x=\"{3}\" y=\"18\">{2}</text>",
      width, height, escaped(axes.title), left);
  for (double const v : ticks(axes))
    svg += fmt::format("<line class=\"rule\" x1=\"{}\" x2=\"{}\" y1=\"{:.1f}\" y2=\"{:.1f}\"/><text class=\"soft\" "
                       "x=\"{}\" y=\"{:.1f}\" "
                       "text-anchor=\"end\">{}</text>",
                       left, width - right, y(v), y(v), left - 6, y(v) + 4, tick_label(axes, v));
  auto const every = (sizes.size() + 5) / 6;
  for (std::size_t i = 0; i < sizes.size(); i += every)
    svg += fmt::format(
        "<line class=\"rule\" x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1}\" y2=\"{2}\"/><text class=\"soft\" x=\"{0:.1f}\" "
        "y=\"{3}\" text-anchor=\"middle\">{4}</text>",
        x(sizes[i]), height - bottom, height - bottom + 4, height - bottom + 17, format_bytes(sizes[i]));
  if (axes.unit != "us")
    svg += fmt::format("<text class=\"soft\" x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>", left - 6, top - 8,
                       escaped(axes.unit));
  for (auto const& line : lines) {
    int const look = look_of(line.name);
    std::string path, marks;
    for (auto const& p : line.points) {
      if (!std::isfinite(p.value)) continue;
      path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? "M" : "L", x(p.bytes), y(p.value));
      if (has_marker(look)) marks += marker(look, x(p.bytes), y(p.value));
    }
    svg += fmt::format("<g><title>{}</title><path class=\"l k{}\" d=\"{}\"/>{}</g>", escaped(line.name), look, path,
                       marks);
  }
  return svg + "</svg>\n";
}

std::string legend(std::vector<std::string> const& names) {
  std::string html = "<p class=\"legend\">";
  for (auto const& name : names) {
    int const look = look_of(name);
    html += fmt::format("<span><svg viewBox=\"0 0 34 12\" width=\"34\" height=\"12\"><path class=\"l k{0}\" d=\"M1 "
                        "6L33 6\"/>{1}</svg>{2}</span> ",
                        look, has_marker(look) ? marker(look, 17, 6) : "", escaped(name));
  }
  return html + "</p>\n";
}

std::string winner_map(std::string_view title, std::vector<std::string> const& columns,
                       std::vector<std::string> const& rows, std::vector<std::vector<map_cell>> const& cells) {
  constexpr double cell_width = 124, cell_height = 34, label = 70, head = 52;
  double const w = label + cell_width * static_cast<double>(columns.size()) + 4;
  double const h = head + cell_height * static_cast<double>(rows.size()) + 4;
  auto svg = fmt::format("<svg class=\"map\" viewBox=\"0 0 {0:.0f} {1:.0f}\" style=\"max-width:{0:.0f}px\" "
                         "role=\"img\" aria-label=\"{2}\">"
                         "<text class=\"head\" x=\"0\" y=\"16\">{2}</text>",
                         w, h, escaped(title));
  for (std::size_t c = 0; c < columns.size(); ++c)
    svg += fmt::format("<text class=\"soft\" x=\"{:.0f}\" y=\"{:.0f}\" text-anchor=\"middle\">{}</text>",
                       label + cell_width * (static_cast<double>(c) + 0.5), head - 10, escaped(columns[c]));
  for (std::size_t r = 0; r < rows.size(); ++r) {
    double const y = head + cell_height * static_cast<double>(r);
    svg += fmt::format("<text class=\"soft\" x=\"{:.0f}\" y=\"{:.0f}\" text-anchor=\"end\">{}</text>", label - 8,
                       y + 21, escaped(rows[r]));
    for (std::size_t c = 0; c < columns.size(); ++c) {
      auto const& cell = cells[r][c];
      if (cell.name.empty()) continue;
      double const x = label + cell_width * static_cast<double>(c), middle = x + cell_width / 2;
      svg += fmt::format("<g><title>{}</title><rect class=\"cell m k{}\" x=\"{:.0f}\" y=\"{:.0f}\" width=\"{:.0f}\" "
                         "height=\"{:.0f}\" rx=\"5\"/>"
                         "<text class=\"on\" x=\"{:.0f}\" y=\"{:.0f}\" text-anchor=\"middle\">{}</text>",
                         escaped(cell.hint), look_of(cell.name), x, y, cell_width, cell_height, middle,
                         y + (cell.note.empty() ? 21 : 15), escaped(cell.name));
      if (!cell.note.empty())
        svg += fmt::format("<text class=\"on2\" x=\"{:.0f}\" y=\"{:.0f}\" text-anchor=\"middle\">{}</text>", middle,
                           y + 28, escaped(cell.note));
      svg += "</g>";
    }
  }
  return svg + "</svg>\n";
}

}  // namespace rondo::bench
