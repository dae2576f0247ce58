// What the C functions promise beside gradients: codes, sentences, nothing done on a refusal.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "flashback/flashback.h"

namespace {

class Api : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(flashback_device_emulator("sm100", 1, &device_, &message_), FLASHBACK_OK) << message_.text;
    arguments_.size = sizeof arguments_;
    arguments_.batch = arguments_.heads = arguments_.kv_heads = 1;
    arguments_.seqlen_q = arguments_.seqlen_k = 64;
    arguments_.head_dim = 64;
  }
  void TearDown() override { flashback_device_close(device_); }

  std::string sentence() const { return message_.text; }

  flashback_device* device_ = nullptr;
  flashback_message message_;
  flashback_backward_arguments arguments_{};
  size_t bytes_ = 0;
};

TEST_F(Api, WorkspaceNeedsShapesOnly) {
  EXPECT_EQ(flashback_backward_workspace(device_, &arguments_, &bytes_, &message_), FLASHBACK_OK);
  EXPECT_EQ(bytes_, 33792u);
  EXPECT_EQ(sentence(), "");
}

TEST_F(Api, AStructOfAnotherSizeIsRefused) {
  arguments_.size = 8;
  EXPECT_EQ(flashback_backward_workspace(device_, &arguments_, &bytes_, &message_), FLASHBACK_INVALID);
  EXPECT_EQ(sentence().find("size is 8; it must be sizeof(flashback_backward_arguments), which is "), 0u)
      << sentence();
  EXPECT_EQ(bytes_, 0u);
}

TEST_F(Api, EnumeratorsThatDoNotExistAreRefused) {
  const unsigned seven = 7;
  std::memcpy(&arguments_.dtype, &seven, sizeof seven);
  EXPECT_EQ(flashback_backward_can_run(device_, &arguments_, &message_), FLASHBACK_INVALID);
  EXPECT_EQ(sentence(), "dtype is 7; it must be FLASHBACK_BF16 (0) or FLASHBACK_F16 (1)");
  arguments_.dtype = FLASHBACK_BF16;
  std::memcpy(&arguments_.tensor_memory, &seven, sizeof seven);
  EXPECT_EQ(flashback_backward_can_run(device_, &arguments_, &message_), FLASHBACK_INVALID);
  EXPECT_EQ(sentence(), "tensor_memory is 7; it must be FLASHBACK_SPLIT (0) or FLASHBACK_ALIASED (1)");
  arguments_.tensor_memory = FLASHBACK_SPLIT;
  std::memcpy(&arguments_.signal, &seven, sizeof seven);
  EXPECT_EQ(flashback_backward_can_run(device_, &arguments_, &message_), FLASHBACK_INVALID);
  EXPECT_EQ(sentence(), "signal is 7; it must be FLASHBACK_WARP (0) or FLASHBACK_CTA (1)");
}

TEST_F(Api, UnsupportedIsNotInvalid) {
  arguments_.head_dim = 136;
  EXPECT_EQ(flashback_backward_workspace(device_, &arguments_, &bytes_, &message_), FLASHBACK_UNSUPPORTED);
  EXPECT_EQ(sentence(),
            "head_dim is 136; no backward kernel for sm100 takes it yet; accepted: multiples of 8 up to 128");
}

TEST_F(Api, BackwardRefusesWhatCanRunRefuses) {
  EXPECT_EQ(flashback_backward_can_run(device_, &arguments_, &message_), FLASHBACK_INVALID);
  EXPECT_EQ(sentence(), "q.data is null; it must point to device memory");
  EXPECT_EQ(flashback_backward(device_, &arguments_, &message_), FLASHBACK_INVALID);
  EXPECT_EQ(sentence(), "q.data is null; it must point to device memory");
}

TEST_F(Api, MessagesAreOptional) {
  EXPECT_EQ(flashback_backward(device_, &arguments_, nullptr), FLASHBACK_INVALID);
  EXPECT_EQ(flashback_backward_workspace(device_, &arguments_, &bytes_, nullptr), FLASHBACK_OK);
}

