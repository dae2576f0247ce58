// What only a GPU can get wrong: a thousand repeats, under load, from many threads and streams, and elements
// more than 2^31 apart. Skipped where there is no Hopper GPU.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <memory>
#include <thread>
#include <vector>

#include "attention/device_handle.h"
#include "tests/attention/backward_run.h"

namespace flashback::test {
namespace {

class OnHopper : public testing::Test {
 protected:
  void SetUp() override {
    flashback_message message;
    if (flashback_device_cuda(0, &device_, &message) != FLASHBACK_OK) GTEST_SKIP() << message.text;
  }
  void TearDown() override { flashback_device_close(device_); }

  Workbench& workbench() { return *device_->workbench; }
  flashback_device* device_ = nullptr;
};

// Device memory without a copy on the host.
class Bytes {
 public:
  Bytes(flashback_device* device, std::size_t size) : device_(device), size_(size) {
    check(flashback_allocate(device, size, &data_, &message_), message_);
  }
  ~Bytes() { flashback_release(device_, data_); }
  Bytes(const Bytes&) = delete;
  Bytes& operator=(const Bytes&) = delete;

  void* data() const { return data_; }
  std::size_t size() const { return size_; }
  void fill(std::uint32_t word, Stream stream) {
    ASSERT_TRUE(device_->workbench->fill(std::bit_cast<Address>(data_), word, size_ / 4, stream).ok());
  }

 private:
  flashback_device* device_;
  std::size_t size_;
  void* data_ = nullptr;
  flashback_message message_;
};

// A problem that is on the device and solved again and again.
class Repeated {
 public:
  Repeated(flashback_device* device, const Case& c, Stream stream)
      : device_(device), stream_(stream), question_(question_of(c, 21)), call_(device, c, question_) {
    arguments_ = call_.arguments();
    arguments_.stream = stream;
    check(flashback_backward_workspace(device, &arguments_, &arguments_.workspace_bytes, &message_),
          message_);
    workspace_ = std::make_unique<Bytes>(device, (arguments_.workspace_bytes + 3) / 4 * 4);
    arguments_.workspace = workspace_->data();
  }

  // With NaN in the workspace and around the gradients, which are judged.
  void expect_right(const Case& c) {
    run();
    test::expect_right(c, question_, call_.get());
  }

  // The bits of dq, or of dk and dv: packed, as they lie in memory.
  Bits dq() { return bits(arguments_.dq, question_.inputs.q.size()); }
  Bits dk_dv() {
    Bits all = bits(arguments_.dk, question_.inputs.k.size());
    const Bits dv = bits(arguments_.dv, question_.inputs.k.size());
    all.insert(all.end(), dv.begin(), dv.end());
    return all;
  }

  void run() {
    workspace_->fill(0xffffffff, stream_);
    check(flashback_backward(device_, &arguments_, &message_), message_);
  }

 private:
  Bits bits(const flashback_tensor& tensor, std::size_t elements) {
    Bits bits(elements);
    check(flashback_download(device_, bits.data(), tensor.data, 2 * elements, stream_, &message_), message_);
    check(flashback_wait(device_, stream_, &message_), message_);
    return bits;
  }

  flashback_device* device_;
  Stream stream_;
  flashback_message message_;
  Question16 question_;
  Call call_;
  flashback_backward_arguments arguments_;
  std::unique_ptr<Bytes> workspace_;
};

struct Named {
  const char* name;
  Case c;
  bool parts = false;  // of groups: dk and dv are sums in global memory too
};

// One tile; a tile for each of 132 multiprocessors; three and a half waves of them. And what changes the
// order of sums.
std::vector<Named> cases() {
  const auto of = [](Shape shape, Mask mask) { return Case{.shape = shape, .mask = mask}; };
  Case packed = of({3, 8, 8, 700, 700, 64}, Mask::kCausal);
  packed.cu_q = packed.cu_k = {0, 130, 450, 700};
  return {{"one tile", of({1, 1, 1, 64, 128, 64}, Mask::kDense)},
          {"one wave", of({1, 33, 33, 512, 512, 64}, Mask::kDense)},
          {"many waves", of({1, 58, 58, 1024, 1024, 64}, Mask::kDense)},
          {"one wave, causal", of({1, 33, 33, 512, 512, 64}, Mask::kCausal)},
          {"grouped heads", of({33, 4, 2, 512, 512, 64}, Mask::kCausal)},
          {"pairs", of({1, 4, 2, 192, 8320, 64}, Mask::kDense)},
          {"parts", of({1, 32, 2, 512, 512, 64}, Mask::kCausal), true},
          {"window", of({1, 16, 16, 512, 512, 64}, Mask{100, 0})},
          {"packed", packed}};
}

constexpr int kRepeats = 1000;

// Writes to other memory while the repeats run, so that they meet a busy memory system and fewer free
// multiprocessors.
class Load {
 public:
  explicit Load(flashback_device* device) : workbench_(*device->workbench), memory_(device, 256 << 20) {
    EXPECT_TRUE(workbench_.open_stream(&stream_).ok());
  }
  ~Load() {
    EXPECT_TRUE(workbench_.wait(stream_).ok());
    workbench_.close_stream(stream_);
  }
  void more() { memory_.fill(0x12345678, stream_); }

