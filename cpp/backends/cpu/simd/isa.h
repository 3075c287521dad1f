// The instruction set that a body is compiled for: PINNACE_ISA is its name in base/cpu_features.h and cmake/isa.cmake,
// which gives PINNACE_ISA_HEADER, the header of this folder with its constants. Bodies (*.body.cc) are compiled once
// per set that their family's CMakeLists.txt names; all that they define stands in the namespace PINNACE_ISA, but for
// the one table that the rest of the back end knows by PINNACE_FOR_ISA(name), which is name_avx2 and so on. They and
// what they include define no inline function outside of that namespace, so that none is compiled with flags that
// another processor cannot run.
#pragma once

#include PINNACE_ISA_HEADER

#ifndef PINNACE_VNNI
#define PINNACE_VNNI 0  // vpdpbusd: dot products of four unsigned by four signed bytes
#endif
#ifndef PINNACE_SDOT
#define PINNACE_SDOT 0  // SDOT: dot products of four signed bytes
#endif
#ifndef PINNACE_USDOT
#define PINNACE_USDOT 0  // USDOT: dot products of four unsigned by four signed bytes
#endif
#ifndef PINNACE_BF16_PAIRS
#define PINNACE_BF16_PAIRS 0  // dot products of pairs of bfloat16, summed in float32
#endif

#ifndef PINNACE_TILES
#define PINNACE_TILES 0  // tiles of 16 rows of 64 bytes (AMX); without, they are modelled (tiles.h)
#endif

#define PINNACE_FOR_ISA_(name, isa) name##_##isa
#define PINNACE_FOR_EXPANDED_ISA(name, isa) PINNACE_FOR_ISA_(name, isa)
#define PINNACE_FOR_ISA(name) PINNACE_FOR_EXPANDED_ISA(name, PINNACE_ISA)
