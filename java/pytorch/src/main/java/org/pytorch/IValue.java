package org.pytorch;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * What a module takes and gives: null, a tensor, a number, text, or a tuple, list or map of such.
 *
 * <p>Each {@code from} method throws {@link IllegalArgumentException} where its argument is null or has a null inside. Each
 * {@code to} method throws {@link IllegalStateException} where the value is of another type. Arrays and maps are kept and given
 * as they are, without a copy.
 *
 * <p><b>What {@link Module#forward} gives.</b> A {@code .pnc} has outputs in order, with names, but not what the model packed
 * them into. Of one output the value is a tensor ({@link #isTensor}), of several a tuple ({@link #isTuple}). Beside that it can
 * be asked for everything that its names allow, so that the caller finds what the model returned:
 *
 * <ul>
 *   <li>{@link #toTuple}, {@link #toList}, {@link #toTensorList}: the outputs in order;
 *   <li>{@link #toDictStringKey}: the outputs by name, which of a model that returns a dict are its keys;
 *   <li>outputs {@code aux.0} and {@code aux.1} are the value {@code aux} of the map, and {@code 0.boxes}, {@code 0.labels},
 *       {@code 1.boxes} … are the values 0 and 1 of the tuple or list; these values can be asked in the same ways;
 *   <li>{@link #toLong}: an int that the model returned, which is an output of int64 without dimensions.
 * </ul>
 */
public class IValue {
  private enum Kind {
    NULL("null"),
    TENSOR("a tensor"),
    BOOL("a bool"),
    LONG("an int"),
    DOUBLE("a float"),
    STRING("a str"),
    TUPLE("a tuple"),
    BOOL_LIST("a list of bools"),
    LONG_LIST("a list of ints"),
    DOUBLE_LIST("a list of floats"),
    TENSOR_LIST("a list of tensors"),
    LIST("a list"),
    DICT_STRING_KEY("a dict with keys of str"),
    DICT_LONG_KEY("a dict with keys of int");

    final String text;

    Kind(String text) {
      this.text = text;
    }
  }

  private final Kind kind;
  private final Object data;
  private final Outputs outputs; // of what forward() gives; else null

  private IValue(Kind kind, Object data, Outputs outputs) {
    this.kind = kind;
    this.data = data;
    this.outputs = outputs;
  }

  private static IValue of(Kind kind, Object data) {
    if (data == null) throw new IllegalArgumentException("null is no " + kind.text.replaceFirst("^an? ", ""));
    if (data instanceof Object[]) {
      int at = 0;
      for (Object item : (Object[]) data) {
        if (item == null) throw new IllegalArgumentException("item " + at + " of " + kind.text + " is null");
        ++at;
      }
    }
    if (data instanceof Map) {
      for (Map.Entry<?, ?> item : ((Map<?, ?>) data).entrySet()) {
        if (item.getKey() == null || item.getValue() == null) {
          throw new IllegalArgumentException("the item of " + kind.text + " with the key " + item.getKey() + " is null");
        }
      }
    }
    return new IValue(kind, data, null);
  }

  // ---- what it is ---------------------------------------------------------------------------------------------------

  /** Whether it is null. */
  public boolean isNull() {
    return kind == Kind.NULL;
  }

  /** Whether it is a tensor. */
  public boolean isTensor() {
    return kind == Kind.TENSOR;
  }

  /** Whether it is a bool. */
  public boolean isBool() {
    return kind == Kind.BOOL;
  }

  /** Whether it is an int. */
  public boolean isLong() {
    return kind == Kind.LONG;
  }

  /** Whether it is a float. */
  public boolean isDouble() {
    return kind == Kind.DOUBLE;
  }

  /** Whether it is text. */
  public boolean isString() {
    return kind == Kind.STRING;
  }

  /** Whether it is a tuple. */
  public boolean isTuple() {
    return kind == Kind.TUPLE;
  }

  /** Whether it is a list of bools. */
  public boolean isBoolList() {
    return kind == Kind.BOOL_LIST;
  }

  /** Whether it is a list of ints. */
  public boolean isLongList() {
    return kind == Kind.LONG_LIST;
  }

  /** Whether it is a list of floats. */
  public boolean isDoubleList() {
    return kind == Kind.DOUBLE_LIST;
  }

  /** Whether it is a list of tensors. */
  public boolean isTensorList() {
    return kind == Kind.TENSOR_LIST;
  }

  /** Whether it is a list of other values. */
  public boolean isList() {
    return kind == Kind.LIST;
  }

  /** Whether it is a map from texts. */
  public boolean isDictStringKey() {
    return kind == Kind.DICT_STRING_KEY;
  }

  /** Whether it is a map from ints. */
  public boolean isDictLongKey() {
    return kind == Kind.DICT_LONG_KEY;
  }

  // ---- from ---------------------------------------------------------------------------------------------------------

  /** An optional value that is not there. */
  public static IValue optionalNull() {
    return new IValue(Kind.NULL, null, null);
  }

  /** A tensor. */
  public static IValue from(Tensor tensor) {
    return of(Kind.TENSOR, tensor);
  }

  /** A bool. */
  public static IValue from(boolean value) {
    return of(Kind.BOOL, value);
  }

  /** An int. */
  public static IValue from(long value) {
    return of(Kind.LONG, value);
  }

  /** A float. */
  public static IValue from(double value) {
    return of(Kind.DOUBLE, value);
  }

  /** Text. */
  public static IValue from(String value) {
    return of(Kind.STRING, value);
  }

  /** A list of bools. */
  public static IValue listFrom(boolean... list) {
    return of(Kind.BOOL_LIST, list);
  }

  /** A list of ints. */
  public static IValue listFrom(long... list) {
    return of(Kind.LONG_LIST, list);
  }

  /** A list of floats. */
  public static IValue listFrom(double... list) {
    return of(Kind.DOUBLE_LIST, list);
  }

  /** A list of tensors. */
  public static IValue listFrom(Tensor... list) {
    return of(Kind.TENSOR_LIST, list);
  }

  /** A list of values of one type. @throws IllegalArgumentException there are several types. */
  public static IValue listFrom(IValue... array) {
    IValue made = of(Kind.LIST, array);
    for (IValue item : array) {
      if (item.kind != array[0].kind) {
        throw new IllegalArgumentException("a list of " + array[0].kind.text + " and " + item.kind.text + ": they must be alike");
      }
    }
    return made;
  }

  /** A tuple. */
  public static IValue tupleFrom(IValue... array) {
    return of(Kind.TUPLE, array);
  }

  /** A map from texts. */
  public static IValue dictStringKeyFrom(Map<String, IValue> map) {
    return of(Kind.DICT_STRING_KEY, map);
  }

  /** A map from ints. */
  public static IValue dictLongKeyFrom(Map<Long, IValue> map) {
    return of(Kind.DICT_LONG_KEY, map);
  }

  // ---- to -----------------------------------------------------------------------------------------------------------

  /** The tensor. */
  public Tensor toTensor() {
    return (Tensor) as(Kind.TENSOR);
  }

  /** The bool. */
  public boolean toBool() {
    return (Boolean) as(Kind.BOOL);
  }

  /** The int. */
  public long toLong() {
    if (outputs != null && kind == Kind.TENSOR) {
      Tensor tensor = (Tensor) data;
      if (tensor.dtype() == DType.INT64 && tensor.shape().length == 0) return tensor.getDataAsLongArray()[0];
    }
    return (Long) as(Kind.LONG);
  }

  /** The float. */
  public double toDouble() {
    return (Double) as(Kind.DOUBLE);
  }

  /** The text. */
  public String toStr() {
    return (String) as(Kind.STRING);
  }

  /** The list of bools. */
  public boolean[] toBoolList() {
    return (boolean[]) as(Kind.BOOL_LIST);
  }

  /** The list of ints. */
  public long[] toLongList() {
    return (long[]) as(Kind.LONG_LIST);
  }

  /** The list of floats. */
  public double[] toDoubleList() {
    return (double[]) as(Kind.DOUBLE_LIST);
  }

  /** The list of tensors. */
  public Tensor[] toTensorList() {
    if (outputs == null) return (Tensor[]) as(Kind.TENSOR_LIST);
    IValue[] items = outputs.items();
    Tensor[] tensors = new Tensor[items.length];
    for (int i = 0; i < items.length; ++i) tensors[i] = items[i].toTensor();
    return tensors;
  }

  /** The list of values. */
  public IValue[] toList() {
    return outputs == null ? (IValue[]) as(Kind.LIST) : outputs.items();
  }

  /** The tuple. */
  public IValue[] toTuple() {
    return outputs == null ? (IValue[]) as(Kind.TUPLE) : outputs.items();
  }

  /** The map from texts. */
  @SuppressWarnings("unchecked")
  public Map<String, IValue> toDictStringKey() {
    return outputs == null ? (Map<String, IValue>) as(Kind.DICT_STRING_KEY) : outputs.byKey(); // checked by its kind
  }

  /** The map from ints. */
  @SuppressWarnings("unchecked")
  public Map<Long, IValue> toDictLongKey() {
    return (Map<Long, IValue>) as(Kind.DICT_LONG_KEY); // checked by its kind
  }

  private Object as(Kind wanted) {
    if (kind != wanted) throw new IllegalStateException("the value is " + kind.text + ", not " + wanted.text);
    return data;
  }

  // ---- for Module ---------------------------------------------------------------------------------------------------

  /** What it is, in words: {@code "a list of ints"}. */
  String what() {
    return kind.text;
  }

  /** A program's outputs, by name and in order. */
  static IValue ofOutputs(Map<String, Tensor> tensors) {
    return ofOutputs(new Outputs(tensors));
  }

  private static IValue ofOutputs(Outputs outputs) {
    if (outputs.tensors.size() == 1) return new IValue(Kind.TENSOR, outputs.tensors.values().iterator().next(), outputs);
    return new IValue(Kind.TUPLE, null, outputs);
  }

  /** Several outputs, or those of which the names begin alike. */
  private static final class Outputs {
    final Map<String, Tensor> tensors;

    Outputs(Map<String, Tensor> tensors) {
      this.tensors = tensors;
    }

    /** By what stands before the names' first dots, in order; by the names where one of them is "a" and one "a.b". */
    Map<String, IValue> byKey() {
      Map<String, Map<String, Tensor>> groups = new LinkedHashMap<>();
      boolean whole = false;
      for (Map.Entry<String, Tensor> output : tensors.entrySet()) {
        String name = output.getKey();
        int dot = name.indexOf('.');
        String key = dot < 0 ? name : name.substring(0, dot);
        String rest = dot < 0 ? "" : name.substring(dot + 1);
        whole |= dot == 0 || dot == name.length() - 1;
        Map<String, Tensor> group = groups.computeIfAbsent(key, k -> new LinkedHashMap<String, Tensor>());
        group.put(rest, output.getValue());
        whole |= group.size() > 1 && group.containsKey("");
      }
      Map<String, IValue> values = new LinkedHashMap<>();
      if (whole) {
        for (Map.Entry<String, Tensor> output : tensors.entrySet()) values.put(output.getKey(), leaf(output.getValue()));
      } else {
        for (Map.Entry<String, Map<String, Tensor>> group : groups.entrySet()) {
          values.put(group.getKey(), ofOutputs(new Outputs(group.getValue())));
        }
      }
      return values;
    }

    private static IValue leaf(Tensor tensor) {
      Map<String, Tensor> alone = new LinkedHashMap<>();
      alone.put("", tensor);
      return ofOutputs(new Outputs(alone));
    }

    /** Grouped where the keys are 0, 1, 2 and so on, else each output. */
    IValue[] items() {
      List<IValue> items = new ArrayList<>();
      for (Map.Entry<String, IValue> value : byKey().entrySet()) {
        if (!value.getKey().equals(String.valueOf(items.size()))) {
          items.clear();
          for (Tensor tensor : tensors.values()) items.add(leaf(tensor));
          break;
        }
        items.add(value.getValue());
      }
      return items.toArray(new IValue[0]);
    }
  }
}
