// The rules on optional inputs of an LSTM.
#include "nnapi/map/lstm_form.h"

namespace pinnace::nnapi {

Result<LstmForm> lstm_form(const Call& call, const LstmPlaces& at) {
  LstmForm form;
  form.coupled = !call.has(at.w);
  form.peephole = call.has(at.p + 1);
  form.normalised = call.has(at.norm + kForgetGate);
  form.projected = call.has(at.projection);
  const auto all = [&](size_t first, size_t end, bool wanted, const char* what) -> Status {
    for (size_t i = first; i < end; ++i) {
      if (call.has(i) != wanted) return call.error("input ", i, wanted ? " is left out: " : " is given: ", what);
    }
    return {};
  };
  const char* coupling = "the input gate has weights and a bias, or nothing at all";
  PINNACE_TRY(all(at.r, at.r + 1, !form.coupled, coupling));
  PINNACE_TRY(all(at.b, at.b + 1, !form.coupled, coupling));
  PINNACE_TRY(all(at.w + 1, at.w + 4, true, "weights"));
  PINNACE_TRY(all(at.r + 1, at.r + 4, true, "recurrent weights"));
  PINNACE_TRY(all(at.b + 1, at.b + 4, true, "biases"));
  PINNACE_TRY(
      all(at.p, at.p + 1, form.peephole && !form.coupled, "peepholes are of all gates that there are, or none"));
  PINNACE_TRY(all(at.p + 2, at.p + 3, form.peephole, "peepholes are of all gates that there are, or none"));
  PINNACE_TRY(all(at.norm, at.norm + 1, form.normalised && !form.coupled, "all gates are normalised, or none"));
  PINNACE_TRY(all(at.norm + 1, at.norm + 4, form.normalised, "all gates are normalised, or none"));
  if (!form.projected) PINNACE_TRY(all(at.projection + 1, at.projection + 2, false, "without weights of a projection"));
  return form;
}

}  // namespace pinnace::nnapi
