// The 8-bit loops of resize for the baseline.
#define PINNACE_LEVEL generic
#include "backends/cpu/resize/resize_i8_body.h"
