package org.pytorch;

import static org.junit.Assert.assertArrayEquals;
import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertNotNull;
import static org.junit.Assert.assertTrue;
import static org.pinnace.Thrown.thrown;
import static org.pytorch.Thrown.file;
import static org.pytorch.Thrown.unfit;
import static org.pytorch.Thrown.wrong;

import android.content.res.AssetManager;
import android.graphics.Bitmap;
import android.graphics.BitmapFactory;
import java.io.File;
import java.io.FileInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.nio.FloatBuffer;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.example.ImageClassification;
import org.junit.Test;
import org.pinnace.PinnaceException;

/** Models of the folder {@code pytorch}, which {@code java_test.py} describes. */
public class ModuleTest {
  private static final Map<String, String> NONE = Collections.emptyMap();

  private static IValue floats(long[] shape, float... data) {
    return IValue.from(Tensor.fromBlob(data, shape));
  }

  private static float[] data(IValue value) {
    return value.toTensor().getDataAsFloatArray();
  }

  /** 0, 1, 2 ... */
  private static float[] counted(int count) {
    float[] all = new float[count];
    for (int i = 0; i < count; ++i) all[i] = i;
    return all;
  }

  // ---- loading ------------------------------------------------------------------------------------------------------

  @Test
  public void everyWayToLoad() {
    String path = file("counter.pnc");
    AssetManager assets = new AssetManager(new File(path).getParentFile());
    Module[] all = {
      Module.load(path), Module.load(path, null, Device.CPU), Module.load(path, NONE, Device.CPU), LiteModuleLoader.load(path),
      LiteModuleLoader.load(path, NONE, Device.CPU), LiteModuleLoader.loadModuleFromAsset(assets, "counter.pnc"),
      LiteModuleLoader.loadModuleFromAsset(assets, "counter.pnc", Device.CPU),
      PyTorchAndroid.loadModuleFromAsset(assets, "counter.pnc"),
      PyTorchAndroid.loadModuleFromAsset(assets, "counter.pnc", Device.CPU)
    };
    PyTorchCodegenLoader.loadNativeLibs();
    for (Module module : all) {
      assertArrayEquals(new float[] {3, 5, 7}, data(module.forward(floats(new long[] {1, 3}, 1, 2, 3))), 0);
      module.destroy();
    }
    wrong("'nowhere.pnc' cannot be read", () -> LiteModuleLoader.loadModuleFromAsset(assets, "nowhere.pnc"));
    wrong("asset manager is null", () -> PyTorchAndroid.loadModuleFromAsset(null, "counter.pnc"));
    wrong("name is null", () -> PyTorchAndroid.loadModuleFromAsset(assets, null));
    wrong("pinnace convert script.ptl -o script.pnc --input", () -> LiteModuleLoader.loadModuleFromAsset(assets, "script.ptl"));
    wrong("is no .pnc file", () -> LiteModuleLoader.loadModuleFromAsset(assets, "empty"));
  }

  @Test
  public void otherFilesAreRefusedWithTheCommand() {
    String script = "' is TorchScript; convert it where Python is, and load the .pnc: pinnace convert ";
    wrong("'script.pt" + script + "script.pt -o script.pnc --input x.npy", () -> Module.load(file("script.pt")));
    IllegalArgumentException refused =
        thrown(IllegalArgumentException.class, script + "script.ptl -o script.pnc", () -> Module.load(file("script.ptl")));
    assertTrue(refused.getCause() instanceof PinnaceException.CorruptFile);
    wrong(script, () -> LiteModuleLoader.load(file("script.ptl"), null, Device.CPU));
    wrong(script, () -> Module.load(file("lite_without_suffix")));
    wrong("pinnace convert net.onnx -o net.pnc", () -> Module.load(file("net.onnx")));
    wrong("pinnace convert net.pt2 -o net.pnc", () -> Module.load(file("net.pt2")));
    wrong("ExecuTorch", () -> Module.load(file("net.pte")));
    wrong("'weights.pt' is no .pnc file, which is made of a model", () -> Module.load(file("weights.pt")));
    wrong("is no .pnc file", () -> Module.load(file("empty")));
    // Files that cannot be read, and damaged ones, are as pinnace has them.
    thrown(PinnaceException.FileFailure.class, "/nowhere.pnc", () -> Module.load("/nowhere.pnc"));
    thrown(PinnaceException.CorruptFile.class, "damaged.pnc", () -> Module.load(file("damaged.pnc")));
    wrong("path is null", () -> Module.load(null));
    wrong("device is null", () -> Module.load(file("counter.pnc"), NONE, null));
    wrong("no extra files, asked for [labels.txt]",
        () -> Module.load(file("counter.pnc"), Collections.singletonMap("labels.txt", ""), Device.CPU));
    wrong("output 'mask' is bool", () -> Module.load(file("mask.pnc")));
  }

