// Memories for states, and the way in and out of them.
#include "backends/nnapi/kept_states.h"

namespace pinnace::nnapi_client {

Bytes NnapiKeptStates::One::at(int which) const {
  const SharedMemory& m = *memory[which];
  return {m.data() ? m.data() + offset[which] : nullptr, form->bytes, &m, offset[which]};
}

Result<std::unique_ptr<KeptStates>> NnapiKeptStates::create(const std::vector<std::optional<KeptForm>>& forms,
                                                            const std::vector<Stage>& stages, bool survives) {
  auto made = std::make_unique<NnapiKeptStates>();
  made->all_.resize(forms.size());
  size_t shared = 0;
  for (size_t i = 0; i < forms.size(); ++i) {
    if (!forms[i]) continue;
    One& one = made->all_[i];
    one.form = &*forms[i];
    made->model_ = stages[0].model.get();
    const size_t bytes = one.form->bytes;
    if (!survives && made->model_->makes_memories()) {
      PINNACE_ASSIGN(one.passage, made->model_->shared_memory(bytes, "a state on its way to NNAPI"));
      if (made->model_->make_memories(one.form->input, one.form->output, one.memory)) continue;
      one.passage = nullptr;
    }
    one.offset[0] = shared;
    one.offset[1] = shared + aligned_size(bytes);
    shared += 2 * aligned_size(bytes);
  }
  if (!made->model_) return std::unique_ptr<KeptStates>();
  if (shared > 0) {
    PINNACE_ASSIGN(const std::shared_ptr<SharedMemory> memory,
                   made->model_->shared_memory(shared, "a session's states"));
    for (One& one : made->all_) {
      if (one.form && !one.memory[0]) one.memory[0] = one.memory[1] = memory;
    }
  }
  return std::unique_ptr<KeptStates>(std::move(made));
}

Status NnapiKeptStates::write(size_t i, const std::byte* from) {
  const One& one = all_[i];
  if (!one.passage) return enter(one.form->exchange, from, static_cast<std::byte*>(one.at(now_).data));
  PINNACE_TRY(enter(one.form->exchange, from, one.passage->data()));
  return model_->copy(*one.passage, *one.memory[now_]);
}

Status NnapiKeptStates::read(size_t i, std::byte* to) {
  const One& one = all_[i];
  if (one.passage) PINNACE_TRY(model_->copy(*one.memory[now_], *one.passage));
  leave(one.form->exchange, one.passage ? one.passage->data() : static_cast<std::byte*>(one.at(now_).data), to);
  return {};
}

}  // namespace pinnace::nnapi_client
