// One backward pass through the C API with everything around it poisoned: gaps between rows, margins around
// tensors, outputs and workspace hold 0xff, a NaN in bf16 and fp32.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "attention/reference/reference.h"
#include "attention/reference/rounding.h"
#include "attention/tolerance.h"
#include "flashback/flashback.h"

namespace flashback::test {

using namespace reference;
using Bits = std::vector<std::uint16_t>;

// Where the elements of a tensor lie in its memory.
enum class Layout {
  kPacked,     // (batch, row, head, channel)
  kHeadMajor,  // (batch, head, row, channel)
  kGaps,       // packed, with room left after channels, heads and rows, different for every tensor
};

struct Case {
  Shape shape;
  Mask mask;
  TensorMemory tensor_memory = TensorMemory::kSplit;
  Signal signal = Signal::kWarp;
  Data data = Data::kNormal;
  Layout layout = Layout::kPacked;
  float scale = 0.125f;
  float lse_of_empty_rows = -INFINITY;
  bool out_of_empty_rows_is_nan = false;
  bool one_dout_row = false;  // all strides of dout are 0
};

struct Gradients {
  Bits dq, dk, dv;  // packed
};

inline void check(flashback_status status, const flashback_message& message) {
  ASSERT_EQ(status, FLASHBACK_OK) << message.text;
}

// Device memory that starts as 0xff, with margins on both sides that nothing may write.
class Memory {
 public:
  Memory(flashback_device* device, std::size_t bytes) : device_(device), image_(bytes + 2 * kMargin, 0xff) {
    check(flashback_allocate(device_, image_.size(), &base_, &message_), message_);
  }
  ~Memory() { flashback_release(device_, base_); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  void* data() const { return static_cast<std::byte*>(base_) + kMargin; }
  std::uint8_t* host() { return image_.data() + kMargin; }
  void upload() {
    check(flashback_upload(device_, base_, image_.data(), image_.size(), nullptr, &message_), message_);
  }
  void download() {
    check(flashback_download(device_, image_.data(), base_, image_.size(), nullptr, &message_), message_);
  }
  void expect_margins_untouched(const char* what) const {
    const auto untouched = [](std::uint8_t byte) { return byte == 0xff; };
    EXPECT_TRUE(std::all_of(image_.begin(), image_.begin() + kMargin, untouched)) << "bytes before " << what;
    EXPECT_TRUE(std::all_of(image_.end() - kMargin, image_.end(), untouched)) << "bytes after " << what;
  }

 private:
  static constexpr std::size_t kMargin = 1024;
  flashback_device* device_;
  flashback_message message_;
  std::vector<std::uint8_t> image_;
  void* base_ = nullptr;
};

// A 16-bit tensor on the device, its elements spread over its memory as the layout says.
class DeviceTensor {
 public:
  DeviceTensor(flashback_device* device, Layout layout, int which, std::int64_t batch, std::int64_t rows,
               std::int64_t heads, std::int64_t channels)
      : batch_(batch),
        rows_(rows),
        heads_(heads),
        channels_(channels),
        strides_(strides(layout, which)),
        memory_(device, 2 * ((batch - 1) * strides_.batch_stride + (rows - 1) * strides_.row_stride +
                             (heads - 1) * strides_.head_stride + channels)) {
    memory_.upload();
  }

  flashback_tensor argument() const {
    flashback_tensor tensor = strides_;
    tensor.data = memory_.data();
    // What the library must ignore.
    if (batch_ == 1) tensor.batch_stride = -3;
    if (rows_ == 1) tensor.row_stride = 1;
    if (heads_ == 1) tensor.head_stride = 7;
    return tensor;
  }

  void set(const Bits& packed) {
    for_each(
        [&](std::size_t i, std::int64_t offset) { std::memcpy(memory_.host() + 2 * offset, &packed[i], 2); });
    memory_.upload();
  }

  // Reads the elements, and expects every byte between and around them as it was.
  Bits get(const char* what) {
    memory_.download();
    memory_.expect_margins_untouched(what);
    Bits packed(batch_ * rows_ * heads_ * channels_);
    std::vector<bool> element(2 * (1 + last()), false);
    for_each([&](std::size_t i, std::int64_t offset) {
      std::memcpy(&packed[i], memory_.host() + 2 * offset, 2);
      element[2 * offset] = element[2 * offset + 1] = true;
    });
    std::size_t touched = 0;
    for (std::size_t i = 0; i < element.size(); ++i) touched += !element[i] && memory_.host()[i] != 0xff;
    EXPECT_EQ(touched, 0u) << "bytes written between the rows of " << what;
    return packed;
  }

 private:
  flashback_tensor strides(Layout layout, int which) const {
    const std::int64_t gap = layout == Layout::kGaps ? 8 * (1 + which) : 0;
    if (layout == Layout::kHeadMajor)
      return {nullptr, heads_ * rows_ * channels_, channels_, rows_ * channels_};
    const std::int64_t head = channels_ + gap, row = heads_ * head + 2 * gap;
    return {nullptr, rows_ * row + 3 * gap, row, head};
  }
  std::int64_t last() const {
    return (batch_ - 1) * strides_.batch_stride + (rows_ - 1) * strides_.row_stride +
           (heads_ - 1) * strides_.head_stride + channels_ - 1;
  }
  template <typename Visit>
  void for_each(Visit visit) const {
    std::size_t i = 0;
    for (std::int64_t b = 0; b < batch_; ++b) {
      for (std::int64_t r = 0; r < rows_; ++r) {
        for (std::int64_t h = 0; h < heads_; ++h) {
          for (std::int64_t c = 0; c < channels_; ++c) {
            visit(i++, b * strides_.batch_stride + r * strides_.row_stride + h * strides_.head_stride + c);
          }
        }
      }
    }
  }