  @Test
  public void vulkanIsVulkan() {
    boolean there = false;
    for (org.pinnace.Device device : org.pinnace.Device.all()) there |= device.target.equals("vulkan") && device.available;
    if (!there) {
      thrown(PinnaceException.Unsupported.class, "vulkan", () -> Module.load(file("counter.pnc"), null, Device.VULKAN));
      return;
    }
    Module module = Module.load(file("counter.pnc"), null, Device.VULKAN);
    assertArrayEquals(new float[] {3, 5, 7}, data(module.forward(floats(new long[] {1, 3}, 1, 2, 3))), 0);
    module.destroy();
  }

  // ---- the program of the tutorial ----------------------------------------------------------------------------------

  @Test
  public void classifiesAnImageWithTheBitsOfPinnace() throws IOException {
    Bitmap bitmap;
    try (InputStream in = new FileInputStream(file("image.png"))) {
      bitmap = BitmapFactory.decodeStream(in);
    }
    Module module = LiteModuleLoader.load(file("mobilenet.pnc"));
    float[] scores = ImageClassification.scores(module, bitmap);
    module.destroy();
    Map<String, org.pinnace.Tensor> wanted;
    try (org.pinnace.Program program = org.pinnace.Program.open(file("mobilenet.pnc"));
        org.pinnace.Session session = org.pinnace.Session.create(program, new org.pinnace.Options().target("cpu"))) {
      float[] pixels = new float[3 * bitmap.getWidth() * bitmap.getHeight()];
      int[] colors = new int[pixels.length / 3];
      bitmap.getPixels(colors, 0, bitmap.getWidth(), 0, 0, bitmap.getWidth(), bitmap.getHeight());
      float[] mean = {0.485f, 0.456f, 0.406f};
      float[] std = {0.229f, 0.224f, 0.225f};
      for (int i = 0; i < pixels.length; ++i) {
        int c = i / colors.length;
        pixels[i] = ((colors[i % colors.length] >> (16 - 8 * c) & 255) / 255f - mean[c]) / std[c];
      }
      wanted = session.run(Collections.singletonMap(program.inputs().get(0).name,
          org.pinnace.Tensor.of(pixels, 1, 3, bitmap.getHeight(), bitmap.getWidth())));
    }
    float[] same = wanted.values().iterator().next().floats();
    assertEquals(1000, scores.length);
    for (int i = 0; i < same.length; ++i) assertEquals(Float.floatToRawIntBits(same[i]), Float.floatToRawIntBits(scores[i]));
  }

  // ---- arguments ----------------------------------------------------------------------------------------------------

  /** 1 and others, as tensors of every type with the shape [1, 2, 1, 2], in this order in memory. */
  private static IValue[] ofEveryType(MemoryFormat format) {
    long[] shape = {1, 2, 1, 2};
    boolean last = format == MemoryFormat.CHANNELS_LAST;
    FloatBuffer floats = Tensor.allocateFloatBuffer(4);
    floats.put(last ? new float[] {1, 3, 1.5f, -4} : new float[] {1, 1.5f, 3, -4});
    ByteBuffer bytes = Tensor.allocateByteBuffer(4);
    bytes.put(last ? new byte[] {1, 3, 100, 4} : new byte[] {1, 100, 3, 4});
    return new IValue[] {
      IValue.from(Tensor.fromBlobUnsigned(bytes, shape, format)),
      IValue.from(Tensor.fromBlob(last ? new byte[] {1, 3, -50, 4} : new byte[] {1, -50, 3, 4}, shape, format)),
      IValue.from(Tensor.fromBlob(last ? new int[] {1, 3, -70000, 4} : new int[] {1, -70000, 3, 4}, shape, format)),
      IValue.from(Tensor.fromBlob(floats, shape, format)),
      IValue.from(Tensor.fromBlob(last ? new long[] {1, 3, 1L << 40, 4} : new long[] {1, 1L << 40, 3, 4}, shape, format)),
      IValue.from(Tensor.fromBlob(last ? new double[] {1, 3, 1e200, 4} : new double[] {1, 1e200, 3, 4}, shape, format)),
      IValue.from(Tensor.fromBlob(
          last ? new short[] {0x3c00, 0x3400, 0x4000, 0x3800} : new short[] {0x3c00, 0x4000, 0x3400, 0x3800}, shape, format))
    };
  }

