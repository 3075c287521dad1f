package org.pytorch;

import static org.junit.Assert.assertArrayEquals;
import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertSame;
import static org.junit.Assert.assertTrue;
import static org.pytorch.Thrown.unfit;
import static org.pytorch.Thrown.wrong;

import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.Map;
import org.junit.Test;

/** Values without a model. */
public class IValueTest {
  private static final Tensor TENSOR = Tensor.fromBlob(new float[2], new long[] {2});

  /** Which of the questions the value answers with yes, as a row of 0 and 1. */
  private static String kinds(IValue value) {
    boolean[] all = {
      value.isNull(), value.isTensor(), value.isBool(), value.isLong(), value.isDouble(), value.isString(), value.isTuple(),
      value.isBoolList(), value.isLongList(), value.isDoubleList(), value.isTensorList(), value.isList(),
      value.isDictStringKey(), value.isDictLongKey()
    };
    StringBuilder text = new StringBuilder();
    for (boolean one : all) text.append(one ? '1' : '0');
    return text.toString();
  }

  @Test
  public void keepsWhatItIsMadeOf() {
    IValue[] two = {IValue.from(1), IValue.from(2)};
    Map<String, IValue> texts = Collections.singletonMap("a", two[0]);
    Map<Long, IValue> ints = Collections.singletonMap(7L, two[0]);
    IValue[] all = {
      IValue.optionalNull(), IValue.from(TENSOR), IValue.from(true), IValue.from(3L), IValue.from(2.5), IValue.from("text"),
      IValue.tupleFrom(two), IValue.listFrom(true, false), IValue.listFrom(1L, 2L), IValue.listFrom(0.5), IValue.listFrom(TENSOR),
      IValue.listFrom(two), IValue.dictStringKeyFrom(texts), IValue.dictLongKeyFrom(ints)
    };
    for (int i = 0; i < all.length; ++i) {
      StringBuilder wanted = new StringBuilder("00000000000000");
      wanted.setCharAt(i, '1');
      assertEquals(wanted.toString(), kinds(all[i]));
    }
    assertSame(TENSOR, all[1].toTensor());
    assertTrue(all[2].toBool());
    assertEquals(3, all[3].toLong());
    assertEquals(2.5, all[4].toDouble(), 0);
    assertEquals("text", all[5].toStr());
    assertSame(two, all[6].toTuple());
    assertTrue(all[7].toBoolList()[0]);
    assertArrayEquals(new long[] {1, 2}, all[8].toLongList());
    assertArrayEquals(new double[] {0.5}, all[9].toDoubleList(), 0);
    assertSame(TENSOR, all[10].toTensorList()[0]);
    assertSame(two, all[11].toList());
    assertSame(texts, all[12].toDictStringKey());
    assertSame(ints, all[13].toDictLongKey());
    assertEquals(0, IValue.listFrom(new IValue[0]).toList().length);
  }

  @Test
  public void refusesOtherTypes() {
    IValue text = IValue.from("text");
    unfit("is a str, not a tensor", text::toTensor);
    unfit("not a bool", text::toBool);
    unfit("not an int", text::toLong);
    unfit("not a float", text::toDouble);
    unfit("is an int, not a str", IValue.from(1)::toStr);
    unfit("not a list of bools", text::toBoolList);
    unfit("not a list of ints", text::toLongList);
    unfit("not a list of floats", text::toDoubleList);
    unfit("not a list of tensors", text::toTensorList);
    unfit("is a list of tensors, not a list", IValue.listFrom(TENSOR)::toList);
    unfit("not a tuple", text::toTuple);
    unfit("not a dict with keys of str", text::toDictStringKey);
    unfit("not a dict with keys of int", text::toDictLongKey);
    unfit("is null", IValue.optionalNull()::toTensor);
  }

