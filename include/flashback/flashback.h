/* flashback: gradients of attention on NVIDIA Blackwell (and Hopper), and an emulator that runs its kernels
 * anywhere.
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
 * stride of a dimension of size 1 is ignored; a stride of 0 repeats an input. */
typedef struct flashback_tensor {
  void* data;
  int64_t batch_stride, row_stride, head_stride;
} flashback_tensor;

/* lse: (batch, head, row) fp32, natural logarithm of the sum of exp(scale * q.k); rows are contiguous. Of a
 * row that sees no key it may be -infinity or +infinity. */
typedef struct flashback_lse {
  float* data;
  int64_t batch_stride, head_stride;
} flashback_lse;

/* Which of the kernel's variants runs. Zero everywhere is the fastest; sm90 takes nothing else. */
typedef enum flashback_tensor_memory { FLASHBACK_SPLIT = 0, FLASHBACK_ALIASED = 1 } flashback_tensor_memory;
typedef enum flashback_signal { FLASHBACK_WARP = 0, FLASHBACK_CTA = 1 } flashback_signal;

typedef struct flashback_backward_arguments {
  size_t size; /* sizeof(flashback_backward_arguments), so that the struct may grow */

  flashback_dtype dtype; /* of q, k, v, out, dout, dq, dk, dv */
  int64_t batch;
  int64_t heads, kv_heads; /* kv_heads divides heads; on sm100 they are equal */
  int64_t seqlen_q, seqlen_k;
  int64_t head_dim;
  int causal;  /* query row i sees key rows j <= i + seqlen_k - seqlen_q (bottom-right aligned) */
  float scale; /* of the scores; 0 means 1 / sqrt(head_dim) */

  flashback_tensor q, k, v, out, dout; /* read */
  flashback_lse lse;                   /* read */
  flashback_tensor dq, dk, dv;         /* written whole */

  void* workspace; /* device memory, 256-byte aligned, of flashback_backward_workspace bytes; contents do not
                      matter */
  size_t workspace_bytes;
  void* stream;

  flashback_tensor_memory tensor_memory;
  flashback_signal signal;
} flashback_backward_arguments;

/* Bytes of workspace for this problem. Reads shapes only: pointers may be NULL. */
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

#ifdef __cplusplus
}
#endif
#endif