  std::int64_t batch_, rows_, heads_, channels_;
  flashback_tensor strides_;
  Memory memory_;
};

// What the pass is asked and what is right.
struct Question16 {
  Inputs inputs;
  Answer<double> exact;
  Answer<float> sixteen;
};

inline Question16 question_of(const Case& c, std::uint64_t seed) {
  const Question question{.shape = c.shape, .mask = c.mask, .scale = c.scale};
  Question16 q{make_inputs(c.data, c.shape, Dtype::kBf16, c.scale, seed), {}, {}};
  q.exact = reference::exact(question, q.inputs, 1);
  q.sixteen = reference::sixteen_bit(question, q.inputs, stored(q.exact.out, Dtype::kBf16), Dtype::kBf16, 1);
  return q;
}

inline Gradients run_backward(flashback_device* device, const Case& c, const Question16& question) {
  const Shape& s = c.shape;
  int which = 0;
  auto of_q = [&] {
    return DeviceTensor(device, c.layout, which++, s.batch, s.seqlen_q, s.heads, s.head_dim);
  };
  auto of_k = [&] {
    return DeviceTensor(device, c.layout, which++, s.batch, s.seqlen_k, s.kv_heads, s.head_dim);
  };
  DeviceTensor q = of_q(), k = of_k(), v = of_k(), out = of_q(), dout = of_q(), dq = of_q(), dk = of_k(),
               dv = of_k();
  q.set(to_bits(Dtype::kBf16, question.inputs.q));
  k.set(to_bits(Dtype::kBf16, question.inputs.k));
  v.set(to_bits(Dtype::kBf16, question.inputs.v));
  dout.set(to_bits(Dtype::kBf16, question.inputs.dout));
  Bits out_bits = to_bits(Dtype::kBf16, stored(question.exact.out, Dtype::kBf16));
  if (c.out_of_empty_rows_is_nan) {
    for (std::size_t i = 0; i < out_bits.size(); ++i) {
      const std::size_t row = i / s.head_dim / s.heads % s.seqlen_q, head = i / s.head_dim % s.heads,
                        batch = i / s.head_dim / s.heads / s.seqlen_q;
      if (std::isinf(question.exact.lse[(batch * s.heads + head) * s.seqlen_q + row])) out_bits[i] = 0x7fff;
    }
  }
  out.set(out_bits);

  const std::int64_t lse_row = s.seqlen_q + (c.layout == Layout::kGaps ? 3 : 0);
  Memory lse(device, 4 * s.batch * s.heads * lse_row);
  for (std::int64_t row = 0; row < s.batch * s.heads * s.seqlen_q; ++row) {
    const double exact = question.exact.lse[row];
    const float value = std::isinf(exact) ? c.lse_of_empty_rows : static_cast<float>(exact);
    std::memcpy(lse.host() + 4 * (row / s.seqlen_q * lse_row + row % s.seqlen_q), &value, 4);
  }
  lse.upload();

  flashback_message message;
  flashback_backward_arguments a{};
  a.size = sizeof a;
  a.dtype = FLASHBACK_BF16;
  a.batch = s.batch;
  a.heads = s.heads;
  a.kv_heads = s.kv_heads;
  a.seqlen_q = s.seqlen_q;
  a.seqlen_k = s.seqlen_k;
  a.head_dim = s.head_dim;
  a.causal = c.mask == Mask::kCausal;
  a.scale = c.scale;
  a.q = q.argument();
  a.k = k.argument();
  a.v = v.argument();
  a.out = out.argument();
  a.dout = dout.argument();
  if (c.one_dout_row) a.dout.batch_stride = a.dout.row_stride = a.dout.head_stride = 0;
  a.lse = {static_cast<float*>(lse.data()), s.heads * lse_row, lse_row};
  a.dq = dq.argument();
  a.dk = dk.argument();
  a.dv = dv.argument();
  a.tensor_memory = c.tensor_memory == TensorMemory::kSplit ? FLASHBACK_SPLIT : FLASHBACK_ALIASED;
  a.signal = c.signal == Signal::kWarp ? FLASHBACK_WARP : FLASHBACK_CTA;
  check(flashback_backward_workspace(device, &a, &a.workspace_bytes, &message), message);
  Memory workspace(device, a.workspace_bytes);
  workspace.upload();
  a.workspace = workspace.data();

  check(flashback_backward_can_run(device, &a, &message), message);
  check(flashback_backward(device, &a, &message), message);
  check(flashback_wait(device, nullptr, &message), message);
  workspace.download();
  workspace.expect_margins_untouched("the workspace");
  return {dq.get("dq"), dk.get("dk"), dv.get("dv")};
}

inline void expect_right(const Case& c, const Question16& question, const Gradients& got) {
  const Shape& s = c.shape;
  const Extent q_extent{s.batch, s.seqlen_q, s.heads, s.head_dim},
      k_extent{s.batch, s.seqlen_k, s.kv_heads, s.head_dim};
  auto expect = [&](const char* what, const Bits& bits, const std::vector<double>& exact,
                    const std::vector<float>& sixteen, const Extent& extent) {
    const Verdict v = judge(from_bits(Dtype::kBf16, bits), exact, sixteen, extent, Dtype::kBf16);
    EXPECT_TRUE(v.ok) << what << ": " << v.sentence;
  };
  expect("dq", got.dq, question.exact.dq, question.sixteen.dq, q_extent);
  expect("dk", got.dk, question.exact.dk, question.sixteen.dk, k_extent);
  expect("dv", got.dv, question.exact.dv, question.sixteen.dv, k_extent);
}

}  // namespace flashback::test
