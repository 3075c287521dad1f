// The pretend Metal device: GNU run-time, no reference counting, so nothing is ever freed. Command buffers execute when they
// are waited for, in order of their commits, and commands of a concurrent encoder in an order of choice: a driver that reads
// results without waiting, or leaves out a barrier, gets wrong ones.
#include "fakes/metal/pretend_device.h"

#import <Metal/Metal.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <vector>

extern "C" id class_createInstance(Class, size_t);

namespace pinnace::testing {
namespace {
std::string& misuse() {
  static auto* const text = new std::string;
  return *text;
}
}  // namespace
PretendMetal& pretend_metal() {
  static auto* const settings = new PretendMetal;
  return *settings;
}
const char* pretend_metal_misuse() {
  static auto* const last = new std::string;
  *last = misuse();
  misuse().clear();
  return last->c_str();
}
}  // namespace pinnace::testing

using pinnace::testing::misuse;
using pinnace::testing::pretend_metal;

struct PretendCommand {
  bool copy = false, barrier = false;
  uint32_t kernel = 0;
  std::vector<SoftmetalConstant> constants;
  SoftmetalBuffer buffers[kSoftmetalBuffers] = {};
  std::vector<char> push;
  uint32_t groups[3] = {}, size[3] = {};
  const char* from = nullptr;
  char* to = nullptr;
  size_t bytes = 0;
};

// C++ objects of Objective-C ones are held by pointers: nothing would construct them in place.
@implementation NSObject
+ (instancetype)alloc {
  return class_createInstance((Class)self, 0);
}
- (instancetype)init {
  return self;
}
@end
@implementation NSString
+ (instancetype)stringWithUTF8String:(const char*)text {
  NSConstantString* made = [NSConstantString alloc];
  made->c_string = strdup(text);
  made->length = unsigned(strlen(text));
  return made;
}
- (const char*)UTF8String {
  return "";
}
@end
@implementation NSConstantString
- (const char*)UTF8String {
  return c_string;
}
@end
@implementation NSProcessInfo
+ (NSProcessInfo*)processInfo {
  return [NSProcessInfo alloc];
}
- (NSString*)operatingSystemVersionString {
  return @"a pretended version";
}
@end
@interface PretendError : NSError {
 @public
  NSString* text;
  NSInteger number;
}
@end
@implementation NSError
- (NSInteger)code {
  return 0;
}
- (NSString*)localizedDescription {
  return @"";
}
@end
@implementation PretendError
- (NSInteger)code {
  return number;
}
- (NSString*)localizedDescription {
  return text;
}
@end
static PretendError* make_error(NSInteger number, const char* text) {
  PretendError* error = [PretendError alloc];
  error->number = number;
  error->text = [NSString stringWithUTF8String:text];
  return error;
}

@interface PretendConstants : MTLFunctionConstantValues {
 @public
  std::vector<SoftmetalConstant>* values;
}
+ (Class)class_of;
@end
@implementation MTLFunctionConstantValues
+ (instancetype)alloc {
  PretendConstants* made = class_createInstance((Class)[PretendConstants class_of], 0);
  made->values = new std::vector<SoftmetalConstant>;
  return made;
}
- (void)setConstantValue:(const void*)value type:(MTLDataType)type atIndex:(NSUInteger)index {
}
@end
@implementation PretendConstants
+ (Class)class_of {
  return (Class)self;
}
- (void)setConstantValue:(const void*)value type:(MTLDataType)type atIndex:(NSUInteger)index {
  if (type != MTLDataTypeInt) misuse() = "a function constant that is no int";
  uint32_t bits = 0;
  memcpy(&bits, value, 4);
  values->push_back({uint32_t(index), bits});
}
@end

@interface PretendBuffer : NSObject <MTLBuffer> {
 @public
  char* bytes;
  NSUInteger size;
  bool hidden;
}
@end
@implementation PretendBuffer
- (void*)contents {
  return hidden ? nullptr : bytes;
}
- (NSUInteger)length {
  return size;
}
@end
@interface PretendKernel : NSObject <MTLFunction, MTLComputePipelineState> {
 @public
  uint32_t kernel;
  std::vector<SoftmetalConstant>* constants;
}
@end
@implementation PretendKernel
- (NSUInteger)maxTotalThreadsPerThreadgroup {
  return 512;
}
- (NSUInteger)threadExecutionWidth {
  return pretend_metal().simd_width;
}
@end
@interface PretendLibrary : NSObject <MTLLibrary> {
 @public
  std::string* source;
}
@end
@implementation PretendLibrary
- (id<MTLFunction>)newFunctionWithName:(NSString*)name
                        constantValues:(MTLFunctionConstantValues*)values
                                 error:(NSError**)error {
  const std::string wanted = [name UTF8String];
  const SoftmetalLibrary* kernels = pretend_metal().kernels;
  for (uint32_t i = 0; i < kernels->kernel_count; ++i) {
    if (wanted != kernels->name(i) || source->find("kernel void " + wanted + "(") == std::string::npos) continue;
    PretendKernel* made = [PretendKernel alloc];
    made->kernel = i;
    made->constants = ((PretendConstants*)values)->values;
    return made;
  }
  *error = make_error(1, ("no function " + wanted).c_str());
  return nil;
}
@end

