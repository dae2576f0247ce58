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

// The values that came back, packed.
struct Gradients {
  std::vector<float> dq, dk, dv, dsink;

  bool operator==(const Gradients&) const = default;
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

// A tensor on the device, its elements spread over its memory as the layout says.
class DeviceTensor {
 public:
  DeviceTensor(flashback_device* device, Layout layout, int which, std::int64_t batch, std::int64_t rows,
               std::int64_t heads, std::int64_t channels, std::size_t element_bytes = 2)
      : batch_(batch),
        rows_(rows),
        heads_(heads),
        channels_(channels),
        bytes_(element_bytes),
        strides_(strides(layout, which)),
        memory_(device, bytes_ * static_cast<std::size_t>(last() + 1)) {
    memory_.upload();
  }

  std::size_t size() const { return static_cast<std::size_t>(batch_ * rows_ * heads_ * channels_); }

  flashback_tensor argument() const {
    flashback_tensor tensor = strides_;
    tensor.data = memory_.data();
    // What the library must ignore.
    if (batch_ == 1) tensor.batch_stride = -3;
    if (rows_ == 1) tensor.row_stride = 1;
    if (heads_ == 1) tensor.head_stride = 7;
    return tensor;
  }

  // `taking_part`, where it is not empty, says of each row of all batches whether it is set.
  template <typename Element>
  void set(const std::vector<Element>& packed, const std::vector<bool>& taking_part = {}) {
    for_each([&](std::size_t i, std::int64_t offset) {
      if (taking_part.empty() || taking_part[i / static_cast<std::size_t>(heads_ * channels_)])
        std::memcpy(memory_.host() + bytes_ * offset, &packed[i], bytes_);
    });
    memory_.upload();
  }

  // Reads the elements, and expects every byte between and around them as it was.
  template <typename Element>
  std::vector<Element> get(const char* what) {
    memory_.download();
    memory_.expect_margins_untouched(what);
    std::vector<Element> packed(static_cast<std::size_t>(batch_ * rows_ * heads_ * channels_));
    std::vector<bool> element(bytes_ * static_cast<std::size_t>(1 + last()), false);
    for_each([&](std::size_t i, std::int64_t offset) {
      std::memcpy(&packed[i], memory_.host() + bytes_ * offset, bytes_);
      for (std::size_t byte = 0; byte < bytes_; ++byte) element[bytes_ * offset + byte] = true;
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
    if (batch_ * rows_ == 0) return -1;
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
  std::size_t bytes_;
  flashback_tensor strides_;
  Memory memory_;
};

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

// int32 or fp32 numbers on the device; none: null.
template <typename Number>
class DeviceNumbers {
 public:
  DeviceNumbers(flashback_device* device, const std::vector<Number>& numbers)
      : memory_(device, 4 * numbers.size()), size_(numbers.size()) {
    if (size_ > 0) std::memcpy(memory_.host(), numbers.data(), 4 * size_);
    memory_.upload();
  }
  Number* data() const { return size_ > 0 ? static_cast<Number*>(memory_.data()) : nullptr; }
  std::vector<Number> get(const char* what) {
    memory_.download();
    memory_.expect_margins_untouched(what);
    std::vector<Number> numbers(size_);
    std::memcpy(numbers.data(), memory_.host(), 4 * size_);
    return numbers;
  }

 private:
  Memory memory_;
  std::size_t size_;
};

// The base that accumulated gradients start from, and what unused rows of left-alone fp32 gradients hold.
inline float start_of(std::size_t i) {
  return static_cast<float>(static_cast<int>(i % 7) - 3);
}

// Everything a call is given, in device memory.
class Call {
 public:
  Call(flashback_device* device, const Case& c, const Question16& question)
      : case_(c),
        device_(device),
        q_(of_q(0)),
        k_(of_k(1)),
        v_(of_k(2)),
        out_(of_q(3)),
        dout_(of_q(4)),
        dq_(of_q(5, gradient_bytes())),
        dk_(of_k(6, gradient_bytes())),
        dv_(of_k(7, gradient_bytes())),
        lse_row_(c.shape.seqlen_q + (c.layout == Layout::kGaps ? 3 : 0)),
        lse_(device, 4 * static_cast<std::size_t>(c.batch_q() * c.shape.heads * lse_row_)),
        dlse_(device, 4 * static_cast<std::size_t>(c.batch_q() * c.shape.heads * lse_row_)),
        sink_(device, question.inputs.sink),
        dsink_(device, std::vector<float>(question.inputs.sink.size(), NAN)),
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
    dout_.set(to_bits(c.dtype, question.inputs.dout), q_rows);
    out_.set(out_bits(question), q_rows);
    set_rows(lse_, question.exact.lse, q_rows);
    if (c.dlse) set_rows(dlse_, question.inputs.dlse, q_rows);
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
    const Shape& s = c.shape;
    flashback_backward_arguments a{};
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
    a.dout = dout_.argument();
    if (c.one_dout_row) a.dout.batch_stride = a.dout.row_stride = a.dout.head_stride = 0;
    a.lse = {static_cast<float*>(lse_.data()), s.heads * lse_row_, lse_row_};
    if (c.dlse) a.dlse = {static_cast<float*>(dlse_.data()), s.heads * lse_row_, lse_row_};
    a.sink = sink_.data();
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

  // lse or dlse, (batch, head, row).
  template <typename Real>
  void set_rows(Memory& memory, const std::vector<Real>& packed, const std::vector<bool>& q_rows) {
    const std::int64_t rows = case_.shape.seqlen_q, heads = case_.shape.heads;
    for (std::int64_t i = 0; i < case_.batch_q() * heads * rows; ++i) {
      if (!q_rows[i / rows / heads * rows + i % rows]) continue;
      const float value = std::isinf(packed[i]) ? case_.lse_of_empty_rows : static_cast<float>(packed[i]);
      std::memcpy(memory.host() + 4 * (i / rows * lse_row_ + i % rows), &value, 4);
    }
    memory.upload();
  }

  const Case& case_;
  flashback_device* device_;
  DeviceTensor q_, k_, v_, out_, dout_, dq_, dk_, dv_;
  std::int64_t lse_row_;
  Memory lse_, dlse_;
  DeviceNumbers<float> sink_, dsink_;
  DeviceNumbers<std::int32_t> cu_q_, cu_k_, used_q_, used_k_;
};

inline Gradients run_backward(flashback_device* device, const Case& c, const Question16& question) {
  Call call(device, c, question);
  flashback_backward_arguments a = call.arguments();
  flashback_message message;
  check(flashback_backward_workspace(device, &a, &a.workspace_bytes, &message), message);
  Memory workspace(device, a.workspace_bytes);
  workspace.upload();
  a.workspace = workspace.data();

  check(flashback_backward_can_run(device, &a, &message), message);
  check(flashback_backward(device, &a, &message), message);
  check(flashback_wait(device, nullptr, &message), message);
  workspace.download();
  workspace.expect_margins_untouched("the workspace");
  return call.get();
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
    const Verdict v =
        judge(got.dsink, question.exact.dsink, question.sixteen.dsink, {1, 1, 1, s.heads}, c.dtype);
    EXPECT_TRUE(v.ok) << "dsink: " << v.sentence;
  }
}

}  // namespace flashback::test
