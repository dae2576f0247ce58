#include "program/lengths.h"

#include <fmt/format.h>

#include <algorithm>

#include "program/failure.h"

namespace flashback::program {
namespace {

using reference::Rows;
using Numbers = std::vector<std::int32_t>;

// All rows that a sequence has.
std::vector<Rows> rows_of(std::int64_t batch, std::int64_t seqlen, const Numbers& offsets) {
  std::vector<Rows> rows(static_cast<std::size_t>(batch));
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (offsets.empty())
      rows[i] = {static_cast<std::int64_t>(i) * seqlen, seqlen};
    else
      rows[i] = {offsets[i], offsets[i + 1] - offsets[i]};
  }
  return rows;
}

void demand_offsets(const std::string& name, const Numbers& offsets, const Shape& shape,
                    std::int64_t seqlen) {
  if (offsets.empty()) return;
  if (static_cast<std::int64_t>(offsets.size()) != shape.batch + 1) {
    refuse(fmt::format("{} has {} numbers; it must have {}, one more than there are sequences", name,
                       offsets.size(), shape.batch + 1));
  }
  if (offsets.front() != 0)
    refuse(fmt::format("{} starts with {}; its first number must be 0", name, offsets.front()));
  for (std::size_t i = 1; i < offsets.size(); ++i) {
    if (offsets[i] >= offsets[i - 1]) continue;
    refuse(fmt::format("{} has {} after {}; its numbers must not descend", name, offsets[i], offsets[i - 1]));
  }
  if (offsets.back() > seqlen)
    refuse(fmt::format("{} ends with {}; there are {} rows", name, offsets.back(), seqlen));
}

void demand_used(const std::string& name, const Numbers& used, const std::vector<Rows>& rows) {
  if (used.empty()) return;
  if (used.size() != rows.size()) {
    refuse(fmt::format("{} has {} numbers; it must have {}, one of each sequence", name, used.size(),
                       rows.size()));
  }
  for (std::size_t i = 0; i < used.size(); ++i) {
    if (used[i] >= 0 && used[i] <= rows[i].count) continue;
    refuse(fmt::format("{} gives sequence {} {} rows; it has {}", name, i, used[i], rows[i].count));
  }
}

}  // namespace

Problem with_lengths(Problem problem, const Lengths& lengths) {
  constexpr Address kPresent = 16;
  const auto side = [&](const Numbers& offsets, const Numbers& used, std::int64_t* seqlen,
                        Sequences* sequences) {
    if (!offsets.empty()) {
      problem.shape.batch = static_cast<std::int64_t>(offsets.size()) - 1;
      *seqlen = std::max<std::int64_t>(*seqlen, offsets.back());
      sequences->cu_seqlens = kPresent;
    }
    if (!used.empty()) sequences->seqused = kPresent;
  };
  side(lengths.cu_seqlens_q, lengths.seqused_q, &problem.shape.seqlen_q, &problem.q_sequences);
  side(lengths.cu_seqlens_k, lengths.seqused_k, &problem.shape.seqlen_k, &problem.k_sequences);
  return problem;
}

void demand_lengths(const Lengths& lengths, const Shape& shape, const std::array<std::string, 4>& names) {
  demand_offsets(names[0], lengths.cu_seqlens_q, shape, shape.seqlen_q);
  demand_offsets(names[1], lengths.cu_seqlens_k, shape, shape.seqlen_k);
  demand_used(names[2], lengths.seqused_q, rows_of(shape.batch, shape.seqlen_q, lengths.cu_seqlens_q));
  demand_used(names[3], lengths.seqused_k, rows_of(shape.batch, shape.seqlen_k, lengths.cu_seqlens_k));
}

reference::Question question_of(const Problem& problem, const Lengths& lengths) {
  const Shape& s = problem.shape;
  const auto taking_part = [&](std::int64_t seqlen, const Numbers& offsets, const Numbers& used) {
    std::vector<Rows> rows = rows_of(s.batch, seqlen, offsets);
    for (std::size_t i = 0; i < used.size(); ++i) rows[i].count = used[i];
    return rows;
  };
  return {.shape = s,
          .mask = problem.mask,
          .scale = effective_scale(problem),
          .q_rows = taking_part(s.seqlen_q, lengths.cu_seqlens_q, lengths.seqused_q),
          .k_rows = taking_part(s.seqlen_k, lengths.cu_seqlens_k, lengths.seqused_k),
          .q_packed = problem.q_sequences.packed(),
          .k_packed = problem.k_sequences.packed()};
}

}  // namespace flashback::program
