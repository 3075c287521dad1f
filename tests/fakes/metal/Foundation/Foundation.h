// The few classes of Foundation that the Metal driver touches, declared as Apple documents them: enough to type-check and,
// with pretend_device.mm, to run it on Linux.
#pragma once
typedef unsigned long NSUInteger;
typedef long NSInteger;
typedef double CFTimeInterval;
#ifndef __clang__
typedef bool BOOL;
#else
typedef signed char BOOL;
#endif
#ifndef nil
#define nil nullptr
#endif
@protocol NSObject
@end
__attribute__((objc_root_class)) @interface NSObject<NSObject> {
  Class isa;  // where the GNU run-time looks for it
}
+ (instancetype)alloc;
- (instancetype)init;
@end
@interface NSString : NSObject
+ (instancetype)stringWithUTF8String:(const char*)text;
@property(readonly) const char* UTF8String;
@end
@interface NSConstantString : NSString {  // what @"..." makes under the GNU run-time
 @public
  char* c_string;
  unsigned length;
}
@end
@interface NSError : NSObject
@property(readonly) NSInteger code;
@property(readonly) NSString* localizedDescription;
@end
@interface NSProcessInfo : NSObject
+ (NSProcessInfo*)processInfo;
@property(readonly) NSString* operatingSystemVersionString;
@end