@interface PretendEncoder : NSObject <MTLComputeCommandEncoder, MTLBlitCommandEncoder> {
 @public
  std::vector<PretendCommand>* commands;
  PretendCommand* state;
  bool pipeline, open;
}
@end
@implementation PretendEncoder
- (void)setComputePipelineState:(id<MTLComputePipelineState>)made {
  PretendKernel* kernel = (PretendKernel*)made;
  state->kernel = kernel->kernel;
  state->constants = *kernel->constants;
  pipeline = true;
}
- (void)setBuffer:(id<MTLBuffer>)made offset:(NSUInteger)offset atIndex:(NSUInteger)index {
  PretendBuffer* buffer = (PretendBuffer*)made;
  if (offset >= buffer->size) misuse() = "an offset behind its buffer";
  state->buffers[index] = {buffer->bytes + offset, buffer->size - offset};
}
- (void)setBytes:(const void*)bytes length:(NSUInteger)length atIndex:(NSUInteger)index {
  if (index != 30 || length > 4096) misuse() = "bytes that are no push constants";
  state->push.assign((const char*)bytes, (const char*)bytes + length);
}
- (void)dispatchThreadgroups:(MTLSize)groups threadsPerThreadgroup:(MTLSize)size {
  if (!pipeline) misuse() = "a dispatch without a pipeline";
  const NSUInteger g[] = {groups.width, groups.height, groups.depth}, s[] = {size.width, size.height, size.depth};
  for (int d = 0; d < 3; ++d) {
    state->groups[d] = uint32_t(g[d]);
    state->size[d] = uint32_t(s[d]);
  }
  commands->push_back(*state);
}
- (void)memoryBarrierWithScope:(MTLBarrierScope)scope {
  PretendCommand barrier;
  barrier.barrier = (scope & MTLBarrierScopeBuffers) != 0;
  commands->push_back(barrier);
}
- (void)copyFromBuffer:(id<MTLBuffer>)from
          sourceOffset:(NSUInteger)fromOffset
              toBuffer:(id<MTLBuffer>)to
     destinationOffset:(NSUInteger)toOffset
                  size:(NSUInteger)size {
  PretendBuffer *source = (PretendBuffer*)from, *target = (PretendBuffer*)to;
  if (fromOffset + size > source->size || toOffset + size > target->size) misuse() = "a copy beyond its buffers";
  PretendCommand copy;
  copy.copy = true;
  copy.from = source->bytes + fromOffset;
  copy.to = target->bytes + toOffset;
  copy.bytes = size;
  commands->push_back(copy);
}
- (void)endEncoding {
  open = false;
  [self memoryBarrierWithScope:MTLBarrierScopeBuffers];  // what the encoder wrote is seen by the next
}
@end