  @Test
  public void refusesNulls() {
    wrong("null is no tensor", () -> IValue.from((Tensor) null));
    wrong("null is no str", () -> IValue.from((String) null));
    wrong("null is no list of bools", () -> IValue.listFrom((boolean[]) null));
    wrong("null is no list of ints", () -> IValue.listFrom((long[]) null));
    wrong("null is no list of floats", () -> IValue.listFrom((double[]) null));
    wrong("null is no list of tensors", () -> IValue.listFrom((Tensor[]) null));
    wrong("null is no list", () -> IValue.listFrom((IValue[]) null));
    wrong("null is no tuple", () -> IValue.tupleFrom((IValue[]) null));
    wrong("null is no dict", () -> IValue.dictStringKeyFrom(null));
    wrong("null is no dict", () -> IValue.dictLongKeyFrom(null));
    wrong("item 1 of a list of tensors is null", () -> IValue.listFrom(TENSOR, null));
    wrong("item 0 of a tuple is null", () -> IValue.tupleFrom(null, IValue.from(1)));
    wrong("the key a is null", () -> IValue.dictStringKeyFrom(Collections.<String, IValue>singletonMap("a", null)));
    wrong("they must be alike", () -> IValue.listFrom(IValue.from(1), IValue.from(1.5)));
  }

  /** Of outputs with these names, each the tensor [place]. */
  private static IValue outputs(String... names) {
    Map<String, Tensor> tensors = new LinkedHashMap<>();
    for (String name : names) tensors.put(name, Tensor.fromBlob(new float[] {tensors.size()}, new long[] {1}));
    return IValue.ofOutputs(tensors);
  }

  private static int place(IValue value) {
    return (int) value.toTensor().getDataAsFloatArray()[0];
  }

  @Test
  public void outputsAreWhatTheirNamesSay() {
    IValue one = outputs("linear");
    assertEquals("01000000000000", kinds(one));
    assertEquals(0, place(one));
    assertEquals(0, place(one.toTuple()[0]));
    assertEquals(0, place(one.toDictStringKey().get("linear")));
    assertEquals(1, one.toTensorList().length);

    IValue several = outputs("out", "aux.0", "aux.1", "n");
    assertEquals("00000010000000", kinds(several));
    assertEquals(4, several.toTuple().length);
    assertEquals(2, place(several.toTuple()[2]));
    assertEquals(4, several.toTensorList().length);
    Map<String, IValue> named = several.toDictStringKey();
    assertEquals("[out, aux, n]", named.keySet().toString());
    assertEquals(2, place(named.get("aux").toList()[1]));
    assertEquals(3, place(named.get("n")));
    unfit("is a tuple, not a tensor", several::toTensor);
    unfit("not an int", several::toLong);
    unfit("not a dict with keys of int", several::toDictLongKey);

    IValue images = outputs("0.boxes", "0.labels", "1.boxes", "1.labels");
    assertEquals(2, images.toList().length);
    assertEquals(3, place(images.toTuple()[1].toDictStringKey().get("labels")));
    unfit("is a tuple, not a tensor", images::toTensorList);

    // Names that do not say how they belong together.
    assertEquals("[a, a.b]", outputs("a", "a.b").toDictStringKey().keySet().toString());
    assertEquals("[a., .b, c]", outputs("a.", ".b", "c").toDictStringKey().keySet().toString());
    assertEquals(2, outputs("1", "0").toTuple().length);
    assertEquals(0, place(outputs("1", "0").toTuple()[0]));
    IValue deep = outputs("x.y.z").toDictStringKey().get("x").toDictStringKey().get("y");
    assertEquals("[z]", deep.toDictStringKey().keySet().toString());
  }

  @Test
  public void anIntOfAModelIsAnInt() {
    Map<String, Tensor> n = Collections.singletonMap("n", Tensor.fromBlob(new long[] {1L << 40}, new long[0]));
    assertEquals(1L << 40, IValue.ofOutputs(n).toLong());
    unfit("not an int", IValue.from(n.get("n"))::toLong);
  }
}
