// A pass through the C API, forward or backward: what it is asked, what is right, and what both passes are
// given. Outputs and workspace are poisoned as all device memory is.
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <string>
#include <vector>

#include "attention/reference/reference.h"
#include "attention/reference/rounding.h"
#include "attention/tolerance.h"
#include "tests/attention/device_memory.h"

namespace flashback::test {

using namespace reference;
using Bits = std::vector<std::uint16_t>;

struct Case {
  Shape shape;  // of packed sequences, seqlen is the number of rows in memory
  Mask mask = {};
  TensorMemory tensor_memory = TensorMemory::kSplit;
  Signal signal = Signal::kWarp;
  Data data = Data::kNormal;
  Layout layout = Layout::kPacked;
  float scale = 0.125f;
  float lse_of_empty_rows = -INFINITY;
  bool out_of_empty_rows_is_nan = false;
  bool one_dout_row = false;  // all strides of dout are 0
  Dtype dtype = Dtype::kBf16;
  // What the device is told of the sequences; empty: nothing. Rows that take no part hold NaN.
  std::vector<std::int32_t> cu_q = {}, cu_k = {}, used_q = {}, used_k = {};
  bool leave_unused_rows = false;
  bool dlse = false, sink = false;
  bool fp32_gradients = false, accumulate = false;  // added to numbers that are there
  bool deterministic = false;

  bool packed_q() const { return !cu_q.empty(); }
  bool packed_k() const { return !cu_k.empty(); }
  std::int64_t batch_q() const { return packed_q() ? 1 : shape.batch; }  // of the tensors
  std::int64_t batch_k() const { return packed_k() ? 1 : shape.batch; }
};

inline std::string describe(const Case& c) {
  const Shape& s = c.shape;
  return fmt::format(
      "batch {}, heads {}, kv_heads {}, seqlen_q {}, seqlen_k {}, head_dim {}, {}, {}, {}, {}, {}", s.batch,
      s.heads, s.kv_heads, s.seqlen_q, s.seqlen_k, s.head_dim, name(c.mask), name(c.data), name(c.dtype),
      name(c.tensor_memory), name(c.signal));
}

// What the pass is asked and what is right.
struct Question16 {
  Inputs inputs;
  Answer<double> exact;
  Answer<float> sixteen;
};

inline std::vector<Rows> rows_of(std::int64_t batch, std::int64_t seqlen, const std::vector<std::int32_t>& cu,
                                 const std::vector<std::int32_t>& used) {
  std::vector<Rows> rows;
  for (std::int64_t b = 0; b < batch; ++b) {
    rows.push_back(cu.empty() ? Rows{b * seqlen, seqlen} : Rows{cu[b], cu[b + 1] - cu[b]});
    if (!used.empty()) rows.back().count = used[b];
  }
  return rows;
}

// Of each row in memory.
inline std::vector<bool> taking_part(std::int64_t memory_rows, const std::vector<Rows>& sequences) {
  std::vector<bool> takes_part(static_cast<std::size_t>(memory_rows), false);
  for (const Rows& rows : sequences) {
    for (std::int64_t i = 0; i < rows.count; ++i) takes_part[rows.first + i] = true;
  }
  return takes_part;
}

inline Question reference_question(const Case& c) {
  const Shape& s = c.shape;
  return {.shape = s,
          .mask = c.mask,
          .scale = c.scale,
          .q_rows = rows_of(s.batch, s.seqlen_q, c.cu_q, c.used_q),
          .k_rows = rows_of(s.batch, s.seqlen_k, c.cu_k, c.used_k),
          .q_packed = c.packed_q(),
          .k_packed = c.packed_k()};
}

inline Question16 question_of(const Case& c, std::uint64_t seed) {
  const Question question = reference_question(c);
  Shape of_q = c.shape, of_k = c.shape;
  of_q.batch = c.batch_q();
  of_k.batch = c.batch_k();
  Question16 q{make_inputs(c.data, of_q, c.dtype, c.scale, seed), {}, {}};
  if (of_q.batch != of_k.batch) {
    Inputs keys = make_inputs(c.data, of_k, c.dtype, c.scale, seed);
    q.inputs.k = std::move(keys.k);
    q.inputs.v = std::move(keys.v);
  }
  if (c.dlse) q.inputs.dlse = make_dlse(of_q.batch * of_q.heads * of_q.seqlen_q, seed);
  if (c.sink) q.inputs.sink = make_sink(of_q.heads, seed);
  q.exact = reference::exact(question, q.inputs, 1);
  q.sixteen = reference::sixteen_bit(question, q.inputs, stored(q.exact.out, c.dtype), c.dtype, 1);
  return q;
}

// Of a call what both passes are given, in device memory.
class CallInputs {
 protected:
  CallInputs(flashback_device* device, const Case& c, const Question16& question)
      : case_(c),
        device_(device),
        q_(of_q(0)),
        k_(of_k(1)),
        v_(of_k(2)),
        out_(of_q(3)),
        lse_row_(c.shape.seqlen_q + (c.layout == Layout::kGaps ? 3 : 0)),
        lse_(device, lse_bytes()),
        sink_(device, question.inputs.sink),
        cu_q_(device, c.cu_q),
        cu_k_(device, c.cu_k),
        used_q_(device, c.used_q),
        used_k_(device, c.used_k) {
    const Shape& s = c.shape;
    const Question sequences = reference_question(c);
    q_rows_ = taking_part(c.batch_q() * s.seqlen_q, sequences.q_rows);
    const std::vector<bool> k_rows = taking_part(c.batch_k() * s.seqlen_k, sequences.k_rows);
    q_.set(to_bits(c.dtype, question.inputs.q), q_rows_);
    k_.set(to_bits(c.dtype, question.inputs.k), k_rows);
    v_.set(to_bits(c.dtype, question.inputs.v), k_rows);
    lse_.upload();
  }

