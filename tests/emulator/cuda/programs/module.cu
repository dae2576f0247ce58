// PTX that the program brings along, by the driver's interface: modules, libraries, variables, both kinds of
// parameters.
#include <cuda.h>

#include <cstdio>
#include <cstdlib>

#define MUST(call)                                                  \
  do {                                                              \
    const CUresult must_error = (call);                             \
    if (must_error != CUDA_SUCCESS) {                               \
      const char* must_name;                                        \
      cuGetErrorName(must_error, &must_name);                       \
      std::printf("line %d: %s: %s\n", __LINE__, #call, must_name); \
      std::exit(3);                                                 \
    }                                                               \
  } while (false)
#define SAY(call)                             \
  do {                                        \
    const char* say_name;                     \
    cuGetErrorName(call, &say_name);          \
    std::printf("%s: %s\n", #call, say_name); \
  } while (false)

const char* const kPtx = R"(.version 8.0
.target sm_80
.address_size 64
.global .align 4 .u32 bias = 100;
.visible .entry fill(.param .u64 to, .param .u8 small, .param .u32 value)
{
  .reg .b32 %r<6>;
  .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [to];
  ld.param.u8 %r1, [small];
  ld.param.u32 %r2, [value];
  ld.global.u32 %r3, [bias];
  mov.u32 %r4, %tid.x;
  add.u32 %r5, %r1, %r2;
  add.u32 %r5, %r5, %r3;
  add.u32 %r5, %r5, %r4;
  mul.wide.u32 %rd2, %r4, 4;
  add.u64 %rd3, %rd1, %rd2;
  st.global.u32 [%rd3], %r5;
  ret;
}
)";

// As H200s say: without a cluster it is refused, one of a single CTA is a cluster.
const char* const kClustered = R"(.version 8.0
.target sm_90
.address_size 64
.visible .entry clustered()
.explicitcluster
{
  ret;
}
)";

int main() {
  int count;
  SAY(cuDeviceGetCount(&count));
  MUST(cuInit(0));
  CUdevice device;
  CUcontext context;
  MUST(cuDeviceGet(&device, 0));
  CUdeviceptr memory;
  SAY(cuMemAlloc(&memory, 256));
  MUST(cuDevicePrimaryCtxRetain(&context, device));
  MUST(cuCtxPushCurrent(context));
  MUST(cuMemAlloc(&memory, 256));

  CUmodule module;
  CUfunction fill;
  MUST(cuModuleLoadData(&module, kPtx));
  MUST(cuModuleGetFunction(&fill, module, "fill"));
  SAY(cuModuleGetFunction(&fill, module, "empty"));
  CUdeviceptr bias;
  std::size_t bytes;
  MUST(cuModuleGetGlobal(&bias, &bytes, module, "bias"));
  MUST(cuMemsetD32(bias, 200, 1));

  unsigned char small = 3;
  unsigned value = 4000;
  void* parameters[] = {&memory, &small, &value};
  MUST(cuLaunchKernel(fill, 1, 1, 1, 64, 1, 1, 0, nullptr, parameters, nullptr));
  unsigned out[64];
  MUST(cuMemcpyDtoH(out, memory, sizeof out));
  std::printf("%zu bytes of bias, out %u to %u\n", bytes, out[0], out[63]);

  struct {
    CUdeviceptr to;
    unsigned char small;
    unsigned value;
  } packed = {memory, 1, 2};
  std::size_t packed_bytes = sizeof packed;
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &packed, CU_LAUNCH_PARAM_BUFFER_SIZE, &packed_bytes,
                   CU_LAUNCH_PARAM_END};
  CUlibrary library;
  CUkernel kernel;
  MUST(cuLibraryLoadData(&library, kPtx, nullptr, nullptr, 0, nullptr, nullptr, 0));
  MUST(cuLibraryGetKernel(&kernel, library, "fill"));
  CUlaunchConfig config = {};
  config.gridDimX = config.gridDimY = config.gridDimZ = 1;
  config.blockDimX = 64;
  config.blockDimY = config.blockDimZ = 1;
  MUST(cuLaunchKernelEx(&config, reinterpret_cast<CUfunction>(kernel), nullptr, extra));
  MUST(cuMemcpyDtoH(out, memory, sizeof out));
  std::printf("out %u to %u\n", out[0], out[63]);

  SAY(cuModuleLoadData(&module, ".version 8.0\n.target sm_80\n.entry broken(\n"));
  SAY(cuModuleLoadData(&module, ".version 8.7\n.target sm_120a\n.address_size 64\n"));
  SAY(cuLaunchKernel(fill, 1, 1, 1, 2048, 1, 1, 0, nullptr, parameters, nullptr));
  CUfunction clustered;
  MUST(cuModuleLoadData(&module, kClustered));
  MUST(cuModuleGetFunction(&clustered, module, "clustered"));
  SAY(cuLaunchKernel(clustered, 2, 1, 1, 32, 1, 1, 0, nullptr, nullptr, nullptr));
  CUlaunchAttribute one = {};
  one.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
  one.value.clusterDim.x = one.value.clusterDim.y = one.value.clusterDim.z = 1;
  config.attrs = &one;
  config.numAttrs = 1;
  SAY(cuLaunchKernelEx(&config, clustered, nullptr, nullptr));
  SAY(cuModuleUnload(reinterpret_cast<CUmodule>(&config)));
}
