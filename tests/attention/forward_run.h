// One forward pass through the C API, poisoned as the backward pass is.
#pragma once

#include "tests/attention/backward_run.h"

namespace flashback::test {

// The values that came back, packed.
struct Outputs {
  std::vector<float> out, lse;
};

// Everything a call is given, in device memory. Of the case, what the forward pass knows.
class ForwardCall {
 public:
  ForwardCall(flashback_device* device, const Case& c, const Question16& question)
      : case_(c),
        device_(device),
        q_(tensor(0, c.batch_q(), c.shape.seqlen_q, c.shape.heads)),
        k_(tensor(1, c.batch_k(), c.shape.seqlen_k, c.shape.kv_heads)),
        v_(tensor(2, c.batch_k(), c.shape.seqlen_k, c.shape.kv_heads)),
        out_(tensor(3, c.batch_q(), c.shape.seqlen_q, c.shape.heads)),
        lse_row_(c.shape.seqlen_q + (c.layout == Layout::kGaps ? 3 : 0)),
        lse_(device, 4 * static_cast<std::size_t>(c.batch_q() * c.shape.heads * lse_row_)),
        sink_(device, question.inputs.sink),
        cu_q_(device, c.cu_q),
        cu_k_(device, c.cu_k),
        used_q_(device, c.used_q),
        used_k_(device, c.used_k) {
    const Shape& s = c.shape;
    const Question sequences = reference_question(c);
    const std::vector<bool> q_rows = taking_part(c.batch_q() * s.seqlen_q, sequences.q_rows),
                            k_rows = taking_part(c.batch_k() * s.seqlen_k, sequences.k_rows);
    q_.set(to_bits(c.dtype, question.inputs.q), q_rows);
    k_.set(to_bits(c.dtype, question.inputs.k), k_rows);
    v_.set(to_bits(c.dtype, question.inputs.v), k_rows);
    lse_.upload();
  }

  // Without workspace.
  flashback_forward_arguments arguments() const {
    const Case& c = case_;
    const Shape& s = c.shape;
    flashback_forward_arguments a{};
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
    a.sink = sink_.data();
    a.out = out_.argument();
    a.lse = {static_cast<float*>(lse_.data()), s.heads * lse_row_, lse_row_};
    return a;
  }

  Outputs get() {
    lse_.download();
    lse_.expect_margins_untouched("lse");
    const std::int64_t rows = case_.shape.seqlen_q;
    std::vector<float> lse(static_cast<std::size_t>(case_.batch_q() * case_.shape.heads * rows));
    for (std::size_t i = 0; i < lse.size(); ++i)
      std::memcpy(&lse[i], lse_.host() + 4 * (i / rows * lse_row_ + i % rows), 4);
    return {from_bits(case_.dtype, out_.get<std::uint16_t>("out")), lse};
  }

 private:
  DeviceTensor tensor(int which, std::int64_t batch, std::int64_t rows, std::int64_t heads) const {
    return DeviceTensor(device_, case_.layout, which, batch, rows, heads, case_.shape.head_dim);
  }

  const Case& case_;
  flashback_device* device_;
  DeviceTensor q_, k_, v_, out_;
  std::int64_t lse_row_;
  Memory lse_;
  DeviceNumbers<float> sink_;
  DeviceNumbers<std::int32_t> cu_q_, cu_k_, used_q_, used_k_;
};

inline Outputs run_forward(flashback_device* device, const Case& c, const Question16& question,
                           bool with_lse = true) {
  ForwardCall call(device, c, question);
  flashback_forward_arguments a = call.arguments();
  if (!with_lse) a.lse.data = nullptr;
  flashback_message message;
  check(flashback_forward_workspace(device, &a, &a.workspace_bytes, &message), message);
  Memory workspace(device, a.workspace_bytes);
  workspace.upload();
  a.workspace = workspace.data();

  check(flashback_forward_can_run(device, &a, &message), message);
  check(flashback_forward(device, &a, &message), message);
  check(flashback_wait(device, nullptr, &message), message);
  workspace.download();
  workspace.expect_margins_untouched("the workspace");
  return call.get();
}

inline void expect_right(const Case& c, const Question16& question, const Outputs& got) {
  const Shape& s = c.shape;
  const std::vector<bool> takes_part = taking_part(c.batch_q() * s.seqlen_q, reference_question(c).q_rows);
  expect_unused_rows(c, "out", got.out, takes_part);
  std::vector<float> out = got.out;
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (!takes_part[i / static_cast<std::size_t>(s.heads * s.head_dim)]) out[i] = 0;
  }
  const Verdict v = judge(out, question.exact.out, question.sixteen.out,
                          {c.batch_q(), s.seqlen_q, s.heads, s.head_dim}, c.dtype);
  EXPECT_TRUE(v.ok) << "out: " << v.sentence << " (max_abs " << v.max_abs << ", limit " << v.limit
                    << ", block_ratio " << v.block_ratio << ")";

  const double limit = lse_limit(question.inputs.q, question.inputs.k, s.head_dim, c.scale);
  for (std::size_t i = 0; i < got.lse.size(); ++i) {
    const std::size_t row = i % s.seqlen_q, batch = i / s.seqlen_q / s.heads;
    const double exact = question.exact.lse[i];
    const float value = got.lse[i];
    bool right = std::fabs(value - exact) <= limit;
    if (!takes_part[batch * s.seqlen_q + row])
      right = c.leave_unused_rows ? std::isnan(value) : value == -INFINITY;
    else if (std::isinf(exact))
      right = value == exact;
    ASSERT_TRUE(right) << "lse " << i << " is " << value << ", exact " << exact << ", limit " << limit;
  }
}

}  // namespace flashback::test
