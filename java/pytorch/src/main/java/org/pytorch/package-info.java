/**
 * The Java API of PyTorch Mobile, run by pinnace: an application that uses it takes {@code pinnace-pytorch.jar} (and {@code
 * pinnace.jar}) in place of {@code pytorch_android}, and a {@code .pnc} file in place of its {@code .ptl} or {@code .pt}.
 *
 * <p>What a {@code .pnc} cannot give is refused by an exception that names it: methods beside {@code forward}, extra files,
 * optional arguments in the middle of others, and element types that {@link org.pytorch.DType} does not have.
 *
 * <p>Exceptions: {@link java.lang.IllegalArgumentException} where an argument is null or does not fit, {@link
 * java.lang.IllegalStateException} where the object is not of the type that is asked for, or the module is destroyed. Each
 * has pinnace's sentence where pinnace found it, and its exception as the cause. Everything else (a file that cannot be read, a
 * damaged one, a device that is not there or is lost, too little memory) is the {@code org.pinnace.PinnaceException} itself,
 * which is a {@link java.lang.RuntimeException}, as failures of PyTorch's native code are.
 *
 * <p>As in PyTorch Mobile, declarations have no null annotations, so that code in Kotlin sees the same types. Nothing takes or
 * gives null but where it says so.
 */
package org.pytorch;