 private:
  Workbench& workbench_;
  Bytes memory_;
  Stream stream_ = nullptr;
};

TEST_F(OnHopper, DeterministicModeGivesTheSameBitsAThousandTimes) {
  Load load(device_);
  for (Named named : cases()) {
    SCOPED_TRACE(named.name);
    named.c.deterministic = true;
    Repeated pass(device_, named.c, nullptr);
    pass.expect_right(named.c);
    const Bits dq = pass.dq(), dk_dv = pass.dk_dv();
    for (int repeat = 1; repeat < kRepeats; ++repeat) {
      if (repeat % 3 == 0) load.more();
      pass.run();
      ASSERT_TRUE(pass.dq() == dq && pass.dk_dv() == dk_dv) << "repeat " << repeat;
    }
  }
}

float largest(const Bits& all) {
  float most = 0;
  for (const std::uint16_t bits : all)
    most = std::max(most, std::abs(std::bit_cast<float>(std::uint32_t{bits} << 16)));
  return most;
}

// The largest of |a - b| beyond one unit in the last place of b.
float most_beyond_one_ulp(const Bits& a, const Bits& b) {
  float most = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const float x = std::bit_cast<float>(std::uint32_t{a[i]} << 16),
                y = std::bit_cast<float>(std::uint32_t{b[i]} << 16);
    const float difference = std::abs(x - y) - std::abs(y) / 128;  // bf16 has 7 bits of fraction
    if (!(difference <= most)) most = difference;                  // NaN too
  }
  return most;
}

// The default mode adds dq in any order, and dk and dv of parts. Else dk and dv are the same bits; what moves
// does by the rounding of its last place, and where terms cancel by that of fp32 sums of as many terms as
// there are tiles of keys, or parts.
TEST_F(OnHopper, DefaultModeMovesByRoundingAloneInAThousandRepeats) {
  Load load(device_);
  for (const Named& named : cases()) {
    SCOPED_TRACE(named.name);
    Repeated pass(device_, named.c, nullptr);
    pass.expect_right(named.c);
    const Bits dq = pass.dq(), dk_dv = pass.dk_dv();
    const float tiles = static_cast<float>(named.c.shape.seqlen_k + 127) / 128,
                heads = static_cast<float>(named.c.shape.heads / named.c.shape.kv_heads);
    const float of_sums = largest(dq) * tiles * 0x1p-23f * 16,  // terms up to 16 times their sum
        of_key_sums = largest(dk_dv) * heads * 0x1p-23f * 16;
    for (int repeat = 1; repeat < kRepeats; ++repeat) {
      if (repeat % 3 == 0) load.more();
      pass.run();
      if (named.parts) {
        ASSERT_LE(most_beyond_one_ulp(pass.dk_dv(), dk_dv), of_key_sums) << "repeat " << repeat;
      } else {
        ASSERT_TRUE(pass.dk_dv() == dk_dv) << "repeat " << repeat;
      }
      ASSERT_LE(most_beyond_one_ulp(pass.dq(), dq), of_sums) << "repeat " << repeat;
    }
    pass.expect_right(named.c);
  }
}

// Many threads call one device at once, each with a stream of its own.
TEST_F(OnHopper, ThreadsAndStreamsDoNotMeet) {
  constexpr int kThreads = 8;
  Case c{.shape = {1, 6, 2, 300, 437, 64}, .mask = Mask::kCausal};
  c.deterministic = true;
  Repeated reference(device_, c, nullptr);
  reference.expect_right(c);
  const Bits dq = reference.dq(), dk_dv = reference.dk_dv();
  std::vector<std::thread> threads;
  std::vector<int> wrong(kThreads, 0);
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      Stream stream = nullptr;
      if (!workbench().open_stream(&stream).ok()) {
        wrong[t] = -1;
        return;
      }
      {
        Repeated pass(device_, c, stream);
        for (int call = 0; call < 50; ++call) {
          pass.run();
          wrong[t] += !(pass.dq() == dq && pass.dk_dv() == dk_dv);
        }
      }
      workbench().close_stream(stream);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, std::vector<int>(kThreads, 0));
}

