/* flashback: attention and its gradients on NVIDIA Blackwell (and Hopper), and an emulator that runs its
 * kernels anywhere.
 *
 * Rules that hold for every call: nothing is allocated on the device and nothing is synchronised except where
 * a function says so; the library never prints, aborts or exits; every refusal is a status and one sentence
 * that names the argument, its value, the rule and what would be accepted. All functions may be called from
 * any thread.
 *
 * Needs no CUDA toolkit: the driver is opened at run time. Compiles as C99 and C++17; flashback.hpp is its
 * C++ face.
 */
#ifndef FLASHBACK_FLASHBACK_H
#define FLASHBACK_FLASHBACK_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define FLASHBACK_API __attribute__((visibility("default")))
#else
#define FLASHBACK_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define FLASHBACK_VERSION_MAJOR 0
#define FLASHBACK_VERSION_MINOR 1

typedef enum flashback_status {
  FLASHBACK_OK = 0,
  FLASHBACK_INVALID = 1,     /* an argument breaks a rule */
  FLASHBACK_UNSUPPORTED = 2, /* a legal problem that no kernel here solves yet */
  FLASHBACK_DEVICE = 3,      /* the device refused or failed */
  FLASHBACK_INTERNAL = 4     /* a defect of this library */
} flashback_status;

/* Where a call puts its sentence; every `message` argument may be NULL. Always terminated; empty on success.
 */
typedef struct flashback_message {
  char text[512];
} flashback_message;

typedef struct flashback_device flashback_device;

/* The CUDA device `ordinal`, through the driver found at run time and the device's primary context, the one
 * that the CUDA runtime and frameworks use: their memory and streams may be passed. It need not be the
 * current device. The first launch of a kernel loads it; that may happen while a stream is being captured. */
FLASHBACK_API flashback_status flashback_device_cuda(int ordinal, flashback_device** device,
                                                     flashback_message* message);
/* The emulator as `arch`, "sm100" or "sm90". `threads` host threads (0: one for each core); results do not
 * depend on it. */
FLASHBACK_API flashback_status flashback_device_emulator(const char* arch, int threads,
                                                         flashback_device** device,
                                                         flashback_message* message);
/* Closes a device on which all work is done. NULL is allowed. */
FLASHBACK_API void flashback_device_close(flashback_device* device);

/* Memory of a device, for those who have no framework that brings it; aligned to 256 bytes. On the emulator
 * device memory is host memory that these calls register: a kernel that leaves it is a fault. A NULL `stream`
 * is the default stream. Copies are in the order of the stream; what is uploaded from or downloaded to may be
 * touched once the stream has been waited for. */
FLASHBACK_API flashback_status flashback_allocate(flashback_device* device, size_t bytes, void** memory,
                                                  flashback_message* message);
FLASHBACK_API void flashback_release(flashback_device* device, void* memory);
FLASHBACK_API flashback_status flashback_upload(flashback_device* device, void* to, const void* from,
                                                size_t bytes, void* stream, flashback_message* message);
FLASHBACK_API flashback_status flashback_download(flashback_device* device, void* to, const void* from,
                                                  size_t bytes, void* stream, flashback_message* message);
/* Returns when all work of the stream is done. */
FLASHBACK_API flashback_status flashback_wait(flashback_device* device, void* stream,
                                              flashback_message* message);

typedef enum flashback_dtype { FLASHBACK_BF16 = 0, FLASHBACK_F16 = 1 } flashback_dtype;

/* A tensor (batch, row, head, channel) on the device by its strides in elements; channels are contiguous.
 * `data` and the strides are multiples of 16 bytes. Strides are 64-bit and independent for every tensor; the
 * stride of a dimension of size 1 is ignored; a stride of 0 repeats an input. Packed sequences have no batch
 * dimension: their tensor is (row, head, channel) and batch_stride is ignored. A tensor without elements may
 * be NULL. */
typedef struct flashback_tensor {
  void* data;
  int64_t batch_stride, row_stride, head_stride;
} flashback_tensor;

/* A number for each query row: (batch, head, row) fp32; packed sequences: (head, row), batch_stride ignored.
 * Rows are contiguous. */
typedef struct flashback_lse {
  float* data;
  int64_t batch_stride, head_stride;
} flashback_lse;

/* A band of keys. Query row i stands at key j = i + seqlen_k - seqlen_q (so that the last row stands at the
 * last key) and sees the keys from j - left to j + right, both included. */
typedef struct flashback_window {
  int bounded;         /* 0: no window; left and right are not read */
  int64_t left, right; /* -1: no bound on this side */
} flashback_window;

/* Which of the kernel's variants runs. Zero everywhere is the fastest; sm90 takes nothing else. */
typedef enum flashback_tensor_memory { FLASHBACK_SPLIT = 0, FLASHBACK_ALIASED = 1 } flashback_tensor_memory;
typedef enum flashback_signal { FLASHBACK_WARP = 0, FLASHBACK_CTA = 1 } flashback_signal;