TEST_F(Api, NullArgumentsAreNamed) {
  EXPECT_EQ(flashback_backward(nullptr, &arguments_, &message_), FLASHBACK_INVALID);
  EXPECT_EQ(sentence(), "device is null; it must not be");
  EXPECT_EQ(flashback_backward(device_, nullptr, &message_), FLASHBACK_INVALID);
  EXPECT_EQ(sentence(), "arguments is null; it must not be");
  EXPECT_EQ(flashback_backward_workspace(device_, &arguments_, nullptr, &message_), FLASHBACK_INVALID);
  EXPECT_EQ(sentence(), "bytes is null; it must not be");
  EXPECT_EQ(flashback_device_emulator(nullptr, 1, &device_, &message_), FLASHBACK_INVALID);
  EXPECT_EQ(sentence(), "arch is null; it must not be");
  EXPECT_EQ(flashback_device_emulator("sm100", 1, nullptr, &message_), FLASHBACK_INVALID);
  EXPECT_EQ(sentence(), "device is null; it must not be");
  EXPECT_EQ(flashback_allocate(device_, 16, nullptr, &message_), FLASHBACK_INVALID);
  EXPECT_EQ(flashback_upload(device_, nullptr, "x", 1, nullptr, &message_), FLASHBACK_INVALID);
  EXPECT_EQ(sentence(), "to is null; it must not be");
  EXPECT_EQ(flashback_wait(nullptr, nullptr, &message_), FLASHBACK_INVALID);
  flashback_release(nullptr, nullptr);
  flashback_device_close(nullptr);
}

// The forward pass keeps the same promises.
class ForwardApi : public Api {
 protected:
  void SetUp() override {
    Api::SetUp();
    forward_.size = sizeof forward_;
    forward_.batch = forward_.heads = forward_.kv_heads = 1;
    forward_.seqlen_q = forward_.seqlen_k = 64;
    forward_.head_dim = 64;
  }
  flashback_forward_arguments forward_{};
};

TEST_F(ForwardApi, AStructOfAnotherSizeIsRefused) {
  forward_.size = sizeof(flashback_backward_arguments);
  EXPECT_EQ(flashback_forward_workspace(device_, &forward_, &bytes_, &message_), FLASHBACK_INVALID);
  EXPECT_NE(sentence().find("it must be sizeof(flashback_forward_arguments), which is "), std::string::npos)
      << sentence();
}

TEST_F(ForwardApi, WorkspaceNeedsShapesOnly) {
  EXPECT_EQ(flashback_forward_workspace(device_, &forward_, &bytes_, &message_), FLASHBACK_OK);
  EXPECT_EQ(bytes_, 256u);
  const std::int32_t lengths[2] = {};
  forward_.seqused_q = lengths;
  EXPECT_EQ(flashback_forward_workspace(device_, &forward_, &bytes_, &message_), FLASHBACK_OK);
  EXPECT_EQ(bytes_, 3 * 256u);
}

TEST_F(ForwardApi, WrongArgumentsAreNamed) {
  const auto expect = [&](flashback_status status, const std::string& expected) {
    EXPECT_EQ(flashback_forward_can_run(device_, &forward_, &message_), status);
    EXPECT_EQ(sentence(), expected);
  };
  expect(FLASHBACK_INVALID, "q.data is null; it must point to device memory");
  float lse[64];
  const auto tensor = [](std::uintptr_t address) {
    return flashback_tensor{reinterpret_cast<void*>(address), 0, 64, 64};
  };
  forward_.q = tensor(0x10000);
  forward_.k = tensor(0x20000);
  forward_.v = tensor(0x30000);
  expect(FLASHBACK_INVALID, "out.data is null; it must point to device memory");
  forward_.out = tensor(0x30000);
  expect(FLASHBACK_INVALID, "out.data and v.data are both 0x30000; an output needs memory of its own");
  forward_.out = tensor(0x40000);
  forward_.out.row_stride = 56;
  expect(
      FLASHBACK_INVALID,
      "out.row_stride is 56; elements of an output must not overlap, and the axes inside this one cover 64 "
      "elements; nearest accepted: 64");
  forward_.out.row_stride = 64;
  forward_.heads = 2;
  forward_.q.head_stride = forward_.out.head_stride = 64 * 64;
  forward_.lse = {lse, 0, 63};
  expect(FLASHBACK_INVALID,
         "lse.head_stride is 63; elements of an output must not overlap, and the axes inside this one cover "
         "64 elements; nearest accepted: 64");
  forward_.lse.head_stride = 64;
  expect(FLASHBACK_INVALID, "workspace is null; it must point to device memory");
  forward_.workspace = reinterpret_cast<void*>(std::uintptr_t{0x50000});
  expect(FLASHBACK_INVALID,
         "workspace_bytes is 0; this problem needs at least 256 (flashback_forward_workspace tells)");
  forward_.workspace_bytes = 256;
  expect(FLASHBACK_OK, "");
  forward_.lse = {};
  expect(FLASHBACK_OK, "");
  forward_.head_dim = 136;
  expect(FLASHBACK_UNSUPPORTED,
         "head_dim is 136; no forward kernel for sm100 takes it yet; accepted: multiples of 8 up to 128");
}

