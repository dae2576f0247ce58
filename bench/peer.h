/* What `flashback bench --suite backward|forward --peer FILE.so` and `bench/peers.py --peer FILE.so` need of
 * another implementation: a shared library that exports a function for each pass that it offers. Compiles as
 * C99 and C++.
 */
#ifndef FLASHBACK_BENCH_PEER_H
#define FLASHBACK_BENCH_PEER_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* bf16 or fp16 (batch, row, head, channel) in device memory; strides in elements, channels contiguous. */
typedef struct flashback_peer_tensor {
  void* data;
  int64_t batch_stride, row_stride, head_stride;
} flashback_peer_tensor;

typedef struct flashback_peer_arguments {
  int64_t batch, heads, kv_heads;       /* query heads h * heads / kv_heads ... share key head h */
  int64_t seqlen_q, seqlen_k, head_dim; /* rows of every sequence */
  int fp16;                             /* 0: bf16 */
  /* Query row i stands at key j = i + seqlen_k - seqlen_q and sees keys j - window_left to j + window_right;
   * -1: without bound. (-1, 0) is the causal mask. */
  int64_t window_left, window_right;
  int deterministic; /* the same bits in every run */
  /* Not null: the sequences are to be found by these batch + 1 numbers in device memory, the same for queries
   * and keys, and not by their length, which is the most that a sequence has. */
  const int32_t* cu_seqlens;
  float scale;
  /* Read; out is written by a forward pass. Pointers that a pass has no use for are null. */
  flashback_peer_tensor q, k, v, out, dout;
  /* Read; written by a forward pass: fp32 natural logarithms of the sum of exp(scale * q.k), packed (batch,
   * head, row); with cu_seqlens (head, row of all sequences). */
  float* lse;
  flashback_peer_tensor dq, dk, dv; /* written whole */
  int device;                       /* the CUDA device that all of this is on */
  void* stream;                     /* a CUstream of its primary context, which the CUDA runtime uses too */
} flashback_peer_arguments;

/* Enqueues the pass on the stream: everything that belongs to it, and nothing else, for the time between two
 * events around the call is what counts. Returns null, or a sentence that says what is wrong.
 * Memory that it needs besides is its own: it is allocated in the first call of a shape, which is not timed,
 * and kept. */
const char* flashback_peer_forward(const flashback_peer_arguments* arguments);
const char* flashback_peer_backward(const flashback_peer_arguments* arguments);

#ifdef __cplusplus
}
#endif
#endif
