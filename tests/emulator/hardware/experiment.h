// An experiment: a launch that is the same on the emulator and on a GPU, with the buffers that are compared
// afterwards.
//
// Its modules have one entry, `test`, with one parameter: the tensor maps (128 bytes each), then the address
// of each buffer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "device/device.h"
#include "tests/emulator/machine/instruction_case.h"

namespace flashback::emulator::testing {

struct Buffer {
  std::string name;
  ValueType type;
  std::vector<std::byte> initial;
  std::size_t compared = 0;  // elements at its start that are compared; the rest is not looked at
  std::uint64_t units_in_last_place = 0;  // by which they may differ
};

// A map over the whole of a buffer: `request.base` is filled in at the launch.
struct Map {
  TensorMapRequest request;
  std::size_t buffer;
};

struct Experiment {
  std::string name;
  std::string text;                  // what its modules are made from, where that is a file
  std::vector<std::string> modules;  // each must give the same
  Dim3 grid, cluster, block;
  std::uint32_t shared_bytes = 0;
  std::vector<Map> maps;
  std::vector<Buffer> buffers;
};

// The compared part of each buffer, in order; empty where nothing is compared.
using Results = std::vector<std::vector<std::byte>>;

// Runs one of the experiment's modules.
Status run(Workbench& workbench, const Experiment& experiment, const std::string& module, Results* results);

// Changes with anything that a person would change: the text or the modules, the extents, the operands.
std::uint64_t fingerprint(const Experiment& experiment);

// An experiment by its name. Operands take up to a fifth of a second to make, so each is built when it is
// run.
struct Recipe {
  std::string name;
  std::function<Experiment()> make;  // without its name

  Experiment build() const {
    Experiment experiment = make();
    experiment.name = name;
    return experiment;
  }
};

// What an H200 can run, in the order of their names. `source` is the root of the repository, which holds the
// texts.
std::vector<Recipe> all_experiments(const std::string& source);

// By kind.
std::vector<Recipe> text_experiments(const std::string& source);  // instructions/*.ptx without a fault
std::vector<Recipe> sweep_experiments();                          // elementwise instructions on many operands
std::vector<Recipe> box_experiments();                            // boxes of tensor maps
std::vector<Recipe> conversion_experiments();                     // tensor maps that change words
std::vector<Recipe> reduction_experiments();                      // reductions in memory
std::vector<Recipe> product_experiments();                        // wgmma: arithmetic and layouts
std::vector<Recipe> frame_experiments();                          // parameters, register pools

}  // namespace flashback::emulator::testing
