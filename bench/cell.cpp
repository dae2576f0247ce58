#include "bench/cell.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "program/failure.h"

namespace flashback::bench {
namespace {

constexpr std::int64_t kTokens = 65536, kQueryChannels = 2048, kGroup = 4, kShortest = 128, kLongest = 32768;
constexpr Mask kWindow = {1024, 0};

// Words of which a cell has one, and those of them that count where none is said.
struct Kind {
  std::string what;
  std::vector<std::string> words, usual;
};

std::string length_word(std::int64_t rows) {
  return rows < 1024 ? fmt::format("{}", rows) : fmt::format("{}k", rows / 1024);
}

const std::vector<Kind>& kinds() {
  static const std::vector<Kind> all = [] {
    std::vector<std::string> lengths, usual_lengths;
    for (std::int64_t rows = kShortest; rows <= kLongest; rows *= 2) {
      lengths.push_back(length_word(rows));
      if (rows >= 1024) usual_lengths.push_back(length_word(rows));
    }
    return std::vector<Kind>{{"head dimension", {"d64", "d128"}, {"d64"}},
                             {"layout", {"padded", "packed"}, {"padded"}},
                             {"dtype", {"bf16", "fp16"}, {"bf16"}},
                             {"order", {"default", "deterministic"}, {"default"}},
                             {"heads", {"mha", "gqa", "mqa"}, {"mha", "gqa"}},
                             {"mask", {"dense", "causal", "window"}, {"dense", "causal"}},
                             {"length", lengths, usual_lengths}};
  }();
  return all;
}

std::string mask_word(const Cell& cell) {
  return std::string(name(kind_of(cell.mask)));
}

std::string heads_word(const Cell& cell) {
  return cell.shape.kv_heads == cell.shape.heads ? "mha" : cell.shape.kv_heads == 1 ? "mqa" : "gqa";
}

Cell cell_of(const std::array<std::string, 7>& words, Direction direction) {
  const auto& [head_dim, layout, dtype, order, heads, mask, length] = words;
  const std::int64_t channels = head_dim == "d128" ? 128 : 64, query_heads = kQueryChannels / channels,
                     rows = std::stoll(length) * (length.ends_with('k') ? 1024 : 1);
  Cell cell;
  cell.mask = mask == "window" ? kWindow : mask == "causal" ? Mask::kCausal : Mask::kDense;
  cell.shape = {
      kTokens / rows, query_heads, heads == "mha" ? query_heads : heads == "mqa" ? 1 : query_heads / kGroup,
      rows,           rows,        channels};
  cell.direction = direction;
  cell.dtype = dtype == "fp16" ? Dtype::kF16 : Dtype::kBf16;
  cell.deterministic = order == "deterministic";
  cell.packed = layout == "packed";
  return cell;
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

// 1024 is another word for 1k.
std::string spelled(const std::string& word) {
  for (std::int64_t rows = kShortest; rows <= kLongest; rows *= 2) {
    if (word == fmt::format("{}", rows)) return length_word(rows);
  }
  return word;
}

}  // namespace

std::string name(const Cell& cell) {
  std::string text = fmt::format("{} {} {}", mask_word(cell), heads_word(cell), cell.shape.seqlen_q);
  if (cell.shape.head_dim != 64) text += fmt::format(" d{}", cell.shape.head_dim);
  if (cell.dtype != Dtype::kBf16) text += fmt::format(" {}", name(cell.dtype));
  if (cell.packed) text += " packed";
  if (cell.deterministic) text += " deterministic";
  return text;
}

std::int64_t visible_keys(const Cell& cell, std::int64_t row) {
  const Shape& s = cell.shape;
  const std::int64_t stands = row + s.seqlen_k - s.seqlen_q,
                     first = cell.mask.left == kUnlimited
                                 ? 0
                                 : std::max<std::int64_t>(stands - cell.mask.left, 0),
                     end = cell.mask.right == kUnlimited ? s.seqlen_k
                                                         : std::min(stands + cell.mask.right + 1, s.seqlen_k);
  return std::max<std::int64_t>(end - first, 0);
}

double flop(const Cell& cell) {
  const Shape& s = cell.shape;
  double seen = double(s.seqlen_q) * double(s.seqlen_k);
  if (cell.mask == Mask::kCausal) {
    seen /= 2;
  } else if (kind_of(cell.mask) == MaskKind::kWindow) {
    seen = 0;
    for (std::int64_t row = 0; row < s.seqlen_q; ++row) seen += double(visible_keys(cell, row));
  }
  const int products = cell.direction == Direction::kForward ? 2 : 5;
  return 2.0 * products * double(s.batch * s.heads) * seen * double(s.head_dim);
}

std::vector<Cell> chosen_cells(const std::string& words, Direction direction) {
  std::vector<std::vector<std::string>> chosen(kinds().size());
  for (const std::string& part : split(words)) {
    const std::string word = spelled(part);
    bool known = false;
    for (std::size_t i = 0; i < kinds().size(); ++i) {
      const std::vector<std::string>& of_kind = kinds()[i].words;
      if (std::find(of_kind.begin(), of_kind.end(), word) == of_kind.end()) continue;
      known = true;
      chosen[i].push_back(word);
    }
    if (direction == Direction::kForward && word == "deterministic") {
      program::refuse(
          "--cells has the word \"deterministic\"; the suite forward has no such order, for its bits never "
          "vary, and "
          "\"default\" is accepted");
    }
    if (known) continue;
    std::vector<std::string> accepted;
    for (const Kind& kind : kinds())
      accepted.push_back(fmt::format("{} {}", kind.what, fmt::join(kind.words, ", ")));
    program::refuse(fmt::format("--cells has the word \"{}\"; each must be one of these: {}", part,
                                fmt::join(accepted, "; ")));
  }
  // Every choice of one word of each kind, the last kinds turning fastest.
  std::vector<std::array<std::string, 7>> choices(1);
  for (std::size_t i = 0; i < kinds().size(); ++i) {
    std::vector<std::array<std::string, 7>> longer;
    for (const auto& choice : choices) {
      for (const std::string& word : kinds()[i].words) {
        const std::vector<std::string>& open = chosen[i].empty() ? kinds()[i].usual : chosen[i];
        if (std::find(open.begin(), open.end(), word) == open.end()) continue;
        longer.push_back(choice);
        longer.back()[i] = word;
      }
    }
    choices = std::move(longer);
  }
  std::vector<Cell> cells;
  for (const auto& choice : choices) cells.push_back(cell_of(choice, direction));
  return cells;
}

namespace {

std::vector<Cell> all_of(std::initializer_list<const char*> choices) {
  std::vector<Cell> cells;
  for (const char* words : choices) {
    const std::vector<Cell> more = chosen_cells(words);
    cells.insert(cells.end(), more.begin(), more.end());
  }
  return cells;
}

}  // namespace

std::vector<Cell> headline_cells() {
  return all_of({"mha,32k", "gqa,16k", "dense,mha,8k,fp16", "mha,16k,deterministic"});
}

std::vector<Cell> sweep_cells() {
  return all_of({"mha,gqa,mqa,default,deterministic,512,1k,2k,4k,8k,16k,32k",
                 "window,mha,default,deterministic,1k,2k,4k,8k,16k,32k", "mha,fp16,512,1k,2k,4k,8k,16k,32k",
                 "mha,packed,512,1k,2k,4k,8k,16k,32k"});
}

}  // namespace flashback::bench
