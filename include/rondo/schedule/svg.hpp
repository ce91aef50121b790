#pragma once

#include <rondo/schedule.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rondo::inline v0 {

struct svg_options {
  std::string title = "Schedule";
};

namespace detail {

/// Lays out and writes one picture. Units are CSS pixels: text of 12 and 13 stays readable on paper up to 16 ranks.
template <schedule S>
class space_time_diagram {
 public:
  space_time_diagram(S const& s, svg_options const& options) : s_(s), options_(options), y_{top} {
    for (int i = 0; i < s_.rounds(); ++i) {
      int farthest = 1;
      for (rank_t r = 0; r < s_.ranks(); ++r) {
        step const t = s_.at(r, i);
        if (t.from == nobody) continue;
        widest_ = std::max(widest_, pill_width(label(t.in)));
        (t.how == merge::overwrite ? copies_ : folds_) = true;
        completes_ = completes_ || t.completes;
        forwards_ = forwards_ || !t.keep;
        if (!wraps(t.from, r)) farthest = std::max(farthest, std::abs(t.from - r));
      }
      // Far messages get a taller row, so that their arrows stay apart.
      y_.push_back(y_.back() + 40 + 6 * std::min(farthest, 12));
    }
    column_ = std::max({58, widest_ + 22, std::min(100, (least_width - left - right) / s_.ranks())});
  }

  std::string draw() {
    int const width = std::max(left + s_.ranks() * column_ + right, least_width);
    int const height = y(s_.rounds()) + 84;
    out_ = "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " + text(width) + ' ' + text(height) +
           "\" width=\"" + text(width) + "\" height=\"" + text(height) +
           "\" font-family=\"Helvetica, Arial, sans-serif\" font-size=\"13\" fill=\"#222\">\n"
           "<title>" +
           escaped(options_.title) + "</title>\n<defs>\n";
    marker("fold", fold_color);
    marker("copy", copy_color);
    out_ += "</defs>\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n";
    write(left - 44, 30, options_.title, "font-size=\"18\" font-weight=\"bold\"");
    write(left - 44, 50,
          plural(s_.ranks(), "rank") + ", " + plural(s_.chunks(), "chunk") + ", " + plural(s_.rounds(), "round"),
          "fill=\"#666\"");
    grid(width);
    arrows(true);
    arrows(false);
    pills();
    legend(y(s_.rounds()) + 50);
    return std::move(out_) + "</svg>\n";
  }

 private:
  static constexpr int left = 64, right = 20, top = 104, pill_height = 20, least_width = 540;
  // Vermillion and blue of Okabe and Ito's palette, which the colour-blind tell apart, and a printer in grey too.
  static constexpr char const* fold_color = "#d55e00";
  static constexpr char const* copy_color = "#0072b2";

  static std::string text(int x) { return std::to_string(x); }
  static std::string plural(int n, char const* what) { return text(n) + ' ' + what + (n == 1 ? "" : "s"); }
  static int pill_width(std::string_view label) { return std::max(24, 10 + 7 * static_cast<int>(label.size())); }

  static std::string escaped(std::string_view raw) {
    std::string safe;
    for (char const c : raw) safe += c == '<' ? "&lt;" : c == '&' ? "&amp;" : std::string(1, c);
    return safe;
  }

  int x(rank_t r) const { return left + r * column_ + column_ / 2; }
  int y(int round) const { return y_[static_cast<std::size_t>(round)]; }

  /// A message between the last rank and the first leaves on one side and comes in on the other, as on a map of the
  /// world.
  bool wraps(rank_t from, rank_t to) const {
    int const last = s_.ranks() - 1;
    return last > 1 && std::abs(from - to) == last;
  }

  std::string label(slice k) const {
    if (k.count == 0) return "";
    if (k.count == s_.chunks()) return "all";
    if (k.count == 1) return text(k.first);
    return text(k.first) + '-' + text((k.first + k.count - 1) % s_.chunks());
  }

  void write(int at_x, int at_y, std::string const& what, std::string const& attributes) {
    out_ += "<text x=\"" + text(at_x) + "\" y=\"" + text(at_y) + "\" " + attributes + '>' + escaped(what) + "</text>\n";
  }

  void line(int x1, int y1, int x2, int y2) {
    out_ += "<line x1=\"" + text(x1) + "\" y1=\"" + text(y1) + "\" x2=\"" + text(x2) + "\" y2=\"" + text(y2) + "\"/>\n";
  }

  void marker(char const* name, char const* color) {
    out_ += std::string("<marker id=\"") + name +
            "\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"8\" "
            "markerHeight=\"8\" markerUnits=\"userSpaceOnUse\" orient=\"auto\"><path d=\"M0 0.5L8 4L0 7.5z\" fill=\"" +
            color + "\"/></marker>\n";
  }