TEST_F(ForwardApi, NullArgumentsAreNamed) {
  EXPECT_EQ(flashback_forward(nullptr, &forward_, &message_), FLASHBACK_INVALID);
  EXPECT_EQ(sentence(), "device is null; it must not be");
  EXPECT_EQ(flashback_forward_can_run(device_, nullptr, &message_), FLASHBACK_INVALID);
  EXPECT_EQ(sentence(), "arguments is null; it must not be");
  EXPECT_EQ(flashback_forward_workspace(device_, &forward_, nullptr, &message_), FLASHBACK_INVALID);
  EXPECT_EQ(sentence(), "bytes is null; it must not be");
}

TEST_F(Api, EmulatorsAreNamed) {
  flashback_device* other = nullptr;
  EXPECT_EQ(flashback_device_emulator("sm120", 0, &other, &message_), FLASHBACK_INVALID);
  EXPECT_EQ(sentence(), "arch is \"sm120\"; accepted: \"sm100\", \"sm90\"");
  EXPECT_EQ(flashback_device_emulator("sm100", -1, &other, &message_), FLASHBACK_INVALID);
  EXPECT_EQ(sentence(), "threads is -1; it must not be negative; nearest accepted: 0, one for each core");
  EXPECT_EQ(other, nullptr);
}

TEST_F(Api, MemoryGoesThereAndBack) {
  void* memory = nullptr;
  ASSERT_EQ(flashback_allocate(device_, 1000, &memory, &message_), FLASHBACK_OK) << message_.text;
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory) % 256, 0u);
  std::string text(1000, 'x'), back(1000, ' ');
  ASSERT_EQ(flashback_upload(device_, memory, text.data(), text.size(), nullptr, &message_), FLASHBACK_OK);
  ASSERT_EQ(flashback_download(device_, back.data(), memory, back.size(), nullptr, &message_), FLASHBACK_OK);
  ASSERT_EQ(flashback_wait(device_, nullptr, &message_), FLASHBACK_OK);
  EXPECT_EQ(back, text);
  EXPECT_NE(flashback_upload(device_, memory, text.data(), 5000, nullptr, &message_), FLASHBACK_OK)
      << "more than the allocation holds";
  EXPECT_NE(sentence(), "");
  flashback_release(device_, memory);
}

TEST(CudaDevice, IsRefusedInWordsWhereThereIsNone) {
  if (void* driver = dlopen("libcuda.so.1", RTLD_NOW)) {
    dlclose(driver);
    GTEST_SKIP() << "this machine has a CUDA driver";
  }
  flashback_device* device = nullptr;
  flashback_message message;
  EXPECT_EQ(flashback_device_cuda(0, &device, &message), FLASHBACK_DEVICE);
  EXPECT_EQ(std::string(message.text).find("no CUDA driver on this machine: libcuda.so.1"), 0u)
      << message.text;
  EXPECT_EQ(device, nullptr);
}

}  // namespace
