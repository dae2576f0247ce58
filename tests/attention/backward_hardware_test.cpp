// The Hopper kernel on a Hopper GPU and on the emulator: gradients that are right, and dk and dv the same
// bits. (dq is summed in global memory, in an order that the GPU chooses.) Skipped where there is no such
// GPU.
#include <gtest/gtest.h>

#include "tests/attention/backward_run.h"

namespace flashback::test {
namespace {

TEST(BackwardOnHopper, GivesTheEmulatorsBits) {
  flashback_device* gpu = nullptr;
  flashback_message message;
  if (flashback_device_cuda(0, &gpu, &message) != FLASHBACK_OK) GTEST_SKIP() << message.text;
  flashback_device* emulated = open_emulator(Arch::kSm90);
  const Case cases[] = {
      {.shape = {.heads = 2, .seqlen_q = 512, .seqlen_k = 512}, .mask = Mask::kDense},
      {.shape = {.heads = 2, .seqlen_q = 512, .seqlen_k = 512}, .mask = Mask::kCausal},
      {.shape = {.batch = 2, .heads = 4, .kv_heads = 2, .seqlen_q = 256, .seqlen_k = 384},
       .mask = Mask::kDense},
      {.shape = {.heads = 6, .kv_heads = 2, .seqlen_q = 300, .seqlen_k = 300}, .mask = Mask::kCausal},
      {.shape = {.heads = 2, .seqlen_q = 300, .seqlen_k = 437}, .mask = Mask::kCausal},
      {.shape = {.seqlen_q = 437, .seqlen_k = 300}, .mask = Mask::kDense},
      {.shape = {.seqlen_q = 300, .seqlen_k = 100}, .mask = Mask::kCausal},
      {.shape = {.seqlen_q = 256, .seqlen_k = 256}, .mask = Mask::kCausal, .data = Data::kHeavy},
      {.shape = {.seqlen_q = 256, .seqlen_k = 256}, .mask = Mask::kDense, .data = Data::kLow}};
  for (const Case& c : cases) {
    SCOPED_TRACE(describe(c));
    const Question16 question = question_of(c, 0);
    const Gradients on_gpu = run_backward(gpu, c, question);
    expect_right(c, question, on_gpu);
    const Gradients on_emulator = run_backward(emulated, c, question);
    EXPECT_TRUE(on_gpu.dk == on_emulator.dk);
    EXPECT_TRUE(on_gpu.dv == on_emulator.dv);
  }
  flashback_device_close(emulated);
  flashback_device_close(gpu);
}

}  // namespace
}  // namespace flashback::test