/* Zero in a field that is not mentioned in a call's problem means what most callers want. */
typedef struct flashback_backward_arguments {
  size_t size; /* sizeof(flashback_backward_arguments), so that the struct may grow */

  flashback_dtype dtype;   /* of q, k, v, out, dout, and of dq, dk, dv unless fp32_gradients */
  int64_t batch;           /* sequences */
  int64_t heads, kv_heads; /* kv_heads divides heads; query heads h * heads / kv_heads ... share head h */
  /* Rows of every sequence, or, with cu_seqlens, of the packed tensor. 0 is allowed, as is batch 0. */
  int64_t seqlen_q, seqlen_k;
  int64_t head_dim;

  int causal;              /* query row i sees no key after j, where it stands: as window.right = 0 */
  flashback_window window; /* with causal: what both let through */
  float scale;             /* of the scores; 0 means 1 / sqrt(head_dim) */

  /* Where sequences begin, and how long they are: int32 on the device, read by the kernels alone, so that a
   * captured graph may be replayed with other lengths. Each of the four may be NULL.
   * cu_seqlens (batch + 1 numbers, ascending from 0): sequence b has the rows from cu_seqlens[b] up to
   * cu_seqlens[b + 1]; the tensors of this side are packed. Rows from cu_seqlens[batch] on belong to no one.
   * seqused (batch numbers): only so many rows of sequence b, its first ones, take part.
   * No longest length is asked for; no kernel reads a row that takes no part. */
  const int32_t *cu_seqlens_q, *cu_seqlens_k;
  const int32_t *seqused_q, *seqused_k;
  /* Rows of dq, dk, dv that take no part become zero; with this they are left as they are. */
  int leave_unused_rows;

  flashback_tensor q, k, v, out, dout; /* read */
  /* Read: the natural logarithm of the sum of exp(scale * q.k), and of exp(sink) where there is a sink. An
   * infinite lse, of either sign, says that the row sees no key: it adds nothing to any gradient. */
  flashback_lse lse;
  flashback_lse dlse;          /* read: the gradient of lse; NULL data: there is none */
  const float* sink;           /* read: a logit of each head that takes weight and has no value; or NULL */
  flashback_tensor dq, dk, dv; /* written whole */
  float* dsink;                /* written: the gradient of sink, of each head; NULL without a sink */

  int fp32_gradients; /* dq, dk, dv are fp32 */
  int accumulate;     /* the gradients are added to what dq, dk, dv hold; needs fp32_gradients */
  int deterministic;  /* the same bits in every run, whatever else the device does */

  void* workspace; /* device memory, 256-byte aligned, of flashback_backward_workspace bytes; contents do not
                      matter */
  size_t workspace_bytes;
  void* stream;

  flashback_tensor_memory tensor_memory;
  flashback_signal signal;
} flashback_backward_arguments;

/* Bytes of workspace for this problem; linear in the rows. Reads shapes and choices only, and of pointers
 * whether they are NULL: cu_seqlens, seqused and sink change what is needed. */
FLASHBACK_API flashback_status flashback_backward_workspace(flashback_device* device,
                                                            const flashback_backward_arguments* arguments,
                                                            size_t* bytes, flashback_message* message);

/* Whether flashback_backward would accept these arguments, pointers and alignments included; launches
 * nothing. */
FLASHBACK_API flashback_status flashback_backward_can_run(flashback_device* device,
                                                          const flashback_backward_arguments* arguments,
                                                          flashback_message* message);

/* dq, dk, dv of out = softmax(scale * q k^T, masked) v, given dout. Enqueues on the stream and returns. A row
 * that sees no key has a dq of zero and adds nothing to dk and dv. */
FLASHBACK_API flashback_status flashback_backward(flashback_device* device,
                                                  const flashback_backward_arguments* arguments,
                                                  flashback_message* message);

/* The forward pass; fields of the same name are those of flashback_backward_arguments. */
typedef struct flashback_forward_arguments {
  size_t size; /* sizeof(flashback_forward_arguments), so that the struct may grow */

  flashback_dtype dtype; /* of q, k, v and out */
  int64_t batch;
  int64_t heads, kv_heads;
  int64_t seqlen_q, seqlen_k;
  int64_t head_dim;

  int causal;
  flashback_window window;
  float scale;

  const int32_t *cu_seqlens_q, *cu_seqlens_k;
  const int32_t *seqused_q, *seqused_k;
  /* Rows of out that take no part become zero, and their lse -infinity; with this both are left as they
   * are. */
  int leave_unused_rows;

  flashback_tensor q, k, v; /* read */
  const float* sink;        /* read: a logit of each head that takes weight and has no value; or NULL */
  flashback_tensor out;     /* written whole */
  /* Written: the natural logarithm of the sum of exp(scale * q.k), and of exp(sink) where there is a sink.
   * Without one, -infinity where the row sees no key. NULL data: not wanted. */
  flashback_lse lse;

  void* workspace; /* device memory, 256-byte aligned, of flashback_forward_workspace bytes; contents do not
                      matter */
  size_t workspace_bytes;
  void* stream;
} flashback_forward_arguments;

/* As flashback_backward_workspace. */
FLASHBACK_API flashback_status flashback_forward_workspace(flashback_device* device,
                                                           const flashback_forward_arguments* arguments,
                                                           size_t* bytes, flashback_message* message);

/* As flashback_backward_can_run. */
FLASHBACK_API flashback_status flashback_forward_can_run(flashback_device* device,
                                                         const flashback_forward_arguments* arguments,
                                                         flashback_message* message);

/* out = softmax(scale * q k^T, masked) v, and lse, as flashback_backward reads them. Enqueues on the stream
 * and returns. The out of a row that sees no key is zero. */
FLASHBACK_API flashback_status flashback_forward(flashback_device* device,
                                                 const flashback_forward_arguments* arguments,
                                                 flashback_message* message);

#ifdef __cplusplus
}
#endif
#endif
