// Functions of the driver by their names.
#include <dlfcn.h>
#include <fmt/format.h>

#include <cstring>
#include <string>

#include "emulator/cuda/driver/face.h"
#include "emulator/cuda/version.h"

namespace flashback::emulator::cuda::driver {
namespace {

// A function whose parameters have changed: what it is called in the library, from which CUDA on.
struct Revision {
  const char* name;
  int since;
  const char* symbol;
};
constexpr Revision kRevisions[] = {
    {"cuGetProcAddress", 12000, "cuGetProcAddress_v2"},
    {"cuCtxCreate", 13000, "cuCtxCreate_v4"},
    {"cuMemAdvise", 13000, "cuMemAdvise_v2"},
    {"cuMemPrefetchAsync", 13000, "cuMemPrefetchAsync_v2"},
    {"cuMemcpyBatchAsync", 13000, "cuMemcpyBatchAsync_v2"},
};

void* symbol_of(const std::string& name) {
  Dl_info self;
  dladdr(reinterpret_cast<void*>(&cuGetProcAddress), &self);
  static void* library = dlopen(self.dli_fname, RTLD_NOW | RTLD_NOLOAD);
  return dlsym(library, name.c_str());
}

// Null when there is none that a program of CUDA `version` can call.
void* find(const std::string& name, int version) {
  for (const Revision& revision : kRevisions) {
    if (name == revision.name) return version >= revision.since ? symbol_of(revision.symbol) : nullptr;
  }
  // Later forms of the others, which came with 64-bit addresses, have replaced the first in every program.
  for (const char* suffix : {"_v3", "_v2", ""}) {
    if (void* found = symbol_of(name + suffix)) return found;
  }
  return nullptr;
}

}  // namespace
}  // namespace flashback::emulator::cuda::driver

using namespace flashback::emulator::cuda;
using namespace flashback::emulator::cuda::driver;

CUresult cuDriverGetVersion(int* version) {
  return result_of(attempt([&] { give(version, kDriverVersion); }));
}

CUresult cuGetProcAddress(const char* name, void** function, int version, cuuint64_t,
                          CUdriverProcAddressQueryResult* status) {
  return result_of(attempt([&] {
    require(name != nullptr && function != nullptr && std::strncmp(name, "cu", 2) == 0);
    *function = find(name, version);
    const bool found = *function != nullptr;
    if (status != nullptr)
      *status = found ? CU_GET_PROC_ADDRESS_SUCCESS : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    require(found, Error::kNotFound);
  }));
}

// The way in for CUDA's own libraries, among them a runtime that is linked into the program.
CUresult cuGetExportTable(const void** table, const CUuuid*) {
  return result_of(attempt([&] {
    if (table != nullptr) *table = nullptr;
    refuse(Error::kNotFound, "the program brings a CUDA runtime of its own: link it with -cudart shared");
  }));
}
