// The colours of the kernels' sections: one matter one hue in every picture, what loads or stores it a
// lighter one.
#pragma once

#include "emulator/trace/trace.h"

namespace flashback::program {

inline constexpr emulator::trace::Colour kSectionColours[] = {
    // Products. Hopper makes two in one section.
    {"S", "#2f62a8"},
    {"S, dP", "#2f62a8"},
    {"dP", "#14808a"},
    {"dV", "#8656a8"},
    {"dV, dK", "#8656a8"},
    {"dK", "#e07b1a"},
    {"dQ", "#8a5a3c"},
    // What warps make of them.
    {"load S", "#86aede"},
    {"softmax", "#d64545"},
    {"store P", "#f0a09a"},
    {"load dP", "#74c2c4"},
    {"dS", "#a88a08"},
    {"store dS", "#dcc766"},
    {"send dS", "#dcc766"},
    {"load dQ", "#c09a80"},
    {"store dQ", "#c09a80"},
    {"add dQ", "#4f9646"},
    {"store gradient", "#4b4b63"},
    {"add dV, dK", "#4b4b63"},
    // Loads.
    {"Q", "#5757b3"},
    {"Q, dO", "#5757b3"},
    {"lse", "#a5a5e0"},
    {"dO", "#a8427c"},
    {"delta", "#dd93c0"},
};

}  // namespace flashback::program