  // Without workspace.
  template <class Arguments>
  Arguments common_arguments() const {
    const Case& c = case_;
    const Shape& s = c.shape;
    Arguments a{};
    a.size = sizeof a;
    a.dtype = c.dtype == Dtype::kBf16 ? FLASHBACK_BF16 : FLASHBACK_F16;
    a.batch = s.batch;
    a.heads = s.heads;
    a.kv_heads = s.kv_heads;
    a.seqlen_q = s.seqlen_q;
    a.seqlen_k = s.seqlen_k;
    a.head_dim = s.head_dim;
    a.causal = c.mask == Mask::kCausal;
    if (kind_of(c.mask) == MaskKind::kWindow) a.window = {1, c.mask.left, c.mask.right};
    a.scale = c.scale;
    a.cu_seqlens_q = cu_q_.data();
    a.cu_seqlens_k = cu_k_.data();
    a.seqused_q = used_q_.data();
    a.seqused_k = used_k_.data();
    a.leave_unused_rows = c.leave_unused_rows;
    a.q = q_.argument();
    a.k = k_.argument();
    a.v = v_.argument();
    a.out = out_.argument();
    a.lse = row_numbers(lse_);
    a.sink = sink_.data();
    return a;
  }

  // Numbers of rows, (batch, head, row).
  std::size_t lse_bytes() const {
    return 4 * static_cast<std::size_t>(case_.batch_q() * case_.shape.heads * lse_row_);
  }
  flashback_lse row_numbers(const Memory& memory) const {
    return {static_cast<float*>(memory.data()), case_.shape.heads * lse_row_, lse_row_};
  }

  DeviceTensor of_q(int which, std::size_t bytes = 2) const {
    const Shape& s = case_.shape;
    return DeviceTensor(device_, case_.layout, which, case_.batch_q(), s.seqlen_q, s.heads, s.head_dim,
                        bytes);
  }
  DeviceTensor of_k(int which, std::size_t bytes = 2) const {
    const Shape& s = case_.shape;
    return DeviceTensor(device_, case_.layout, which, case_.batch_k(), s.seqlen_k, s.kv_heads, s.head_dim,
                        bytes);
  }

  const Case& case_;
  flashback_device* device_;
  DeviceTensor q_, k_, v_, out_;
  std::vector<bool> q_rows_;  // that take part, of those in memory
  std::int64_t lse_row_;
  Memory lse_;
  DeviceNumbers<float> sink_;
  DeviceNumbers<std::int32_t> cu_q_, cu_k_, used_q_, used_k_;
};

// The functions of a pass in the C API.
template <class Arguments>
struct Pass {
  flashback_status (*workspace)(flashback_device*, const Arguments*, std::size_t*, flashback_message*);
  flashback_status (*can_run)(flashback_device*, const Arguments*, flashback_message*);
  flashback_status (*run)(flashback_device*, const Arguments*, flashback_message*);
};

template <class Arguments>
void run(flashback_device* device, const Pass<Arguments>& pass, Arguments arguments) {
  flashback_message message;
  check(pass.workspace(device, &arguments, &arguments.workspace_bytes, &message), message);
  Memory workspace(device, arguments.workspace_bytes);
  workspace.upload();
  arguments.workspace = workspace.data();

  check(pass.can_run(device, &arguments, &message), message);
  check(pass.run(device, &arguments, &message), message);
  check(flashback_wait(device, nullptr, &message), message);
  workspace.download();
  workspace.expect_margins_untouched("the workspace");
}

// The base that accumulated gradients start from, and what unused rows of left-alone fp32 gradients hold.
inline float start_of(std::size_t i) {
  return static_cast<float>(static_cast<int>(i % 7) - 3);
}

// Rows that take no part are zero, or as they were.
inline void expect_unused_rows(const Case& c, const char* what, const std::vector<float>& got,
                               const std::vector<bool>& takes_part) {
  if (takes_part.empty()) return;
  const std::size_t row = got.size() / takes_part.size();
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (takes_part[i / row]) continue;
    if (c.accumulate) {
      wrong += got[i] != start_of(i);
    } else if (c.leave_unused_rows) {
      wrong += !std::isnan(got[i]);
    } else {
      wrong += got[i] != 0;
    }
  }
  EXPECT_EQ(wrong, 0u) << "elements of rows of " << what << " that take no part";
}

}  // namespace flashback::test
