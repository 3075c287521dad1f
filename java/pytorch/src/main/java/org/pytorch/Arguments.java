package org.pytorch;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.pinnace.Spec;

/** The arguments of a call, one after the other, become the inputs of a program. */
final class Arguments {
  /** A tensor or number in an argument, and where in it, {@code ".image.0"}. */
  private static final class Leaf {
    final String path;
    final IValue value;

    Leaf(String path, IValue value) {
      this.path = path;
      this.value = value;
    }
  }

  private final List<Spec> inputs;
  private final Map<String, org.pinnace.Tensor> copies = new LinkedHashMap<>(); // of earlier calls

  Arguments(List<Spec> inputs) {
    this.inputs = inputs;
  }

  /** By name. @throws IllegalArgumentException they are not the program's. */
  Map<String, org.pinnace.Tensor> bind(IValue[] given) {
    if (given == null) throw new IllegalArgumentException("the arguments are null");
    int count = given.length;
    for (int i = 0; i < count; ++i) {
      if (given[i] == null) throw new IllegalArgumentException("argument " + i + " is null: use IValue.optionalNull()");
    }
    while (count > 0 && given[count - 1].isNull()) --count; // defaults of forward
    List<Leaf> leaves = new ArrayList<>();
    Map<String, org.pinnace.Tensor> bound = new LinkedHashMap<>();
    int needed = 0;
    for (int i = 0; i < count; ++i) {
      leaves.clear();
      boolean keyed = flatten(given[i], "", "argument " + i, leaves);
      int first = needed;
      needed += leaves.size();
      if (needed > inputs.size()) continue; // counted, for the message
      List<Spec> targets = inputs.subList(first, needed);
      for (int k = 0; k < leaves.size(); ++k) {
        Leaf leaf = leaves.get(k);
        Spec input = keyed ? named(targets, leaf.path, i) : targets.get(k);
        if (bound.put(input.name, tensor(input, leaf.value)) != null) {
          throw new IllegalArgumentException("argument " + i + " has input '" + input.name + "' twice");
        }
      }
    }
    if (needed != inputs.size()) {
      throw new IllegalArgumentException("the program takes " + inputs.size() + " tensors " + inputs + ", the arguments have "
          + needed + " (numbers, texts and nulls that the model was converted with are part of it: leave these arguments out)");
    }
    return bound;
  }

  /** Gives whether there is a map in it. */
  private static boolean flatten(IValue value, String path, String where, List<Leaf> to) {
    boolean keyed = false;
    if (value.isTensor() || value.isLong() || value.isDouble() || value.isBool()) {
      to.add(new Leaf(path, value));
    } else if (value.isTuple() || value.isList()) {
      IValue[] items = value.isTuple() ? value.toTuple() : value.toList();
      for (int i = 0; i < items.length; ++i) keyed |= flatten(items[i], path + "." + i, where, to);
    } else if (value.isTensorList()) {
      Tensor[] items = value.toTensorList();
      for (int i = 0; i < items.length; ++i) to.add(new Leaf(path + "." + i, IValue.from(items[i])));
    } else if (value.isDictStringKey()) {
      keyed = true;
      for (Map.Entry<String, IValue> item : value.toDictStringKey().entrySet()) {
        flatten(item.getValue(), path + "." + item.getKey(), where, to);
      }
    } else if (value.isDictLongKey()) {
      keyed = true;
      for (Map.Entry<Long, IValue> item : value.toDictLongKey().entrySet()) {
        flatten(item.getValue(), path + "." + item.getKey(), where, to);
      }
    } else {
      throw new IllegalArgumentException(where + (path.isEmpty() ? " is " : ", at " + path.substring(1) + ", is ") + value.what()
          + ": a .pnc takes tensors; texts, lists of numbers and nulls are fixed when the model is converted");
    }
    return keyed;
  }

  /** The one of an argument's inputs with this path behind the argument's name, or alone. */
  private static Spec named(List<Spec> targets, String path, int argument) {
    for (Spec input : targets) {
      int dot = input.name.indexOf('.');
      if ((dot > 0 && input.name.substring(dot).equals(path)) || input.name.equals(path.substring(1))) return input;
    }
    throw new IllegalArgumentException("argument " + argument + " has '" + path.substring(1) + "', its inputs are " + targets);
  }

  private org.pinnace.Tensor tensor(Spec input, IValue value) {
    if (value.isTensor()) {
      org.pinnace.Tensor shared = value.toTensor().shared();
      if (shared != null) return shared;
      org.pinnace.Tensor copy = value.toTensor().copied(copies.get(input.name));
      copies.put(input.name, copy);
      return copy;
    }
    if (value.isLong() && input.dtype == org.pinnace.DType.I64) return org.pinnace.Tensor.of(new long[] {value.toLong()});
    if (value.isLong() && input.dtype == org.pinnace.DType.I32 && value.toLong() == (int) value.toLong()) {
      return org.pinnace.Tensor.of(new int[] {(int) value.toLong()});
    }
    if (value.isDouble() && input.dtype == org.pinnace.DType.F32) {
      return org.pinnace.Tensor.of(new float[] {(float) value.toDouble()});
    }
    if (value.isBool() && input.dtype == org.pinnace.DType.BOOL) {
      return org.pinnace.Tensor.of(org.pinnace.DType.BOOL, new byte[] {(byte) (value.toBool() ? 1 : 0)});
    }
    throw new IllegalArgumentException("input " + input + " was given " + value.what());
  }
}
