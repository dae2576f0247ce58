// Our declarations of the driver against NVIDIA's, where a toolkit is installed. Compiling is the test.
#include "device/cuda_driver.h"

#include <gtest/gtest.h>

#if __has_include(<cuda.h>)
#include <cuda.h>

#include <cstddef>
#include <type_traits>

namespace flashback::cuda {
namespace {

constexpr bool same(auto ours, auto theirs) {
  return static_cast<int>(ours) == static_cast<int>(theirs);
}

static_assert(same(kMultiprocessorCount, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT));
static_assert(same(kCapabilityMajor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR));
static_assert(same(kCapabilityMinor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR));
static_assert(same(kMaxDynamicSharedBytes, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES));
static_assert(same(kCaptureRelaxed, CU_STREAM_CAPTURE_MODE_RELAXED));
static_assert(same(kMapFloat16, CU_TENSOR_MAP_DATA_TYPE_FLOAT16));
static_assert(same(kMapFloat32, CU_TENSOR_MAP_DATA_TYPE_FLOAT32));
static_assert(same(kMapBfloat16, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16));
static_assert(same(kMapFloat32Ftz, CU_TENSOR_MAP_DATA_TYPE_FLOAT32_FTZ));
static_assert(same(kMapTfloat32, CU_TENSOR_MAP_DATA_TYPE_TFLOAT32));
static_assert(same(kMapTfloat32Ftz, CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ));
static_assert(same(kMapNoInterleave, CU_TENSOR_MAP_INTERLEAVE_NONE));
static_assert(same(kMapNoSwizzle, CU_TENSOR_MAP_SWIZZLE_NONE));
static_assert(same(kMapSwizzle32, CU_TENSOR_MAP_SWIZZLE_32B));
static_assert(same(kMapSwizzle64, CU_TENSOR_MAP_SWIZZLE_64B));
static_assert(same(kMapSwizzle128, CU_TENSOR_MAP_SWIZZLE_128B));
static_assert(same(kMapPromote128, CU_TENSOR_MAP_L2_PROMOTION_L2_128B));
static_assert(same(kMapFillZero, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE));
static_assert(same(LaunchAttribute::kClusterDimension, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION));
static_assert(same(LaunchAttribute::kCooperative, CU_LAUNCH_ATTRIBUTE_COOPERATIVE));

static_assert(sizeof(Result) == sizeof(CUresult) && CUDA_SUCCESS == 0);
static_assert(sizeof(DeviceNumber) == sizeof(CUdevice) && sizeof(DevicePointer) == sizeof(CUdeviceptr));

static_assert(sizeof(LaunchAttribute) == sizeof(CUlaunchAttribute) && alignof(LaunchAttribute) <= 8);
static_assert(offsetof(LaunchAttribute, cluster) == offsetof(CUlaunchAttribute, value) &&
              offsetof(LaunchAttribute, cooperative) == offsetof(CUlaunchAttribute, value) &&
              same(sizeof(LaunchAttribute::cooperative), sizeof(CUlaunchAttributeValue::cooperative)));
static_assert(sizeof(LaunchConfig) == sizeof(CUlaunchConfig));
static_assert(offsetof(LaunchConfig, grid_x) == offsetof(CUlaunchConfig, gridDimX) &&
              offsetof(LaunchConfig, block_x) == offsetof(CUlaunchConfig, blockDimX) &&
              offsetof(LaunchConfig, shared_bytes) == offsetof(CUlaunchConfig, sharedMemBytes) &&
              offsetof(LaunchConfig, stream) == offsetof(CUlaunchConfig, hStream) &&
              offsetof(LaunchConfig, attributes) == offsetof(CUlaunchConfig, attrs) &&
              offsetof(LaunchConfig, attribute_count) == offsetof(CUlaunchConfig, numAttrs));

// The arguments of two functions are of one size, pair by pair: what the calling convention sees of
// pointers, integers and enumerations.
template <typename Ours, typename Theirs>
struct SameArguments : std::false_type {};
template <typename... Ours, typename... Theirs>
struct SameArguments<Result (*)(Ours...), CUresult (*)(Theirs...)> {
  static constexpr bool alike() {
    if constexpr (sizeof...(Ours) != sizeof...(Theirs))
      return false;
    else
      return ((sizeof(Ours) == sizeof(Theirs) && std::is_pointer_v<Ours> == std::is_pointer_v<Theirs>)&&...);
  }
  static constexpr bool value = alike();
};

#define FLASHBACK_COMPARE(member, symbol, parameters) \
  static_assert(SameArguments<decltype(Driver::member), decltype(&::symbol)>::value, #symbol);
FLASHBACK_CUDA_FUNCTIONS(FLASHBACK_COMPARE)
#undef FLASHBACK_COMPARE

}  // namespace
}  // namespace flashback::cuda
#else
TEST(CudaDriver, DeclarationsAreThoseOfTheToolkit) {
  GTEST_SKIP() << "no <cuda.h> on this machine";
}
#endif

TEST(CudaDriver, RefusesInOneSentenceWhereThereIsNone) {
  const flashback::cuda::Driver* driver = nullptr;
  const flashback::Status status = flashback::cuda::open_driver(&driver);
  if (status.ok()) GTEST_SKIP() << "this machine has a CUDA driver";
  EXPECT_EQ(status.code(), flashback::Code::kDevice);
  EXPECT_NE(status.sentence().find("CUDA driver"), std::string::npos) << status.sentence();
}
