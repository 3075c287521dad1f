// What the library exports. Without a test bed a call costs one branch that always goes the same way. No exception
// leaves it: without memory a call is OUT_OF_MEMORY where it returns a result code.
#include "base/exception_boundary.h"
#include "nnapi_host/test_bed/test_bed.h"

using namespace pinnace::nnapi_host;

namespace {

template <class R, class Call>
R guarded(Call call) {
  if constexpr (std::is_void_v<R>) {
    pinnace::exception_boundary([&] { return call(), 0; }, 0);
  } else {
    return pinnace::exception_boundary(call, std::is_same_v<R, int> ? R{ANEURALNETWORKS_OUT_OF_MEMORY} : R{});
  }
}

}  // namespace

#define EXPORTED(symbol, name, result, parameters, ...)                                              \
  result symbol parameters {                                                                         \
    return guarded<result>([&]() -> result {                                                         \
      if (test_bed_is_off()) [[likely]]                                                              \
        return plain::name(__VA_ARGS__);                                                             \
      TestBed* const bed = TestBed::get();                                                           \
      return bed ? bed->call(Function::name, plain::name, ##__VA_ARGS__) : plain::name(__VA_ARGS__); \
    });                                                                                              \
  }
#define FUNCTION(name, level, result, parameters, ...) \
  EXPORTED(ANeuralNetworks##name, name, result, parameters, ##__VA_ARGS__)
#define RUNTIME_FUNCTION(name, level, result, parameters, ...) \
  EXPORTED(ANeuralNetworks_##name, name, result, parameters, ##__VA_ARGS__)
#include "nnapi_host/functions.inc"
#undef RUNTIME_FUNCTION
#undef FUNCTION
#undef EXPORTED