  @Test
  public void everyElementTypeInEveryLayout() {
    Module module = Module.load(file("types.pnc")); // gives 2 x, as it lies in memory
    for (MemoryFormat format : new MemoryFormat[] {MemoryFormat.CONTIGUOUS, MemoryFormat.CHANNELS_LAST}) {
      IValue[] outputs = module.forward(ofEveryType(format)).toTuple();
      assertArrayEquals(new byte[] {2, (byte) 200, 6, 8}, outputs[0].toTensor().getDataAsUnsignedByteArray());
      assertArrayEquals(new byte[] {2, -100, 6, 8}, outputs[1].toTensor().getDataAsByteArray());
      assertArrayEquals(new int[] {2, -140000, 6, 8}, outputs[2].toTensor().getDataAsIntArray());
      assertArrayEquals(new float[] {2, 3, 6, -8}, data(outputs[3]), 0);
      assertArrayEquals(new long[] {2, 1L << 41, 6, 8}, outputs[4].toTensor().getDataAsLongArray());
      assertArrayEquals(new double[] {2, 2e200, 6, 8}, outputs[5].toTensor().getDataAsDoubleArray(), 0);
      assertArrayEquals(new short[] {0x4000, 0x4400, 0x3800, 0x3c00}, outputs[6].toTensor().getDataAsShortArray());
      for (IValue output : outputs) {
        assertEquals(MemoryFormat.CONTIGUOUS, output.toTensor().memoryFormat());
        assertArrayEquals(new long[] {4}, output.toTensor().shape());
      }
    }
    module.destroy();
  }

  /** Memory in the order of a format, of elements that are counted in the order of the shape. */
  private static float[] last(int images, int channels, int pixels) {
    float[] memory = new float[images * channels * pixels];
    for (int n = 0; n < images; ++n) {
      for (int c = 0; c < channels; ++c) {
        for (int p = 0; p < pixels; ++p) memory[(n * pixels + p) * channels + c] = (n * channels + c) * pixels + p;
      }
    }
    return memory;
  }

  @Test
  public void layoutsBecomeContiguous() {
    Module module = Module.load(file("layouts.pnc")); // gives x and v as they lie in memory
    long[] image = {2, 3, 4, 5};
    long[] volume = {2, 3, 2, 4, 5};
    FloatBuffer buffer = Tensor.allocateFloatBuffer(240);
    buffer.put(last(2, 3, 40));
    Tensor[] images = {
      Tensor.fromBlob(counted(120), image), Tensor.fromBlob(last(2, 3, 20), image, MemoryFormat.CHANNELS_LAST)
    };
    Tensor[] volumes = {
      Tensor.fromBlob(buffer, volume, MemoryFormat.CHANNELS_LAST_3D), Tensor.fromBlob(counted(240), volume)
    };
    for (int round = 0; round < 2; ++round) { // what was copied for one call is memory of the next
      for (int i = 0; i < 2; ++i) {
        Map<String, IValue> outputs =
            module.forward(IValue.from(images[i]), IValue.from(volumes[i])).toDictStringKey();
        assertArrayEquals(counted(120), data(outputs.get("x")), 0);
        assertArrayEquals(counted(240), data(outputs.get("v")), 0);
      }
    }
    assertArrayEquals(last(2, 3, 20), images[1].getDataAsFloatArray(), 0); // memory stays in its order
    assertArrayEquals(counted(120), images[0].getDataAsFloatArray(), 0);
    assertArrayEquals(counted(240), volumes[1].getDataAsFloatArray(), 0);
    module.destroy();
  }