  void grid(int width) {
    for (int i = 0; i < s_.rounds(); i += 2)
      out_ += "<rect x=\"0\" y=\"" + text(y(i)) + "\" width=\"" + text(width) + "\" height=\"" + text(y(i + 1) - y(i)) +
              "\" fill=\"#f4f4f4\"/>\n";
    write(left - 18, top - 20, "round", "text-anchor=\"end\" fill=\"#666\" font-size=\"12\"");
    for (int i = 0; i < s_.rounds(); ++i)
      write(left - 18, (y(i) + y(i + 1)) / 2 + 4, text(i), "text-anchor=\"end\" fill=\"#666\" font-size=\"12\"");
    out_ += "<g stroke=\"#bbb\">\n";
    for (rank_t r = 0; r < s_.ranks(); ++r) line(x(r), top - 10, x(r), y(s_.rounds()) + 16);
    out_ += "</g>\n";
    for (rank_t r = 0; r < s_.ranks(); ++r)
      write(x(r), top - 20, (r == 0 ? "rank " : "") + text(r), "text-anchor=\"middle\" font-weight=\"bold\"");
  }

  /// From where the sender stands after the round before to the edge of the receiver's pill.
  void arrow(rank_t from, rank_t to, int round, slice what) {
    int const x1 = x(from), y1 = y(round), y2 = y(round + 1);
    if (!wraps(from, to)) return head(x1, y1, x(to), y2, what);
    int const way = from > to ? column_ : -column_;
    out_ += "<line x1=\"" + text(x1) + "\" y1=\"" + text(y1) + "\" x2=\"" + text(x1 + way / 2) + "\" y2=\"" +
            text((y1 + y2) / 2) + "\" marker-end=\"none\"/>\n";
    head(x(to) - way / 2, (y1 + y2) / 2, x(to), y2, what);
  }

  void head(int x1, int y1, int x2, int y2, slice what) {
    double const dx = x2 - x1, dy = y2 - y1;
    double const across = dx == 0 ? 1 : pill_width(label(what)) / 2 / std::abs(dx);
    double const rest = 1 - std::min(across, pill_height / 2 / dy);
    line(x1, y1, x1 + static_cast<int>(std::lround(dx * rest)), y1 + static_cast<int>(std::lround(dy * rest)));
  }

  void arrows(bool folds) {
    std::string const color = folds ? fold_color : copy_color;
    out_ +=
        "<g stroke=\"" + color + "\" stroke-width=\"1.5\" marker-end=\"url(#" + (folds ? "fold" : "copy") + ")\">\n";
    for (int i = 0; i < s_.rounds(); ++i)
      for (rank_t r = 0; r < s_.ranks(); ++r)
        if (step const t = s_.at(r, i); t.from != nobody && (t.how != merge::overwrite) == folds)
          arrow(t.from, r, i, t.in);
    out_ += "</g>\n";
  }

  void pill(int at_x, int at_y, std::string const& what, bool fold, bool hollow, bool final) {
    int const w = pill_width(what);
    std::string const color = fold ? fold_color : copy_color;
    auto const box = [&](int grow, std::string const& fill, char const* stroke) {
      out_ += "<rect x=\"" + text(at_x - w / 2 - grow) + "\" y=\"" + text(at_y - pill_height / 2 - grow) +
              "\" width=\"" + text(w + 2 * grow) + "\" height=\"" + text(pill_height + 2 * grow) + "\" rx=\"" +
              text(pill_height / 2 + grow) + "\" fill=\"" + fill + "\" stroke=\"" + color + "\" " + stroke + "/>\n";
    };
    if (final) box(3, "white", "stroke-width=\"1.5\"");
    box(0, hollow ? "white" : color, "stroke-width=\"1.5\"");
    write(at_x, at_y + 4, what, "text-anchor=\"middle\" font-size=\"12\" fill=\"" + (hollow ? color : "white") + '"');
  }

  void pills() {
    for (rank_t r = 0; r < s_.ranks(); ++r)
      out_ += "<circle cx=\"" + text(x(r)) + "\" cy=\"" + text(y(0)) + "\" r=\"4\"/>\n";
    for (int i = 0; i < s_.rounds(); ++i)
      for (rank_t r = 0; r < s_.ranks(); ++r)
        if (step const t = s_.at(r, i); t.from != nobody)
          pill(x(r), y(i + 1), label(t.in), t.how != merge::overwrite, !t.keep, t.completes);
  }

  void legend(int at_y) {
    int at_x = left - 28;
    auto const entry = [&](bool shown, std::string const& what, bool fold, bool hollow, bool final) {
      if (!shown) return;
      pill(at_x, at_y, "", fold, hollow, final);
      write(at_x + 20, at_y + 4, what, "font-size=\"12\"");
      at_x += 52 + 6 * static_cast<int>(what.size());
    };
    entry(folds_, "fold", true, false, false);
    entry(copies_, "copy", false, false, false);
    entry(completes_, "makes it final", true, false, true);
    entry(forwards_, "passed on, not kept", folds_, true, false);
    write(left - 44, at_y + 26, "An arrow is a message; a number tells which chunks arrive.",
          "font-size=\"12\" fill=\"#666\"");
  }

  S s_;
  svg_options options_;
  std::vector<int> y_;  // where the rounds begin, and the last one ends
  int widest_ = 24;
  int column_ = 0;
  bool folds_ = false, copies_ = false, completes_ = false, forwards_ = false;
  std::string out_;
};

}  // namespace detail

/// A schedule as a picture: ranks across, rounds down, one arrow a message, and at its head the chunks that arrive.
/// Returns a complete SVG document that needs no other file. About 400 bytes a message: meant for up to some 16 ranks.
template <schedule S>
std::string svg(S const& s, svg_options const& options = {}) {
  return detail::space_time_diagram<S>(s, options).draw();
}

}  // namespace rondo::inline v0