// Neighbours along each dimension of every tensor lie 2^31 elements and more apart.
TEST_F(OnHopper, ElementsMoreThan31BitsApart) {
  const Shape shape{2, 2, 2, 130, 200, 64};
  const Case c{.shape = shape, .mask = Mask::kCausal};
  const Question16 question = question_of(c, 22);
  enum { kBatch, kRow, kHead };
  for (const int far : {kBatch, kRow, kHead}) {
    SCOPED_TRACE(far);
    const std::int64_t apart = far == kRow ? (1LL << 24) + 64 : (1LL << 31) + 64;  // of 130 rows: 2^31 in all
    struct Far {
      std::int64_t rows;
      flashback_tensor tensor;
      std::unique_ptr<Bytes> memory;
    };
    const auto place = [&](std::int64_t rows) {
      flashback_tensor t{nullptr, shape.heads * rows * 64, shape.heads * 64, 64};
      (far == kBatch ? t.batch_stride : far == kRow ? t.row_stride : t.head_stride) = apart;
      if (far == kRow) t.batch_stride = 128;
      if (far == kHead) t.row_stride = 64, t.batch_stride = rows * 64;
      const std::int64_t last = t.batch_stride + (rows - 1) * t.row_stride + t.head_stride + 63;
      auto memory = std::make_unique<Bytes>(device_, static_cast<std::size_t>(2 * (last + 1)));
      t.data = memory->data();
      return Far{rows, t, std::move(memory)};
    };
    const auto rows_of_64 = [&](const Far& f, auto visit) {
      for (std::int64_t b = 0, i = 0; b < 2; ++b) {
        for (std::int64_t r = 0; r < f.rows; ++r) {
          for (std::int64_t h = 0; h < 2; ++h, i += 64) {
            visit(static_cast<std::uint16_t*>(f.tensor.data) + b * f.tensor.batch_stride +
                      r * f.tensor.row_stride + h * f.tensor.head_stride,
                  i);
          }
        }
      }
    };
    flashback_message message;
    const auto put = [&](const Far& f, const std::vector<float>& values) {
      const Bits bits = to_bits(c.dtype, values);
      rows_of_64(f, [&](void* to, std::int64_t i) {
        check(flashback_upload(device_, to, &bits[i], 128, nullptr, &message), message);
      });
    };
    const auto get = [&](const Far& f) {
      Bits bits(static_cast<std::size_t>(2 * f.rows * 2 * 64));
      rows_of_64(f, [&](void* from, std::int64_t i) {
        check(flashback_download(device_, &bits[i], from, 128, nullptr, &message), message);
      });
      check(flashback_wait(device_, nullptr, &message), message);
      return from_bits(c.dtype, bits);
    };
    Call call(device_, c, question);
    flashback_backward_arguments a = call.arguments();
    const Far q = place(130), k = place(200), v = place(200), dout = place(130), dq = place(130),
              dk = place(200), dv = place(200);
    put(q, question.inputs.q);
    put(k, question.inputs.k);
    put(v, question.inputs.v);
    put(dout, question.inputs.dout);
    a.q = q.tensor, a.k = k.tensor, a.v = v.tensor, a.dout = dout.tensor;
    a.dq = dq.tensor, a.dk = dk.tensor, a.dv = dv.tensor;
    check(flashback_backward_workspace(device_, &a, &a.workspace_bytes, &message), message);
    Bytes workspace(device_, (a.workspace_bytes + 3) / 4 * 4);
    workspace.fill(0xffffffff, nullptr);
    a.workspace = workspace.data();
    check(flashback_backward(device_, &a, &message), message);
    expect_right(c, question, {get(dq), get(dk), get(dv), {}});
  }
}

}  // namespace
}  // namespace flashback::test
