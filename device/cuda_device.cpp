// The GPU as a device: its primary context, which frameworks and the CUDA runtime use too, so their memory
// and streams are ours.
#include "device/cuda_device.h"

#include <fmt/format.h>

#include <array>
#include <atomic>
#include <bit>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace flashback {
namespace {

using cuda::Driver;

// Makes the device's context current for one call, whatever the caller's current device is. Most often it is
// this one, and asking costs less than a push and a pop.
class Current {
 public:
  Current(const Driver& driver, cuda::Context context) : driver_(driver) {
    cuda::Context callers = nullptr;
    if (driver.context_current(&callers) == 0 && callers == context) return;
    status_ = driver.status(driver.context_push(context), "cuCtxPushCurrent");
    pushed_ = status_.ok();
  }
  ~Current() {
    cuda::Context ours = nullptr;
    if (pushed_) driver_.context_pop(&ours);
  }
  Current(const Current&) = delete;
  Current& operator=(const Current&) = delete;

  const Status& status() const { return status_; }

 private:
  const Driver& driver_;
  bool pushed_ = false;
  Status status_;
};

// Loading code allocates; in relaxed mode that is allowed while a stream of the caller is being captured.
class RelaxedCapture {
 public:
  explicit RelaxedCapture(const Driver& driver) : driver_(driver) { driver_.exchange_capture_mode(&mode_); }
  ~RelaxedCapture() { driver_.exchange_capture_mode(&mode_); }
  RelaxedCapture(const RelaxedCapture&) = delete;
  RelaxedCapture& operator=(const RelaxedCapture&) = delete;

 private:
  const Driver& driver_;
  cuda::CaptureMode mode_ = cuda::kCaptureRelaxed;
};

cuda::MapDataType data_type(ElementType type) {
  switch (type) {
    case ElementType::kBf16:
      return cuda::kMapBfloat16;
    case ElementType::kF16:
      return cuda::kMapFloat16;
    case ElementType::kF32:
      return cuda::kMapFloat32;
    case ElementType::kF32Ftz:
      return cuda::kMapFloat32Ftz;
    case ElementType::kTf32:
      return cuda::kMapTfloat32;
    case ElementType::kTf32Ftz:
      break;
  }
  return cuda::kMapTfloat32Ftz;
}

cuda::MapSwizzle swizzle_of(Swizzle swizzle) {
  switch (swizzle) {
    case Swizzle::kNone:
      return cuda::kMapNoSwizzle;
    case Swizzle::k32:
      return cuda::kMapSwizzle32;
    case Swizzle::k64:
      return cuda::kMapSwizzle64;
    case Swizzle::k128:
      break;
  }
  return cuda::kMapSwizzle128;
}

cuda::StreamHandle handle(Stream stream) {
  return static_cast<cuda::StreamHandle>(stream);
}

class CudaDevice final : public Workbench {
 public:
  CudaDevice(const Driver& driver, cuda::DeviceNumber number, Arch arch, int multiprocessors,
             cuda::Context context)
      : driver_(driver), number_(number), arch_(arch), multiprocessors_(multiprocessors), context_(context) {}

  ~CudaDevice() override {
    {
      const Current current(driver_, context_);
      for (cuda::Event event : marks_) {
        if (event) driver_.event_destroy(event);
      }
      for (const auto& [image, library] : libraries_) {
        if (library) driver_.library_unload(library);
      }
    }
    driver_.primary_context_release(number_);
  }

  Arch arch() const override { return arch_; }
  int multiprocessors() const override { return multiprocessors_; }

  Status encode(const TensorMapRequest& request, void* map) override {
    constexpr std::array<std::uint32_t, 5> kEveryElement = {1, 1, 1, 1, 1};
    const Current current(driver_, context_);
    if (!current.status().ok()) return current.status();
    return driver_.status(
        driver_.tensor_map_encode(map, data_type(request.type), static_cast<std::uint32_t>(request.rank),
                                  std::bit_cast<void*>(request.base), request.dims, request.strides,
                                  request.box, kEveryElement.data(), cuda::kMapNoInterleave,
                                  swizzle_of(request.swizzle), cuda::kMapPromote128, cuda::kMapFillZero),
        "cuTensorMapEncodeTiled");
  }

