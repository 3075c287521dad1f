// What every kernel starts with: the storage type of tensors, loads and stores, the number of an invocation.
// -DSTORAGE_F16: tensors are 16-bit floats. Arithmetic is always in 32 bits. -DINT32: elements are 32 bits of any type.
#if defined(INT32)
#define S uint
#elif defined(STORAGE_F16)
#extension GL_EXT_shader_16bit_storage : require
#define S float16_t
#define S4 f16vec4
#else
#define S float
#define S4 vec4
#endif

// Kernels over a line of work items use a second dimension of groups where one does not hold them all.
uint linear_group() { return gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x; }
// A macro: the size of a group is known only after the kernel's layout line.
#define linear_item() int(linear_group() * gl_WorkGroupSize.x + gl_LocalInvocationID.x)
