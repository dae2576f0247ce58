// Code that a program has loaded, and its kernels as the program knows them: CUmodule and CUlibrary,
// CUfunction and CUkernel are these.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "emulator/cuda/gpu.h"
#include "emulator/machine/loaded_module.h"

namespace flashback::emulator::cuda {

class Module;

class Function {
 public:
  Function(Module* module, std::string name) : module_(*module), name_(std::move(name)) {}

  Module& module() const { return module_; }
  const std::string& name() const { return name_; }
  // Decoded when first asked for. Refuses an entry with an instruction that is not executed.
  const Program& program();

  // CUfunction_attribute; the runtime numbers them alike. Refuse what CUDA has no such attribute of, or does
  // not let be set.
  int attribute(int id);
  void set_attribute(int id, int value);

 private:
  Module& module_;
  std::string name_;
  const Program* program_ = nullptr;
  std::map<int, int> set_;  // attributes
};

class Module {
 public:
  // `image` is a fat binary, a wrapper of one as nvcc writes it, or PTX text with a zero at its end. It is
  // parsed when something of it is first asked for.
  explicit Module(const void* image) : image_(image) {}
  ~Module();
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  // Each refuses what is no image, and PTX that cannot be parsed.
  // Null when it has none of that name.
  Function* function(std::string_view name);
  std::vector<std::string_view> entries();
  // Empty when it has none of that name.
  GlobalMemory::Range variable(std::string_view name);
  LoadedModule& loaded();

 private:
  const void* image_;
  std::mutex mutex_;
  std::unique_ptr<LoadedModule> loaded_;
  std::map<std::string, Function*, std::less<>> functions_;
};

// A module of the program's own, parsed at once: `image` may go. Refuses what cannot be loaded.
Module* load_module(const void* image);
Module* load_module_file(const char* path);

}  // namespace flashback::emulator::cuda