@interface PretendCommandBuffer : NSObject <MTLCommandBuffer> {
 @public
  std::vector<PretendCommandBuffer*>* queue;
  std::vector<PretendCommand>* commands;
  PretendEncoder* encoder;
  NSError* failure;
  MTLCommandBufferStatus state;
  double start, end;
}
@end
static double seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}
static bool run(PretendCommand& c, std::string* why) {
  if (c.copy) {
    memcpy(c.to, c.from, c.bytes);
    return true;
  }
  char message[512] = "";
  SoftmetalLaunch launch{};
  memcpy(launch.buffers, c.buffers, sizeof c.buffers);
  if (!c.push.empty()) launch.buffers[30] = {c.push.data(), c.push.size()};
  launch.constants = c.constants.data();
  launch.constant_count = c.constants.size();
  memcpy(launch.groups, c.groups, sizeof c.groups);
  memcpy(launch.group_size, c.size, sizeof c.size);
  launch.order = pretend_metal().order;
  launch.seed = 1;
  launch.simd_width = pretend_metal().simd_width;
  launch.races = 1;
  launch.message = message;
  launch.message_bytes = sizeof message;
  if (pretend_metal().kernels->run(c.kernel, &launch) == kSoftmetalOk) return true;
  *why = message;
  return false;
}
@implementation PretendCommandBuffer
- (PretendEncoder*)encode {
  if (encoder && encoder->open) misuse() = "two open encoders";
  encoder = [PretendEncoder alloc];
  encoder->commands = commands;
  encoder->state = new PretendCommand;
  encoder->open = true;
  return encoder;
}
- (id<MTLComputeCommandEncoder>)computeCommandEncoderWithDispatchType:(MTLDispatchType)type {
  if (type != MTLDispatchTypeConcurrent) misuse() = "a serial encoder, which the driver has no use for";
  return [self encode];
}
- (id<MTLBlitCommandEncoder>)blitCommandEncoder {
  return [self encode];
}
- (void)commit {
  if (encoder && encoder->open) misuse() = "a commit with an open encoder";
  if (state != MTLCommandBufferStatusNotEnqueued) misuse() = "a second commit";
  state = MTLCommandBufferStatusCommitted;
  queue->push_back(self);
}
- (void)execute {
  static uint64_t executed = 0;
  start = seconds();
  state = MTLCommandBufferStatusCompleted;
  if (pretend_metal().failing_command_buffer && ++executed == pretend_metal().failing_command_buffer) {
    failure = make_error(pretend_metal().failure_code, "failed on demand");
    state = MTLCommandBufferStatusError;
    executed = 0;
  }
  for (size_t begin = 0; begin < commands->size() && state == MTLCommandBufferStatusCompleted;) {
    size_t last = begin;
    while (last < commands->size() && !(*commands)[last].barrier) ++last;
    for (size_t i = begin; i < last && state == MTLCommandBufferStatusCompleted; ++i) {
      std::string why;
      const size_t at = pretend_metal().order == kSoftmetalForward ? i : last - 1 - (i - begin);
      if (run((*commands)[at], &why)) continue;
      failure = make_error(MTLCommandBufferErrorInvalidResource, why.c_str());
      state = MTLCommandBufferStatusError;
    }
    begin = last + 1;
  }
  end = seconds();
}
- (void)waitUntilCompleted {
  if (state == MTLCommandBufferStatusNotEnqueued) misuse() = "a wait before the commit";
  while (!queue->empty() && state == MTLCommandBufferStatusCommitted) {
    PretendCommandBuffer* first = queue->front();
    queue->erase(queue->begin());
    [first execute];
  }
}
- (MTLCommandBufferStatus)status {
  return state;
}
- (NSError*)error {
  return failure;
}
- (CFTimeInterval)GPUStartTime {
  return start;
}
- (CFTimeInterval)GPUEndTime {
  return end;
}
@end

@interface PretendQueue : NSObject <MTLCommandQueue> {
 @public
  std::vector<PretendCommandBuffer*>* committed;
}
@end
@implementation PretendQueue
- (id<MTLCommandBuffer>)commandBuffer {
  PretendCommandBuffer* made = [PretendCommandBuffer alloc];
  made->queue = committed;
  made->commands = new std::vector<PretendCommand>;
  return made;
}
@end

@interface PretendDevice : NSObject <MTLDevice>
@end
@implementation PretendDevice
- (NSString*)name {
  return @"pretend device";
}
- (BOOL)hasUnifiedMemory {
  return pretend_metal().unified_memory;
}
- (NSUInteger)maxBufferLength {
  return NSUInteger(1) << 30;
}
- (NSUInteger)maxThreadgroupMemoryLength {
  return 32768;
}
- (MTLSize)maxThreadsPerThreadgroup {
  return MTLSizeMake(1024, 1024, 1024);
}
- (BOOL)supportsFamily:(MTLGPUFamily)family {
  return family <= pretend_metal().family;
}
- (id<MTLCommandQueue>)newCommandQueue {
  PretendQueue* made = [PretendQueue alloc];
  made->committed = new std::vector<PretendCommandBuffer*>;
  return made;
}
- (id<MTLBuffer>)newBufferWithLength:(NSUInteger)length options:(MTLResourceOptions)options {
  PretendBuffer* made = [PretendBuffer alloc];
  made->bytes = static_cast<char*>(aligned_alloc(16384, (length + 16383) / 16384 * 16384));
  memset(made->bytes, 0xff, length);
  made->size = length;
  made->hidden = options == MTLResourceStorageModePrivate;
  return made;
}
- (id<MTLLibrary>)newLibraryWithSource:(NSString*)source options:(MTLCompileOptions*)options error:(NSError**)error {
  if (!strstr([source UTF8String], "kernel void")) {
    *error = make_error(3, "no kernel in the source");
    return nil;
  }
  PretendLibrary* made = [PretendLibrary alloc];
  made->source = new std::string([source UTF8String]);
  return made;
}
- (id<MTLComputePipelineState>)newComputePipelineStateWithFunction:(id<MTLFunction>)function error:(NSError**)error {
  return (PretendKernel*)function;
}
@end
extern "C" id<MTLDevice> MTLCreateSystemDefaultDevice(void) {
  return pretend_metal().kernels ? [PretendDevice alloc] : nil;
}
