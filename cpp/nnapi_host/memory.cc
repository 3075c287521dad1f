// Memory: mapped file descriptors, memory made from descriptors, and copies between them.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>

#include "nnapi_host/objects.h"

using namespace pinnace::nnapi_host;

namespace pinnace::nnapi_host {

Mapping::~Mapping() {
  if (address_) ::munmap(address_, bytes_);
}
bool Mapping::readable() const {
  return protect_ & PROT_READ;
}
bool Mapping::writable() const {
  return protect_ & PROT_WRITE;
}

}  // namespace pinnace::nnapi_host

int plain::Memory_createFromFd(size_t size, int protect, int fd, size_t offset, ANeuralNetworksMemory** memory) {
  if (!memory) return ANEURALNETWORKS_UNEXPECTED_NULL;
  *memory = nullptr;
  if (fd < 0) return ANEURALNETWORKS_OP_FAILED;
  auto mapping = std::make_shared<Mapping>(size, protect);
  auto made = std::make_unique<ANeuralNetworksMemory>();
  const int own = ::fcntl(fd, F_DUPFD_CLOEXEC, 0);
  if (own < 0) return ANEURALNETWORKS_OP_FAILED;
  struct stat file = {};
  // A file that is shorter would end the process when its missing pages are touched.
  const bool regular = ::fstat(own, &file) == 0 && S_ISREG(file.st_mode);
  const bool fits = !regular || (offset <= static_cast<uint64_t>(file.st_size) &&
                                 size <= static_cast<uint64_t>(file.st_size) - offset);
  void* address = size == 0 || !fits ? MAP_FAILED
                                     : ::mmap(nullptr, size, protect & (PROT_READ | PROT_WRITE), MAP_SHARED, own,
                                              static_cast<off_t>(offset));
  ::close(own);  // the mapping stays
  if (!fits || size == 0) return ANEURALNETWORKS_BAD_DATA;
  if (address == MAP_FAILED) return ANEURALNETWORKS_UNMAPPABLE;
  mapping->take(address);
  made->mapping = std::move(mapping);
  *memory = made.release();
  return ANEURALNETWORKS_NO_ERROR;
}

int plain::Memory_createFromAHardwareBuffer(const AHardwareBuffer* ahwb, ANeuralNetworksMemory** memory) {
  if (memory) *memory = nullptr;
  if (!ahwb || !memory) return ANEURALNETWORKS_UNEXPECTED_NULL;
  return ANEURALNETWORKS_BAD_DATA;  // as Android's runtime answers where it is built without such buffers
}

void plain::Memory_free(ANeuralNetworksMemory* memory) {
  delete memory;
}

int plain::Memory_createFromDesc(const ANeuralNetworksMemoryDesc* desc, ANeuralNetworksMemory** memory) {
  if (!memory) return ANEURALNETWORKS_UNEXPECTED_NULL;
  *memory = nullptr;
  if (!desc) return ANEURALNETWORKS_UNEXPECTED_NULL;
  if (!desc->finished) return ANEURALNETWORKS_BAD_STATE;
  // Of dimensions that the descriptor has put together nobody has looked at the product yet.
  const auto size = bytes_of(*desc->operand, desc->operand->dims, desc->operand->dynamic_rank());
  if (size.value_or(0) == 0) return ANEURALNETWORKS_OP_FAILED;
  auto device = std::make_shared<DeviceMemory>();
  device->operand = *desc->operand;
  device->roles = desc->roles;
  auto bytes = pinnace::Buffer::allocate(*size, "memory of a descriptor");
  if (!bytes.ok()) return ANEURALNETWORKS_OUT_OF_MEMORY;
  device->bytes = std::move(*bytes);
  *memory = new ANeuralNetworksMemory{nullptr, std::move(device)};
  return ANEURALNETWORKS_NO_ERROR;
}

int plain::Memory_copy(const ANeuralNetworksMemory* src, const ANeuralNetworksMemory* dst) {
  if (!src || !dst) return ANEURALNETWORKS_UNEXPECTED_NULL;
  if (src == dst) return ANEURALNETWORKS_NO_ERROR;
  const std::byte* from = src->mapping ? src->mapping->data() : src->device->bytes.data();
  std::byte* to = dst->mapping ? dst->mapping->data() : dst->device->bytes.data();
  const size_t from_size = src->mapping ? src->mapping->size() : src->device->bytes.size();
  const size_t to_size = dst->mapping ? dst->mapping->size() : dst->device->bytes.size();
  const auto mark = [&](bool initialized) {
    if (!dst->device) return;
    std::lock_guard lock(dst->device->mutex);
    dst->device->initialized = initialized;
  };
  bool readable = true;
  if (src->device) {
    std::lock_guard lock(src->device->mutex);
    readable = src->device->initialized;
  }
  if ((src->mapping && !src->mapping->readable()) || (dst->mapping && !dst->mapping->writable())) {
    mark(false);
    return ANEURALNETWORKS_BAD_DATA;
  }
  const bool alike = !src->device || !dst->device || src->device->operand.dims == dst->device->operand.dims;
  if (!readable || from_size != to_size || !alike) {
    mark(false);
    return ANEURALNETWORKS_BAD_DATA;
  }
  std::memmove(to, from, from_size);
  mark(true);
  return ANEURALNETWORKS_NO_ERROR;
}
