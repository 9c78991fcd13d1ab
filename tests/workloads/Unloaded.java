/* SPDX-License-Identifier: Apache-2.0 */
import java.io.ByteArrayOutputStream;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;

/*
 * Classes of one shape that come and go, each in a loader of its own: their numbers only grow.
 * HotSpot puts new ones where those were that it has unloaded. That happens half a second after
 * they ran, since whoever reads a stack may be late.
 */
public class Unloaded {
	static final int MILLISECONDS = 5;
	static final Loader[] kept = new Loader[100];
	public static long sum;

	public static class Made000000 implements Runnable {
		public void run() {
			long end = System.nanoTime() + MILLISECONDS * 1000000L, n = 0;

			while (System.nanoTime() < end)
				n++;
			sum += n;
		}
	}

	static class Loader extends ClassLoader {
		Loader() {
			super(Unloaded.class.getClassLoader());
		}

		Class<?> define(byte[] bytes) {
			return defineClass(null, bytes, 0, bytes.length);
		}
	}

	static byte[] read() throws Exception {
		ByteArrayOutputStream bytes = new ByteArrayOutputStream();

		try (InputStream in = Unloaded.class.getResourceAsStream("Unloaded$Made000000.class")) {
			for (int b = in.read(); b >= 0; b = in.read())
				bytes.write(b);
		}
		return bytes.toByteArray();
	}

	/* The class under another name of the same length. */
	static byte[] rename(byte[] bytes, int number) {
		String text = new String(bytes, StandardCharsets.ISO_8859_1);

		return text.replace("Made000000", String.format("Made%06d", number))
			.getBytes(StandardCharsets.ISO_8859_1);
	}

	static void turn(byte[] bytes, int number) throws Exception {
		Loader loader = new Loader();

		kept[number % kept.length] = loader;
		((Runnable) loader.define(bytes).getDeclaredConstructor().newInstance()).run();
	}

	public static void main(String[] args) throws Exception {
		byte[] bytes = read();

		for (int i = 1;; i++) {
			turn(rename(bytes, i), i);
			if (i % 16 == 0)
				System.gc();
		}
	}
}
