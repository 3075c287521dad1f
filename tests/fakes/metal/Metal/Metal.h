// The part of Metal that the driver uses, names, selectors and values as Apple documents them. Not all of any protocol.
#pragma once
#import <Foundation/Foundation.h>
struct MTLSize {
  NSUInteger width, height, depth;
};
static inline MTLSize MTLSizeMake(NSUInteger width, NSUInteger height, NSUInteger depth) { return {width, height, depth}; }
enum MTLResourceOptions : NSUInteger { MTLResourceStorageModeShared = 0, MTLResourceStorageModePrivate = 32 };
enum MTLDataType : NSUInteger { MTLDataTypeFloat = 3, MTLDataTypeInt = 29 };
enum MTLDispatchType : NSUInteger { MTLDispatchTypeSerial = 0, MTLDispatchTypeConcurrent = 1 };
enum MTLBarrierScope : NSUInteger { MTLBarrierScopeBuffers = 1, MTLBarrierScopeTextures = 2 };
enum MTLGPUFamily : NSInteger { MTLGPUFamilyApple4 = 1004, MTLGPUFamilyApple7 = 1007 };
enum MTLCommandBufferStatus : NSUInteger {
  MTLCommandBufferStatusNotEnqueued = 0,
  MTLCommandBufferStatusCommitted = 2,
  MTLCommandBufferStatusCompleted = 4,
  MTLCommandBufferStatusError = 5
};
enum MTLCommandBufferError : NSUInteger {
  MTLCommandBufferErrorTimeout = 2,
  MTLCommandBufferErrorPageFault = 3,
  MTLCommandBufferErrorOutOfMemory = 8,
  MTLCommandBufferErrorInvalidResource = 9,
  MTLCommandBufferErrorDeviceRemoved = 11
};
@class MTLCompileOptions;
@interface MTLFunctionConstantValues : NSObject
- (void)setConstantValue:(const void*)value type:(MTLDataType)type atIndex:(NSUInteger)index;
@end
@protocol MTLFunction <NSObject>
@end
@protocol MTLBuffer <NSObject>
- (void*)contents;
@property(readonly) NSUInteger length;
@end
@protocol MTLLibrary <NSObject>
- (id<MTLFunction>)newFunctionWithName:(NSString*)name
                        constantValues:(MTLFunctionConstantValues*)values
                                 error:(NSError**)error;
@end
@protocol MTLComputePipelineState <NSObject>
@property(readonly) NSUInteger maxTotalThreadsPerThreadgroup;
@property(readonly) NSUInteger threadExecutionWidth;
@end
@protocol MTLCommandEncoder <NSObject>
- (void)endEncoding;
@end
@protocol MTLComputeCommandEncoder <MTLCommandEncoder>
- (void)setComputePipelineState:(id<MTLComputePipelineState>)state;
- (void)setBuffer:(id<MTLBuffer>)buffer offset:(NSUInteger)offset atIndex:(NSUInteger)index;
- (void)setBytes:(const void*)bytes length:(NSUInteger)length atIndex:(NSUInteger)index;
- (void)dispatchThreadgroups:(MTLSize)groups threadsPerThreadgroup:(MTLSize)size;
- (void)memoryBarrierWithScope:(MTLBarrierScope)scope;
@end
@protocol MTLBlitCommandEncoder <MTLCommandEncoder>
- (void)copyFromBuffer:(id<MTLBuffer>)from
          sourceOffset:(NSUInteger)fromOffset
              toBuffer:(id<MTLBuffer>)to
     destinationOffset:(NSUInteger)toOffset
                  size:(NSUInteger)size;
@end
@protocol MTLCommandBuffer <NSObject>
- (id<MTLComputeCommandEncoder>)computeCommandEncoderWithDispatchType:(MTLDispatchType)type;
- (id<MTLBlitCommandEncoder>)blitCommandEncoder;
- (void)commit;
- (void)waitUntilCompleted;
@property(readonly) MTLCommandBufferStatus status;
@property(readonly) NSError* error;
@property(readonly) CFTimeInterval GPUStartTime;
@property(readonly) CFTimeInterval GPUEndTime;
@end
@protocol MTLCommandQueue <NSObject>
- (id<MTLCommandBuffer>)commandBuffer;
@end
@protocol MTLDevice <NSObject>
@property(readonly) NSString* name;
@property(readonly) BOOL hasUnifiedMemory;
@property(readonly) NSUInteger maxBufferLength;
@property(readonly) NSUInteger maxThreadgroupMemoryLength;
@property(readonly) MTLSize maxThreadsPerThreadgroup;
- (BOOL)supportsFamily:(MTLGPUFamily)family;
- (id<MTLCommandQueue>)newCommandQueue;
- (id<MTLBuffer>)newBufferWithLength:(NSUInteger)length options:(MTLResourceOptions)options;
- (id<MTLLibrary>)newLibraryWithSource:(NSString*)source options:(MTLCompileOptions*)options error:(NSError**)error;
- (id<MTLComputePipelineState>)newComputePipelineStateWithFunction:(id<MTLFunction>)function error:(NSError**)error;
@end
extern "C" id<MTLDevice> MTLCreateSystemDefaultDevice(void);