  @Test
  public void directBuffersAreReadAtEachCall() {
    Module module = Module.load(file("counter.pnc"));
    FloatBuffer buffer = Tensor.allocateFloatBuffer(3);
    IValue input = IValue.from(Tensor.fromBlob(buffer, new long[] {1, 3}));
    IValue own = floats(new long[] {1, 3}, 5, 5, 5);
    assertArrayEquals(new float[] {11, 11, 11}, data(module.forward(own)), 0);
    buffer.put(new float[] {1, 2, 3});
    IValue first = module.forward(input);
    buffer.put(0, 10);
    assertArrayEquals(new float[] {23, 7, 9}, data(module.forward(input)), 0);
    assertArrayEquals(new float[] {4, 6, 8}, data(first), 0); // results are not overwritten
    assertArrayEquals(new float[] {5, 5, 5}, own.toTensor().getDataAsFloatArray(), 0); // nor are arguments
    module.destroy();
  }

  @Test
  public void tuplesListsAndMapsOfTensors() {
    Module module = Module.load(file("nested.pnc")); // x, pair (a, b), batch {"c", "d"}: x + 10 a + 100 b + 1000 c + 10000 d
    long[] one = {1};
    Map<String, IValue> batch = new LinkedHashMap<>();
    batch.put("d", floats(one, 5)); // in another order than at conversion
    batch.put("c", floats(one, 4));
    IValue dict = IValue.dictStringKeyFrom(batch);
    IValue[] pair = {floats(one, 2), floats(one, 3)};
    IValue[] pairs = {
      IValue.tupleFrom(pair), IValue.listFrom(pair), IValue.listFrom(pair[0].toTensor(), pair[1].toTensor())
    };
    for (IValue two : pairs) {
      Map<String, IValue> outputs = module.forward(floats(one, 1), two, dict).toDictStringKey();
      assertEquals("[sum, parts, n]", outputs.keySet().toString());
      assertArrayEquals(new float[] {54321}, data(outputs.get("sum")), 0);
      assertArrayEquals(new float[] {3}, outputs.get("parts").toTensorList()[1].getDataAsFloatArray(), 0);
      assertEquals(1, outputs.get("n").toLong());
    }
    // One after the other, too.
    assertArrayEquals(new float[] {54321},
        data(module.forward(floats(one, 1), pair[0], pair[1], floats(one, 4), floats(one, 5)).toTuple()[0]), 0);
    batch.put("e", batch.remove("c"));
    wrong("argument 2 has 'e', its inputs are [batch.", () -> module.forward(floats(one, 1), pairs[0], dict));
    Map<Long, IValue> ints = Collections.singletonMap(1L, floats(one, 1));
    wrong("argument 0 has '1'", () -> module.forward(IValue.dictLongKeyFrom(ints), pairs[0], floats(one, 1), floats(one, 1)));
    wrong("argument 1, at 1, is a str", () -> module.forward(floats(one, 1), IValue.tupleFrom(pair[0], IValue.from("x"))));
    module.destroy();
  }

  @Test
  public void listsOfMapsAsDetectorsGiveThem() {
    Module module = Module.load(file("images.pnc"));
    IValue[] images = module.forward(floats(new long[] {2}, 1, 2)).toList();
    assertEquals(2, images.length);
    assertArrayEquals(new float[] {1, 2}, data(images[0].toDictStringKey().get("boxes")), 0);
    assertArrayEquals(new long[] {2}, images[1].toDictStringKey().get("labels").toTensor().getDataAsLongArray());
    module.destroy();
  }

  @Test
  public void numbersForInputsWithoutDimensions() {
    Module module = Module.load(file("numbers.pnc")); // x * scale + k where flag
    IValue x = floats(new long[] {2}, 1, 2);
    assertArrayEquals(new float[] {6.5f, 8},
        data(module.forward(x, IValue.from(1.5), IValue.from(5), IValue.from(true))), 0);
    assertArrayEquals(new float[] {1.5f, 3},
        data(module.forward(x, IValue.from(1.5), IValue.from(5), IValue.from(false))), 0);
    wrong("input scale: float32[] was given an int", () -> module.forward(x, IValue.from(1), IValue.from(5), IValue.from(true)));
    wrong("input flag: bool[] was given a float", () -> module.forward(x, IValue.from(1.5), IValue.from(5), IValue.from(0.5)));
    module.destroy();
  }

