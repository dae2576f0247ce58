// Modules and libraries, which are one here.
#include "emulator/cuda/module.h"

#include <algorithm>

#include "emulator/cuda/driver/face.h"

namespace flashback::emulator::cuda::driver {
namespace {

Module& module_of(const void* handle) {
  return process().modules.of(handle);
}

template <class Handle>
Handle function(const void* module, const char* name) {
  require(name != nullptr);
  Function* function = module_of(module).function(name);
  require(function != nullptr, Error::kNotFound);
  return reinterpret_cast<Handle>(function);
}

void give_variable(CUdeviceptr* address, std::size_t* bytes, const void* module, const char* name) {
  require(name != nullptr);
  const GlobalMemory::Range range = module_of(module).variable(name);
  require(range.bytes() != 0, Error::kNotFound);
  if (address != nullptr) *address = range.begin;
  if (bytes != nullptr) *bytes = range.bytes();
}

template <class Handle>
void give_functions(Handle* functions, unsigned count, const void* handle) {
  require(functions != nullptr);
  Module& module = module_of(handle);
  const std::vector<std::string_view> names = module.entries();
  for (unsigned i = 0; i < std::min<std::size_t>(count, names.size()); ++i) {
    functions[i] = reinterpret_cast<Handle>(module.function(names[i]));
  }
}

CUmodule as_module(Module* module) {
  return reinterpret_cast<CUmodule>(module);
}
CUlibrary as_library(Module* module) {
  return reinterpret_cast<CUlibrary>(module);
}

}  // namespace
}  // namespace flashback::emulator::cuda::driver

using namespace flashback::emulator::cuda;
using namespace flashback::emulator::cuda::driver;

CUresult cuModuleLoad(CUmodule* module, const char* file) {
  return answer_in_context([&] { give(module, as_module(load_module_file(file))); });
}
CUresult cuModuleLoadData(CUmodule* module, const void* image) {
  return answer_in_context([&] { give(module, as_module(load_module(image))); });
}
// Options are the assembler's; there is none.
CUresult cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned, CUjit_option*, void**) {
  return cuModuleLoadData(module, image);
}
CUresult cuModuleLoadFatBinary(CUmodule* module, const void* image) {
  return cuModuleLoadData(module, image);
}
CUresult cuModuleUnload(CUmodule module) {
  return answer_in_context([&] { process().modules.remove(module); });
}
CUresult cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name) {
  return answer_in_context([&] { give(function, driver::function<CUfunction>(module, name)); });
}
CUresult cuModuleGetFunctionCount(unsigned* count, CUmodule module) {
  return answer_in_context([&] { give(count, module_of(module).entries().size()); });
}
CUresult cuModuleEnumerateFunctions(CUfunction* functions, unsigned count, CUmodule module) {
  return answer_in_context([&] { give_functions(functions, count, module); });
}
CUresult cuModuleGetGlobal(CUdeviceptr* address, std::size_t* bytes, CUmodule module, const char* name) {
  return answer_in_context([&] { give_variable(address, bytes, module, name); });
}
CUresult cuModuleGetLoadingMode(CUmoduleLoadingMode* mode) {
  return answer([&] { give(mode, CU_MODULE_LAZY_LOADING); });
}

CUresult cuLibraryLoadData(CUlibrary* library, const void* image, CUjit_option*, void**, unsigned,
                           CUlibraryOption*, void**, unsigned) {
  return answer([&] { give(library, as_library(load_module(image))); });
}
CUresult cuLibraryLoadFromFile(CUlibrary* library, const char* file, CUjit_option*, void**, unsigned,
                               CUlibraryOption*, void**, unsigned) {
  return answer([&] { give(library, as_library(load_module_file(file))); });
}
CUresult cuLibraryUnload(CUlibrary library) {
  return answer([&] { process().modules.remove(library); });
}
CUresult cuLibraryGetKernel(CUkernel* kernel, CUlibrary library, const char* name) {
  return answer([&] { give(kernel, driver::function<CUkernel>(library, name)); });
}
CUresult cuLibraryGetKernelCount(unsigned* count, CUlibrary library) {
  return answer([&] { give(count, module_of(library).entries().size()); });
}
CUresult cuLibraryEnumerateKernels(CUkernel* kernels, unsigned count, CUlibrary library) {
  return answer([&] { give_functions(kernels, count, library); });
}
CUresult cuLibraryGetModule(CUmodule* module, CUlibrary library) {
  return answer_in_context([&] { give(module, as_module(&module_of(library))); });
}
CUresult cuLibraryGetGlobal(CUdeviceptr* address, std::size_t* bytes, CUlibrary library, const char* name) {
  return answer_in_context([&] { give_variable(address, bytes, library, name); });
}
CUresult cuLibraryGetManaged(CUdeviceptr* address, std::size_t* bytes, CUlibrary library, const char* name) {
  return answer([&] { give_variable(address, bytes, library, name); });
}
