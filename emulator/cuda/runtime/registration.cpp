// What a program tells the runtime before main() about the device code it carries: nvcc writes these calls.
// They make no context.
#include <map>
#include <mutex>

#include "emulator/cuda/runtime/face.h"

namespace flashback::emulator::cuda::runtime {
namespace {

struct Symbol {
  Module* module;
  const char* name;  // in the PTX
};

class Registry {
 public:
  void add_function(const void* host, Symbol symbol) {
    const std::lock_guard lock(mutex_);
    functions_[host] = symbol;
  }
  void add_variable(const void* host, Symbol symbol) {
    const std::lock_guard lock(mutex_);
    variables_[host] = symbol;
  }
  void remove(const Module* module) {
    const std::lock_guard lock(mutex_);
    std::erase_if(functions_, [=](const auto& entry) { return entry.second.module == module; });
    std::erase_if(variables_, [=](const auto& entry) { return entry.second.module == module; });
  }
  Symbol function(const void* host) const { return find(functions_, host, Error::kInvalidDeviceFunction); }
  Symbol variable(const void* host) const { return find(variables_, host, Error::kInvalidSymbol); }

 private:
  using Symbols = std::map<const void*, Symbol>;
  Symbol find(const Symbols& symbols, const void* host, Error error) const {
    const std::lock_guard lock(mutex_);
    const auto found = symbols.find(host);
    require(found != symbols.end(), error);
    return found->second;
  }

  mutable std::mutex mutex_;
  Symbols functions_, variables_;
};

Registry& registry() {
  static auto* registry = new Registry;  // programs unregister from destructors
  return *registry;
}

}  // namespace

Function& function_of(const void* symbol) {
  if (process().functions.has(symbol)) return process().functions.of(symbol);
  const auto [module, name] = registry().function(symbol);
  Function* function = module->function(name);
  require(function != nullptr, Error::kInvalidDeviceFunction);
  return *function;
}

GlobalMemory::Range variable_of(const void* symbol) {
  const auto [module, name] = registry().variable(symbol);
  const GlobalMemory::Range range = module->variable(name);
  require(range.bytes() != 0, Error::kInvalidSymbol);
  return range;
}

}  // namespace flashback::emulator::cuda::runtime

using namespace flashback::emulator::cuda;
using namespace flashback::emulator::cuda::runtime;

extern "C" {

void** __cudaRegisterFatBinary(void* wrapper) {
  Module* module = nullptr;
  attempt([&] { module = process().modules.make(wrapper); });
  return reinterpret_cast<void**>(module);
}

void __cudaRegisterFatBinaryEnd(void**) {}

void __cudaUnregisterFatBinary(void** handle) {
  // The code stays: destructors that run later may still ask for it.
  registry().remove(reinterpret_cast<Module*>(handle));
}

void __cudaRegisterFunction(void** handle, const char* host, char*, const char* name, int, uint3*, uint3*,
                            dim3*, dim3*, int*) {
  registry().add_function(host, {reinterpret_cast<Module*>(handle), name});
}

void __cudaRegisterVar(void** handle, char* host, char*, const char* name, int, size_t, int, int) {
  registry().add_variable(host, {reinterpret_cast<Module*>(handle), name});
}

// The program reaches a managed variable through a pointer, which is set here.
void __cudaRegisterManagedVar(void** handle, void** host, char*, const char* name, int, size_t, int, int) {
  attempt([&] {
    auto* module = reinterpret_cast<Module*>(handle);
    registry().add_variable(host, {module, name});
    *host = reinterpret_cast<void*>(module->variable(name).begin);
  });
}

char __cudaInitModule(void**) {
  return 1;
}

}  // extern "C"
