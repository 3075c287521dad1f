// Rows of an 8-bit softmax for the baseline: 4 floats in a register.
#define PINNACE_LEVEL generic
#define PINNACE_LANES 4
#define PINNACE_VNNI 0
#include "backends/cpu/softmax/softmax_i8_body.h"
