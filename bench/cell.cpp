#include "bench/cell.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "program/failure.h"

namespace flashback::bench {
namespace {

constexpr std::int64_t kTokens = 65536, kHeads = 32, kKvHeads = 8;

std::string heads_word(const Cell& cell) {
  return cell.grouped() ? "gqa" : "mha";
}

// Whether `word` says this of the cell: 4096 and 4k alike.
bool is_length(const Cell& cell, const std::string& word) {
  const std::int64_t rows = cell.shape.seqlen_q;
  return word == fmt::format("{}", rows) || word == fmt::format("{}k", rows / 1024);
}

std::vector<std::string> split(const std::string& words) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; !words.empty() && begin <= words.size();) {
    const std::size_t end = std::min(words.find(',', begin), words.size());
    parts.push_back(words.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

}  // namespace

std::string name(const Cell& cell) {
  return fmt::format("{} {} {}", name(cell.mask), heads_word(cell), cell.shape.seqlen_q);
}

double flop(const Cell& cell) {
  const Shape& s = cell.shape;
  const double dense =
      10.0 * double(s.batch * s.heads) * double(s.seqlen_q) * double(s.seqlen_k) * double(s.head_dim);
  return cell.mask == Mask::kCausal ? dense / 2 : dense;
}

std::vector<Cell> all_cells() {
  std::vector<Cell> cells;
  for (const std::int64_t kv_heads : {kHeads, kKvHeads}) {
    for (const Mask& mask : {Mask::kDense, Mask::kCausal}) {
      for (std::int64_t rows = 1024; rows <= 32768; rows *= 2)
        cells.push_back({mask, {kTokens / rows, kHeads, kv_heads, rows, rows, 64}});
    }
  }
  return cells;
}

std::vector<Cell> chosen_cells(const std::string& words) {
  std::vector<std::string> masks, heads, lengths;
  std::vector<Cell> cells = all_cells();
  for (const std::string& word : split(words)) {
    if (word == "dense" || word == "causal") {
      masks.push_back(word);
    } else if (word == "mha" || word == "gqa") {
      heads.push_back(word);
    } else if (std::any_of(cells.begin(), cells.end(), [&](const Cell& c) { return is_length(c, word); })) {
      lengths.push_back(word);
    } else {
      program::refuse(
          fmt::format("--cells has the word \"{}\"; each must be dense, causal, mha, gqa or a length: 1k, "
                      "2k, 4k, 8k, 16k, 32k",
                      word));
    }
  }
  const auto open_or_has = [](const std::vector<std::string>& words, auto matches) {
    return words.empty() || std::any_of(words.begin(), words.end(), matches);
  };
  std::erase_if(cells, [&](const Cell& cell) {
    return !(open_or_has(masks, [&](const std::string& word) { return word == name(cell.mask); }) &&
             open_or_has(heads, [&](const std::string& word) { return word == heads_word(cell); }) &&
             open_or_has(lengths, [&](const std::string& word) { return is_length(cell, word); }));
  });
  return cells;
}

}  // namespace flashback::bench
