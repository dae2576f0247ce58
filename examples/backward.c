/* Gradients of attention from C, on the emulator: no GPU and no CUDA toolkit.
 *
 *   cc -std=c99 backward.c -lflashback -lm -o backward && ./backward
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "flashback/flashback.h"

enum { kRows = 100, kChannels = 64, kElements = kRows * kChannels };

static flashback_message message;

static void check(flashback_status status) {
  if (status == FLASHBACK_OK) return;
  fprintf(stderr, "%s\n", message.text);
  exit(1);
}

/* bf16 is the upper half of a float; here the lower half is cut off. */
static uint16_t to_bf16(float value) {
  uint32_t word;
  memcpy(&word, &value, sizeof word);
  return (uint16_t)(word >> 16);
}
static float from_bf16(uint16_t bits) {
  const uint32_t word = (uint32_t)bits << 16;
  float value;
  memcpy(&value, &word, sizeof value);
  return value;
}

static void* on_device(flashback_device* device, size_t bytes, const void* contents) {
  void* memory;
  check(flashback_allocate(device, bytes, &memory, &message));
  if (contents) check(flashback_upload(device, memory, contents, bytes, NULL, &message));
  return memory;
}

/* out = softmax(q k^T / 8) v and the logarithm of the softmax's denominator, which a training step keeps. */
static void forward(const uint16_t* q, const uint16_t* k, const uint16_t* v, uint16_t* out, float* lse) {
  for (int i = 0; i < kRows; ++i) {
    float weights[kRows], sum = 0;
    for (int j = 0; j < kRows; ++j) {
      float score = 0;
      for (int c = 0; c < kChannels; ++c)
        score += from_bf16(q[i * kChannels + c]) * from_bf16(k[j * kChannels + c]);
      weights[j] = expf(score / 8);
      sum += weights[j];
    }
    lse[i] = logf(sum);
    for (int c = 0; c < kChannels; ++c) {
      float value = 0;
      for (int j = 0; j < kRows; ++j) value += weights[j] / sum * from_bf16(v[j * kChannels + c]);
      out[i * kChannels + c] = to_bf16(value);
    }
  }
}

int main(void) {
  static uint16_t q[kElements], k[kElements], v[kElements], out[kElements], dout[kElements], dv[kElements];
  static float lse[kRows];
  for (int i = 0; i < kElements; ++i) {
    q[i] = to_bf16(sinf(1.0f * i));
    k[i] = to_bf16(sinf(1.7f * i));
    v[i] = to_bf16(sinf(2.9f * i));
    dout[i] = to_bf16(sinf(0.3f * i));
  }
  forward(q, k, v, out, lse);

  flashback_device* device;
  check(flashback_device_emulator("sm100", 0, &device, &message));

  const int64_t row = kChannels; /* one batch, one head: rows follow each other */
  flashback_backward_arguments a;
  memset(&a, 0, sizeof a);
  a.size = sizeof a;
  a.dtype = FLASHBACK_BF16;
  a.batch = a.heads = a.kv_heads = 1;
  a.seqlen_q = a.seqlen_k = kRows;
  a.head_dim = kChannels;
  flashback_tensor* const inputs[] = {&a.q, &a.k, &a.v, &a.out, &a.dout};
  const uint16_t* const contents[] = {q, k, v, out, dout};
  flashback_tensor* const outputs[] = {&a.dq, &a.dk, &a.dv};
  for (int i = 0; i < 5; ++i) {
    inputs[i]->data = on_device(device, sizeof q, contents[i]);
    inputs[i]->row_stride = row;
  }
  for (int i = 0; i < 3; ++i) {
    outputs[i]->data = on_device(device, sizeof q, NULL);
    outputs[i]->row_stride = row;
  }
  a.lse.data = on_device(device, sizeof lse, lse);
  check(flashback_backward_workspace(device, &a, &a.workspace_bytes, &message));
  a.workspace = on_device(device, a.workspace_bytes, NULL);

  check(flashback_backward(device, &a, &message));
  check(flashback_download(device, dv, a.dv.data, sizeof dv, NULL, &message));
  check(flashback_wait(device, NULL, &message));

  /* The rows of a softmax sum to 1, so over all keys dV sums to what dO sums to over all queries. */
  float worst = 0;
  for (int c = 0; c < kChannels; ++c) {
    float given = 0, got = 0;
    for (int i = 0; i < kRows; ++i) {
      given += from_bf16(dout[i * kChannels + c]);
      got += from_bf16(dv[i * kChannels + c]);
    }
    worst = fmaxf(worst, fabsf(given - got));
  }
  printf("dV sums to dO within %.4f over %d channels\n", worst, kChannels);

  for (int i = 0; i < 5; ++i) flashback_release(device, inputs[i]->data);
  for (int i = 0; i < 3; ++i) flashback_release(device, outputs[i]->data);
  flashback_release(device, a.lse.data);
  flashback_release(device, a.workspace);
  flashback_device_close(device);
  return worst < 0.1f ? 0 : 1;
}
