// Finds and opens the emulator, a shared library of its own, so that who has a GPU carries none of it.
#include "device/emulator.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <string>

#include "device/device.h"

namespace flashback {
namespace {

// The directory of the file that holds this code: libflashback.so, or a program that has it linked in.
std::string own_directory() {
  Dl_info info;
  if (dladdr(reinterpret_cast<const void*>(&own_directory), &info) == 0 || !info.dli_fname) return ".";
  const std::string file = info.dli_fname;
  const std::size_t slash = file.rfind('/');
  return slash == std::string::npos ? "." : file.substr(0, slash);
}

// Beside the code, in the lib directory beside a bin directory, or wherever the loader looks. Never closed: a
// workbench that it made may live as long as the process.
Status load(OpenEmulator* open) {
  const std::string here = own_directory();
  std::string reason;
  for (const std::string& directory : {here + "/", here + "/../lib/", here + "/../", std::string()}) {
    if (void* library = dlopen((directory + kEmulatorLibrary).c_str(), RTLD_NOW | RTLD_LOCAL)) {
      *open = reinterpret_cast<OpenEmulator>(dlsym(library, kEmulatorSymbol));
      if (*open) return {};
      return device_failure(fmt::format("{}{} is of another version: it has no {}", directory,
                                        kEmulatorLibrary, kEmulatorSymbol));
    }
    if (reason.empty()) reason = dlerror();
  }
  return device_failure(
      fmt::format("the emulator could not be opened: {}; it is looked for in {}, in ../lib and .. of "
                  "that, and where the loader looks (LD_LIBRARY_PATH)",
                  reason, here));
}

}  // namespace

Status open_emulator(Arch arch, int threads, std::unique_ptr<Workbench>* workbench) {
  struct Opened {
    OpenEmulator open = nullptr;
    Status status;
    Opened() : status(load(&open)) {}
  };
  static const Opened opened;
  if (!opened.status.ok()) return opened.status;
  Status status;
  opened.open(arch, threads, &status, workbench);
  return status;
}

}  // namespace flashback
