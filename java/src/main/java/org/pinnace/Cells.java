package org.pinnace;

import java.nio.charset.StandardCharsets;

/** Texts and numbers that native code gives one after another: UTF-8, each closed by a null character. */
final class Cells {
  private final byte[] bytes;
  private int at = 0;

  Cells(byte[] bytes) {
    this.bytes = bytes;
  }

  boolean more() {
    return at < bytes.length;
  }

  String text() {
    int end = at;
    while (bytes[end] != 0) ++end;
    String text = new String(bytes, at, end - at, StandardCharsets.UTF_8);
    at = end + 1;
    return text;
  }

  long number() {
    return Long.parseLong(text());
  }

  int integer() {
    return (int) number();
  }

  /** A text as native code takes it. */
  static byte[] of(String text, String what) {
    if (text == null) throw new PinnaceException.InvalidArgument(what + " is null");
    if (text.indexOf('\0') >= 0) throw new PinnaceException.InvalidArgument(what + " has a null character");
    byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
    return java.util.Arrays.copyOf(bytes, bytes.length + 1);
  }
}
