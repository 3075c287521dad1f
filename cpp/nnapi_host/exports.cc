// What the library exports. Without a test bench a call costs one branch that always goes the same way.
#include "nnapi_host/bench/bench.h"

using namespace pinnace::nnapi_host;

#define EXPORTED(symbol, name, result, parameters, ...)                                                \
  result symbol parameters {                                                                           \
    if (bench_is_off()) [[likely]]                                                                     \
      return plain::name(__VA_ARGS__);                                                                 \
    Bench* const bench = Bench::get();                                                                 \
    return bench ? bench->call(Function::name, plain::name, ##__VA_ARGS__) : plain::name(__VA_ARGS__); \
  }
#define FUNCTION(name, level, result, parameters, ...) \
  EXPORTED(ANeuralNetworks##name, name, result, parameters, ##__VA_ARGS__)
#define RUNTIME_FUNCTION(name, level, result, parameters, ...) \
  EXPORTED(ANeuralNetworks_##name, name, result, parameters, ##__VA_ARGS__)
#include "nnapi_host/functions.inc"
#undef RUNTIME_FUNCTION
#undef FUNCTION
#undef EXPORTED
