/**
 * pinnace on the JVM: opens a program (a {@code .pnc} file), makes a session of it, and runs it.
 *
 * <pre>{@code
 * try (Program program = Program.open("net.pnc");
 *     Session session = Session.create(program, new Options().target("cpu"))) {
 *   Map<String, Tensor> outputs = session.run(Collections.singletonMap("x", Tensor.of(floats, 1, 3, 224, 224)));
 * }
 * }</pre>
 *
 * Failures are {@link org.pinnace.PinnaceException}s, a class for each code of the C API. Arguments and results are
 * never null unless {@code androidx.annotation.Nullable} says so.
 */
package org.pinnace;
