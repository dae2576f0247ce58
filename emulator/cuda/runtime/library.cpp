// Libraries: code that the program loads by itself.
#include <algorithm>

#include "emulator/cuda/runtime/face.h"

namespace flashback::emulator::cuda::runtime {
namespace {

Module& module_of(cudaLibrary_t library) {
  return process().modules.of(library);
}

void give_variable(void** address, size_t* bytes, cudaLibrary_t library, const char* name) {
  require(name != nullptr);
  const GlobalMemory::Range range = module_of(library).variable(name);
  require(range.bytes() != 0, Error::kNotFound);
  if (address != nullptr) *address = reinterpret_cast<void*>(range.begin);
  if (bytes != nullptr) *bytes = range.bytes();
}

cudaLibrary_t handle(Module* module) {
  return reinterpret_cast<cudaLibrary_t>(module);
}

}  // namespace
}  // namespace flashback::emulator::cuda::runtime

using namespace flashback::emulator::cuda;
using namespace flashback::emulator::cuda::runtime;

// Options are the assembler's; there is none.
cudaError_t cudaLibraryLoadData(cudaLibrary_t* library, const void* image, cudaJitOption*, void**, unsigned,
                                cudaLibraryOption*, void**, unsigned) {
  return answer([&] { give(library, handle(load_module(image))); });
}

cudaError_t cudaLibraryLoadFromFile(cudaLibrary_t* library, const char* file, cudaJitOption*, void**,
                                    unsigned, cudaLibraryOption*, void**, unsigned) {
  return answer([&] { give(library, handle(load_module_file(file))); });
}

cudaError_t cudaLibraryUnload(cudaLibrary_t library) {
  return answer([&] { process().modules.remove(library); });
}

cudaError_t cudaLibraryGetKernel(cudaKernel_t* kernel, cudaLibrary_t library, const char* name) {
  return answer([&] {
    require(name != nullptr);
    Function* function = module_of(library).function(name);
    require(function != nullptr, Error::kNotFound);
    give(kernel, reinterpret_cast<cudaKernel_t>(function));
  });
}

cudaError_t cudaLibraryGetKernelCount(unsigned* count, cudaLibrary_t library) {
  return answer([&] { give(count, module_of(library).entries().size()); });
}

cudaError_t cudaLibraryEnumerateKernels(cudaKernel_t* kernels, unsigned count, cudaLibrary_t library) {
  return answer([&] {
    require(kernels != nullptr);
    Module& module = module_of(library);
    const std::vector<std::string_view> names = module.entries();
    for (unsigned i = 0; i < std::min<size_t>(count, names.size()); ++i) {
      kernels[i] = reinterpret_cast<cudaKernel_t>(module.function(names[i]));
    }
  });
}

cudaError_t cudaLibraryGetGlobal(void** address, size_t* bytes, cudaLibrary_t library, const char* name) {
  return answer([&] { give_variable(address, bytes, library, name); });
}

cudaError_t cudaLibraryGetManaged(void** address, size_t* bytes, cudaLibrary_t library, const char* name) {
  return answer([&] { give_variable(address, bytes, library, name); });
}