  Status launch(const Launch& launch, Stream stream) override {
    const Current current(driver_, context_);
    if (!current.status().ok()) return current.status();
    cuda::Function function = nullptr;
    if (Status s = find(*launch.image, launch.entry, launch.shared_bytes, &function); !s.ok()) return s;

    std::array<cuda::LaunchAttribute, 2> attributes = {};
    unsigned attribute_count = 0;
    if (launch.cluster.x * launch.cluster.y * launch.cluster.z > 1) {
      cuda::LaunchAttribute& attribute = attributes[attribute_count++];
      attribute.id = cuda::LaunchAttribute::kClusterDimension;
      attribute.cluster = {launch.cluster.x, launch.cluster.y, launch.cluster.z};
    }
    if (launch.together) {
      cuda::LaunchAttribute& attribute = attributes[attribute_count++];
      attribute.id = cuda::LaunchAttribute::kCooperative;
      attribute.cooperative = 1;
    }
    const cuda::LaunchConfig config{.grid_x = launch.grid.x,
                                    .grid_y = launch.grid.y,
                                    .grid_z = launch.grid.z,
                                    .block_x = launch.block.x,
                                    .block_y = launch.block.y,
                                    .block_z = launch.block.z,
                                    .shared_bytes = launch.shared_bytes,
                                    .stream = handle(stream),
                                    .attributes = attribute_count > 0 ? attributes.data() : nullptr,
                                    .attribute_count = attribute_count};
    void* parameters[] = {const_cast<std::byte*>(launch.parameters.data())};
    Status s = driver_.status(driver_.launch(&config, function, parameters, nullptr), "cuLaunchKernelEx");
    if (!s.ok()) return {s.code(), fmt::format("{}: {}", launch.entry, s.sentence())};
    return s;
  }

  Status fill(Address address, std::uint32_t value, std::size_t words, Stream stream) override {
    return call("cuMemsetD32Async", driver_.fill_words, address, value, words, handle(stream));
  }

  Status allocate(std::size_t bytes, Address* address) override {
    cuda::DevicePointer pointer = 0;
    Status s = call("cuMemAlloc", driver_.allocate, &pointer, bytes);
    if (!s.ok()) return {s.code(), fmt::format("{} bytes: {}", bytes, s.sentence())};
    *address = pointer;
    return s;
  }

  void release(Address address) override {
    const Current current(driver_, context_);
    if (current.status().ok()) driver_.release(address);
  }

  Status upload(Address to, std::span<const std::byte> from, Stream stream) override {
    return call("cuMemcpyHtoDAsync", driver_.copy_to_device, to, from.data(), from.size(), handle(stream));
  }

  Status download(std::span<std::byte> to, Address from, Stream stream) override {
    return call("cuMemcpyDtoHAsync", driver_.copy_to_host, to.data(), from, to.size(), handle(stream));
  }

  Status wait(Stream stream) override {
    return call("cuStreamSynchronize", driver_.stream_wait, handle(stream));
  }

  Status open_stream(Stream* stream) override {
    cuda::StreamHandle opened = nullptr;
    Status s = call("cuStreamCreate", driver_.stream_create, &opened, 0u);
    *stream = opened;
    return s;
  }

  void close_stream(Stream stream) override {
    const Current current(driver_, context_);
    if (current.status().ok()) driver_.stream_destroy(handle(stream));
  }

  Status mark(int which, Stream stream) override {
    cuda::Event& event = marks_.at(static_cast<std::size_t>(which));
    if (!event) {
      if (Status s = call("cuEventCreate", driver_.event_create, &event, 0u); !s.ok()) return s;
    }
    return call("cuEventRecord", driver_.event_record, event, handle(stream));
  }

  Status elapsed(double* milliseconds) override {
    if (Status s = call("cuEventSynchronize", driver_.event_wait, marks_[1]); !s.ok()) return s;
    float value = 0;
    Status s = call("cuEventElapsedTime", driver_.event_elapsed, &value, marks_[0], marks_[1]);
    *milliseconds = value;
    return s;
  }

 private:
  template <typename F, typename... Arguments>
  Status call(const char* name, F function, Arguments... arguments) {
    const Current current(driver_, context_);
    if (!current.status().ok()) return current.status();
    return driver_.status(function(arguments...), name);
  }

  // Launches look their entry up in a list that never changes: loading an entry publishes a longer copy, and
  // the old lists live as long as the device. So no launch waits for another, and few lists are ever made.
  struct LoadedEntry {
    const KernelImage* image;
    std::string name;
    cuda::Function function;
  };
  using LoadedEntries = std::vector<LoadedEntry>;

  static cuda::Function find(const LoadedEntries* entries, const KernelImage& image, std::string_view name) {
    if (!entries) return nullptr;
    for (const LoadedEntry& entry : *entries) {
      if (entry.image == &image && entry.name == name) return entry.function;
    }
    return nullptr;
  }

  // Loads the image with the first of its entries, and the entry with its first launch. Needs the context
  // current.
  Status find(const KernelImage& image, std::string_view entry, std::uint32_t shared_bytes,
              cuda::Function* function) {
    *function = find(entries_.load(std::memory_order_acquire), image, entry);
    if (*function) return {};
    const std::lock_guard lock(loading_);
    const LoadedEntries* const now = entries_.load(std::memory_order_relaxed);
    *function = find(now, image, entry);  // another thread may have been first
    if (*function) return {};
    if (Status s = load(image, std::string(entry), shared_bytes, function); !s.ok())
      return {s.code(), fmt::format("{} of kernel image {}: {}", entry, image.name, s.sentence())};
    auto longer = now ? std::make_unique<LoadedEntries>(*now) : std::make_unique<LoadedEntries>();
    longer->push_back({&image, std::string(entry), *function});
    entries_.store(longer.get(), std::memory_order_release);
    lists_.push_back(std::move(longer));
    return {};
  }