  // ---- misuse -------------------------------------------------------------------------------------------------------

  @Test
  public void wrongArgumentsChangeNothing() {
    Module module = Module.load(file("counter.pnc"));
    IValue good = floats(new long[] {1, 3}, 1, 2, 3);
    wrong("takes 1 tensors [x: float32[", () -> module.forward());
    wrong("the arguments have 2", () -> module.forward(good, good));
    wrong("the arguments have 2", () -> module.forward(good, IValue.from(4)));
    wrong("arguments are null", () -> module.forward((IValue[]) null));
    wrong("argument 0 is null: use IValue.optionalNull()", () -> module.forward((IValue) null));
    wrong("argument 0 is null: a .pnc takes tensors", () -> module.forward(IValue.optionalNull(), good));
    wrong("is a str", () -> module.forward(IValue.from("text")));
    wrong("is a list of ints", () -> module.forward(IValue.listFrom(1L, 2L)));
    wrong("argument 1 is null", () -> module.forward(good, IValue.optionalNull(), IValue.from(1)));
    wrong("'x'", () -> module.forward(IValue.from(1.5)));
    IllegalArgumentException dtype = thrown(IllegalArgumentException.class, "int32",
        () -> module.forward(IValue.from(Tensor.fromBlob(new int[3], new long[] {1, 3}))));
    assertTrue(dtype.getCause() instanceof PinnaceException.InvalidArgument);
    assertEquals(dtype.getMessage(), dtype.getCause().getMessage());
    wrong("'x'", () -> module.forward(floats(new long[] {1, 4}, 1, 2, 3, 4)));
    wrong("'x'", () -> module.forward(floats(new long[] {9, 3}, new float[27])));
    wrong("'x'", () -> module.forward(floats(new long[] {3}, 1, 2, 3)));
    wrong("the method 'forward' alone, not 'encode'", () -> module.runMethod("encode", good));
    wrong("not 'null'", () -> module.runMethod(null, good));
    // The state counts runs.
    assertArrayEquals(new float[] {3, 5, 7}, data(module.runMethod("forward", good)), 0);
    assertArrayEquals(new float[] {4, 6, 8}, data(module.forward(good, IValue.optionalNull(), IValue.optionalNull())), 0);
    module.destroy();
    module.destroy();
    unfit("the module is destroyed", () -> module.forward(good));
    unfit("the module is destroyed", () -> module.runMethod("forward", good));
  }

  @Test
  public void aNumberOfThreadsKeepsStates() {
    Module module = Module.load(file("counter.pnc"));
    IValue input = floats(new long[] {1, 3}, 0, 0, 0);
    try {
      for (int run = 1; run <= 6; ++run) {
        PyTorchAndroid.setNumThreads(1 + run % 3);
        assertEquals(run, data(module.forward(input))[0], 0);
      }
      wrong("0 threads, needs 1 or more", () -> PyTorchAndroid.setNumThreads(0));
      wrong("-1 threads", () -> PyTorchAndroid.setNumThreads(-1));
    } finally {
      PyTorchAndroid.setNumThreads(1);
    }
    module.destroy();
  }

  @Test
  public void threadsTakeTurns() throws InterruptedException {
    Module module = Module.load(file("counter.pnc"));
    List<Throwable> failures = Collections.synchronizedList(new ArrayList<Throwable>());
    List<Thread> threads = new ArrayList<>();
    for (int t = 0; t < 4; ++t) {
      Thread thread = new Thread(() -> {
        try {
          FloatBuffer own = Tensor.allocateFloatBuffer(3);
          for (int i = 0; i < 50; ++i) assertNotNull(module.forward(IValue.from(Tensor.fromBlob(own, new long[] {1, 3}))));
        } catch (Throwable e) {
          failures.add(e);
        }
      });
      threads.add(thread);
      thread.start();
    }
    for (Thread thread : threads) thread.join();
    assertTrue(failures.toString(), failures.isEmpty());
    assertEquals(201, data(module.forward(floats(new long[] {1, 3}, 0, 0, 0)))[0], 0);
    module.destroy();
  }
}
