// Conversions of element types for the baseline.
#define PINNACE_LEVEL generic
#include "backends/cpu/cast/cast_loops_body.h"
