// One backward pass through the C API.
#pragma once

#include "attention/sink_tolerance.h"
#include "tests/attention/case.h"

namespace flashback::test {

// The values that came back, packed.
struct Gradients {
  std::vector<float> dq, dk, dv, dsink;

  bool operator==(const Gradients&) const = default;
};

class Call : CallInputs {
 public:
  Call(flashback_device* device, const Case& c, const Question16& question)
      : CallInputs(device, c, question),
        dout_(of_q(4)),
        dq_(of_q(5, gradient_bytes())),
        dk_(of_k(6, gradient_bytes())),
        dv_(of_k(7, gradient_bytes())),
        dlse_(device, lse_bytes()),
        dsink_(device, std::vector<float>(question.inputs.sink.size(), NAN)) {
    dout_.set(to_bits(c.dtype, question.inputs.dout), q_rows_);
    out_.set(out_bits(question), q_rows_);
    set_rows(lse_, question.exact.lse);
    if (c.dlse) set_rows(dlse_, question.inputs.dlse);
    if (c.accumulate) {
      for (auto* gradient : {&dq_, &dk_, &dv_}) {
        std::vector<float> start(gradient->size());
        for (std::size_t i = 0; i < start.size(); ++i) start[i] = start_of(i);
        gradient->set(start);
      }
    }
  }

  // Without workspace.
  flashback_backward_arguments arguments() const {
    const Case& c = case_;
    auto a = common_arguments<flashback_backward_arguments>();
    a.dout = dout_.argument();
    if (c.one_dout_row) a.dout.batch_stride = a.dout.row_stride = a.dout.head_stride = 0;
    if (c.dlse) a.dlse = row_numbers(dlse_);
    a.dsink = dsink_.data();
    a.dq = dq_.argument();
    a.dk = dk_.argument();
    a.dv = dv_.argument();
    a.fp32_gradients = c.fp32_gradients;
    a.accumulate = c.accumulate;
    a.deterministic = c.deterministic;
    a.tensor_memory = c.tensor_memory == TensorMemory::kSplit ? FLASHBACK_SPLIT : FLASHBACK_ALIASED;
    a.signal = c.signal == Signal::kWarp ? FLASHBACK_WARP : FLASHBACK_CTA;
    return a;
  }

  Gradients get() {
    const auto values = [&](DeviceTensor& gradient, const char* what) {
      if (case_.fp32_gradients) return gradient.get<float>(what);
      return from_bits(case_.dtype, gradient.get<std::uint16_t>(what));
    };
    return {values(dq_, "dq"), values(dk_, "dk"), values(dv_, "dv"), dsink_.get("dsink")};
  }

 private:
  std::size_t gradient_bytes() const { return case_.fp32_gradients ? 4 : 2; }
  Bits out_bits(const Question16& question) const {
    const Shape& s = case_.shape;
    Bits bits = to_bits(case_.dtype, stored(question.exact.out, case_.dtype));
    if (!case_.out_of_empty_rows_is_nan) return bits;
    for (std::size_t i = 0; i < bits.size(); ++i) {
      const std::size_t row = i / s.head_dim / s.heads % s.seqlen_q, head = i / s.head_dim % s.heads,
                        batch = i / s.head_dim / s.heads / s.seqlen_q;
      if (std::isinf(question.exact.lse[(batch * s.heads + head) * s.seqlen_q + row])) bits[i] = 0x7fff;
    }
    return bits;
  }

  // lse or dlse.
  template <typename Real>
  void set_rows(Memory& memory, const std::vector<Real>& packed) {
    const std::int64_t rows = case_.shape.seqlen_q, heads = case_.shape.heads;
    for (std::int64_t i = 0; i < case_.batch_q() * heads * rows; ++i) {
      if (!q_rows_[i / rows / heads * rows + i % rows]) continue;
      const float value = std::isinf(packed[i]) ? case_.lse_of_empty_rows : static_cast<float>(packed[i]);
      std::memcpy(memory.host() + 4 * (i / rows * lse_row_ + i % rows), &value, 4);
    }
    memory.upload();
  }

  DeviceTensor dout_, dq_, dk_, dv_;
  Memory dlse_;
  DeviceNumbers<float> dsink_;
};

inline Gradients run_backward(flashback_device* device, const Case& c, const Question16& question) {
  Call call(device, c, question);
  run<flashback_backward_arguments>(
      device, {flashback_backward_workspace, flashback_backward_can_run, flashback_backward},
      call.arguments());
  return call.get();
}

inline void expect_right(const Case& c, const Question16& question, const Gradients& got) {
  const Shape& s = c.shape;
  const Question sequences = reference_question(c);
  const Extent q_extent{c.batch_q(), s.seqlen_q, s.heads, s.head_dim},
      k_extent{c.batch_k(), s.seqlen_k, s.kv_heads, s.head_dim};
  auto expect = [&](const char* what, std::vector<float> values, const std::vector<double>& exact,
                    const std::vector<float>& sixteen, const Extent& extent, const std::vector<Rows>& rows) {
    const std::vector<bool> takes_part = taking_part(extent.batch * extent.rows, rows);
    expect_unused_rows(c, what, values, takes_part);
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (!takes_part[i / static_cast<std::size_t>(extent.heads * extent.channels)])
        values[i] = 0;
      else if (c.accumulate)
        values[i] -= start_of(i);
    }
    const Verdict v = judge(values, exact, sixteen, extent, c.dtype);
    EXPECT_TRUE(v.ok) << what << ": " << v.sentence << " (max_abs " << v.max_abs << ", limit " << v.limit
                      << ", block_ratio " << v.block_ratio << ")";
  };
  expect("dq", got.dq, question.exact.dq, question.sixteen.dq, q_extent, sequences.q_rows);
  expect("dk", got.dk, question.exact.dk, question.sixteen.dk, k_extent, sequences.k_rows);
  expect("dv", got.dv, question.exact.dv, question.sixteen.dv, k_extent, sequences.k_rows);
  if (c.sink) {
    const std::vector<float> lse(question.exact.lse.begin(), question.exact.lse.end());
    const Verdict v =
        judge_sink(got.dsink, sequences, question.inputs, lse, stored(question.exact.out, c.dtype));
    EXPECT_TRUE(v.ok) << "dsink: " << v.sentence;
  }
}

}  // namespace flashback::test
