// What is timed: ours and its peers, behind one face.
#pragma once

#include <memory>
#include <string>

#include "bench/cell.h"
#include "device/device.h"
#include "flashback/flashback.h"

namespace flashback::bench {

// One pass, of the cell's direction, whose tensors are in place.
struct Pass {
  Cell cell;
  Tensors tensors;
  Address cu_seqlens = 0;  // of queries and of keys, where the cell is packed; 0: it is not
  Stream stream = nullptr;
};

class Contender {
 public:
  virtual ~Contender() = default;
  virtual const std::string& name() const = 0;
  // From now on enqueue() means this pass.
  virtual void begin(const Pass& pass) = 0;
  // Everything that belongs to a pass, onto its stream. Throws a Failure.
  virtual void enqueue() = 0;
};

// This library, by its public interface. The workspace is allocated and filled with NaN by begin().
std::unique_ptr<Contender> make_ours(flashback_device* device);

// A shared library with the function of bench/peer.h for passes of a direction, called by its name without
// directory and ending. `ordinal` is that of the CUDA device. Throws a Failure when it cannot be opened.
std::unique_ptr<Contender> open_peer(const std::string& file, int ordinal, Direction direction);

}  // namespace flashback::bench
