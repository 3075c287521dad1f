// Loops over integers and comparisons for the baseline (SSE2, NEON).
#define PINNACE_LEVEL generic
#include "backends/cpu/binary/plain_loops_body.h"
