// SVE with registers of any length, whose kernels are written by hand; activation_sve.h has their functions.
#pragma once

#define PINNACE_ISA sve
#define PINNACE_REGISTERS 32
