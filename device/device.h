// The two faces of a device. `Device` is all that the library uses: encode a tensor map, launch, fill.
// `Workbench` adds what a command, a test or a benchmark needs: memory, copies, waiting, elapsed time.
//
// Two implementations: the CUDA driver, opened at run time (device/cuda_device.cpp), and the emulator
// (emulator/workbench.cpp, in a shared library of its own that device/emulator.cpp opens).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "device/status.h"

namespace flashback {

enum class Arch { kSm90, kSm100 };

// Of the GPU that an architecture stands for where none is at hand: H200, B200.
constexpr int usual_multiprocessors(Arch arch) {
  return arch == Arch::kSm90 ? 132 : 148;
}

// A device address. On the emulator it is the address of host memory that the workbench has registered.
using Address = std::uint64_t;

struct Dim3 {
  std::uint32_t x = 1, y = 1, z = 1;
};

// One kernels/**/instances.cu, as it was assembled: the emulator runs `ptx`, a GPU runs `cubin`,
// and ptxas made the second from that very text. It may be compressed: device/ptx_text.h gives
// the text.
struct KernelImage {
  std::string_view name;  // "sm100_backward"
  Arch arch;
  std::string_view ptx;
  std::span<const std::byte> cubin;
};

// kTf32, kTf32Ftz: words of fp32 that a load rounds to tf32. The types that are to flush subnormals do not
// (docs/emulator/h200.md).
enum class ElementType { kBf16, kF16, kF32, kF32Ftz, kTf32, kTf32Ftz };
enum class Swizzle { kNone, k32, k64, k128 };

// A tiled tensor map of up to five dimensions, fastest first. `strides[i]` is the distance in bytes between
// neighbours of dimension i + 1 (dimension 0 is contiguous). Out-of-bounds elements load as zero and are not
// stored.
struct TensorMapRequest {
  Address base = 0;
  ElementType type = ElementType::kBf16;
  Swizzle swizzle = Swizzle::k128;
  int rank = 0;
  std::uint64_t dims[5] = {};
  std::uint64_t strides[4] = {};
  std::uint32_t box[5] = {};
};

struct Launch {
  const KernelImage* image = nullptr;  // known by its address: outlives the device
  const char* entry = nullptr;
  Dim3 grid, cluster, block;
  std::uint32_t shared_bytes = 0;         // dynamic shared memory
  std::span<const std::byte> parameters;  // every entry takes exactly one struct by value
  // All CTAs run at once or none does, so that any may wait for any other. Refused where there is no room.
  bool together = false;
};

// A stream of the device: a CUstream, or null for the default stream. The emulator runs each launch to its
// end.
using Stream = void*;

class Device {
 public:
  virtual ~Device() = default;
  virtual Arch arch() const = 0;
  virtual int multiprocessors() const = 0;
  // Writes the 128 bytes of the device's tensor map to `map`, 64-byte aligned.
  virtual Status encode(const TensorMapRequest& request, void* map) = 0;
  virtual Status launch(const Launch& launch, Stream stream) = 0;
  // Writes `words` times the 32-bit `value` from `address` on, in stream order.
  virtual Status fill(Address address, std::uint32_t value, std::size_t words, Stream stream) = 0;
};

// What a device has done since it was opened.
struct Executed {
  std::uint64_t warp_instructions = 0, matrix_instructions = 0, ctas = 0;
};

class Workbench : public Device {
 public:
  virtual Status allocate(std::size_t bytes, Address* address) = 0;
  virtual void release(Address address) = 0;
  virtual Status upload(Address to, std::span<const std::byte> from, Stream stream) = 0;
  virtual Status download(std::span<std::byte> to, Address from, Stream stream) = 0;
  virtual Status wait(Stream stream) = 0;
  // A stream beside the default one, until it is closed; a device that has no other gives that one.
  virtual Status open_stream(Stream* stream) {
    *stream = nullptr;
    return {};
  }
  virtual void close_stream(Stream) {}
  // Milliseconds of device time between the calls of `mark(0)` and `mark(1)` (wall time on the emulator).
  virtual Status mark(int which, Stream stream) = 0;
  virtual Status elapsed(double* milliseconds) = 0;
  // Only the emulator counts.
  virtual Status executed(Executed*) { return unsupported("this device does not count what it executes"); }
};

// Both fail with a sentence where the device is not to be had.
Status open_cuda(int ordinal, std::unique_ptr<Workbench>* workbench);
// `threads` host threads run the CTAs; 0 means one for each core. Results do not depend on it.
Status open_emulator(Arch arch, int threads, std::unique_ptr<Workbench>* workbench);

struct CudaCard {
  std::string name, bus;  // NVIDIA H200, 0000:18:00.0
};
Status identify_cuda(int ordinal, CudaCard* card);

}  // namespace flashback
