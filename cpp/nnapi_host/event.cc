// Event: the end of an asynchronous computation, or of what a sync fence stands for.
#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>

#include "nnapi_host/objects.h"

using namespace pinnace::nnapi_host;

namespace pinnace::nnapi_host {

Completion::~Completion() {
  if (fence >= 0) ::close(fence);
}

void Completion::set(int code) {
  std::lock_guard lock(mutex);
  result = code;
  done = true;
  if (fence >= 0) ::eventfd_write(fence, 1);
  changed.notify_all();
}

int Completion::wait() {
  if (foreign) {
    struct pollfd open = {fence, POLLIN, 0};
    while (::poll(&open, 1, -1) < 0) {
      if (errno != EINTR) return ANEURALNETWORKS_OP_FAILED;
    }
    return open.revents & POLLIN ? ANEURALNETWORKS_NO_ERROR : ANEURALNETWORKS_OP_FAILED;
  }
  std::unique_lock lock(mutex);
  changed.wait(lock, [&] { return done; });
  return result;
}

}  // namespace pinnace::nnapi_host

int plain::Event_wait(ANeuralNetworksEvent* event) {
  return event ? event->completion->wait() : ANEURALNETWORKS_UNEXPECTED_NULL;
}

void plain::Event_free(ANeuralNetworksEvent* event) {
  if (!event) return;
  if (event->thread.joinable()) event->thread.join();
  delete event;
}

int plain::Event_createFromSyncFenceFd(int sync_fence_fd, ANeuralNetworksEvent** event) {
  if (!event) return ANEURALNETWORKS_UNEXPECTED_NULL;
  *event = nullptr;
  if (sync_fence_fd <= 0) return ANEURALNETWORKS_BAD_DATA;
  auto completion = std::make_shared<Completion>();
  completion->fence = ::fcntl(sync_fence_fd, F_DUPFD_CLOEXEC, 0);
  if (completion->fence < 0) return ANEURALNETWORKS_BAD_DATA;
  completion->foreign = true;
  *event = new ANeuralNetworksEvent(std::move(completion));
  return ANEURALNETWORKS_NO_ERROR;
}

int plain::Event_getSyncFenceFd(const ANeuralNetworksEvent* event, int* sync_fence_fd) {
  if (!sync_fence_fd) return ANEURALNETWORKS_UNEXPECTED_NULL;
  *sync_fence_fd = -1;
  if (!event) return ANEURALNETWORKS_UNEXPECTED_NULL;
  const int fence = event->completion->fence;
  if (fence < 0) return ANEURALNETWORKS_BAD_DATA;
  *sync_fence_fd = ::fcntl(fence, F_DUPFD_CLOEXEC, 0);
  return *sync_fence_fd >= 0 ? ANEURALNETWORKS_NO_ERROR : ANEURALNETWORKS_BAD_DATA;
}