  Status load(const KernelImage& image, const std::string& entry, std::uint32_t shared_bytes,
              cuda::Function* function) {
    if (image.arch != arch_)
      return internal_failure("it was compiled for another architecture than the device's");
    const RelaxedCapture relaxed(driver_);
    Status s;
    cuda::Library& library = libraries_[&image];
    if (!library) {
      s = driver_.status(
          driver_.library_load(&library, image.cubin.data(), nullptr, nullptr, 0, nullptr, nullptr, 0),
          "cuLibraryLoadData");
    }
    cuda::Kernel kernel = nullptr;
    if (s.ok())
      s = driver_.status(driver_.library_kernel(&kernel, library, entry.c_str()), "cuLibraryGetKernel");
    if (s.ok()) {
      s = driver_.status(driver_.kernel_set_attribute(cuda::kMaxDynamicSharedBytes,
                                                      static_cast<int>(shared_bytes), kernel, number_),
                         "cuKernelSetAttribute");
    }
    if (s.ok()) s = driver_.status(driver_.kernel_function(function, kernel), "cuKernelGetFunction");
    return s;
  }

  const Driver& driver_;
  const cuda::DeviceNumber number_;
  const Arch arch_;
  const int multiprocessors_;
  const cuda::Context context_;
  std::array<cuda::Event, 2> marks_ = {};

  std::atomic<const LoadedEntries*> entries_ = nullptr;
  std::mutex loading_;  // of what follows
  std::vector<std::unique_ptr<const LoadedEntries>> lists_;
  std::map<const KernelImage*, cuda::Library> libraries_;
};

}  // namespace

namespace {

Status find_device(const Driver& driver, int ordinal, cuda::DeviceNumber* number, std::string* name) {
  int count = 0;
  if (Status s = driver.status(driver.device_count(&count), "cuDeviceGetCount"); !s.ok()) return s;
  if (ordinal < 0 || ordinal >= count) {
    return invalid(fmt::format("CUDA device {} does not exist; this machine has {}{}", ordinal, count,
                               count == 0 ? "" : fmt::format("; accepted: 0 to {}", count - 1)));
  }
  char text[256] = {};
  Status s = driver.status(driver.device_get(number, ordinal), "cuDeviceGet");
  if (s.ok()) s = driver.status(driver.device_name(text, sizeof text, *number), "cuDeviceGetName");
  *name = text;
  return s;
}

}  // namespace

Status open_cuda(int ordinal, std::unique_ptr<Workbench>* workbench) {
  const Driver* driver = nullptr;
  if (Status s = cuda::open_driver(&driver); !s.ok()) return s;
  return cuda::open_device(*driver, ordinal, workbench);
}

Status cuda::open_device(const Driver& driver, int ordinal, std::unique_ptr<Workbench>* workbench) {
  cuda::DeviceNumber number = 0;
  std::string device_name;
  int major = 0, minor = 0, multiprocessors = 0;
  Status s = find_device(driver, ordinal, &number, &device_name);
  const std::pair<cuda::DeviceAttribute, int*> attributes[] = {
      {cuda::kCapabilityMajor, &major},
      {cuda::kCapabilityMinor, &minor},
      {cuda::kMultiprocessorCount, &multiprocessors}};
  for (const auto& [attribute, value] : attributes) {
    if (s.ok()) s = driver.status(driver.device_attribute(value, attribute, number), "cuDeviceGetAttribute");
  }
  if (!s.ok()) return s;

  Arch arch = Arch::kSm100;
  if (major == 9 && minor == 0) {
    arch = Arch::kSm90;
  } else if (major != 10 || minor != 0) {
    return unsupported(
        fmt::format("CUDA device {} ({}) has compute capability {}.{}; the kernels are compiled for exactly "
                    "9.0 (Hopper) and 10.0 (Blackwell)",
                    ordinal, device_name, major, minor));
  }
  cuda::Context context = nullptr;
  s = driver.status(driver.primary_context_retain(&context, number), "cuDevicePrimaryCtxRetain");
  if (!s.ok()) return s;
  *workbench = std::make_unique<CudaDevice>(driver, number, arch, multiprocessors, context);
  return {};
}

Status identify_cuda(int ordinal, CudaCard* card) {
  const Driver* driver = nullptr;
  if (Status s = cuda::open_driver(&driver); !s.ok()) return s;
  cuda::DeviceNumber number = 0;
  if (Status s = find_device(*driver, ordinal, &number, &card->name); !s.ok()) return s;
  char bus[32] = {};
  Status s = driver->status(driver->device_bus(bus, sizeof bus, number), "cuDeviceGetPCIBusId");
  card->bus = bus;
  return s;
}

}  // namespace flashback
