/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Virtual threads in known chains of calls: one that stays on its carrier; one that is pinned there
 * by a native frame (-Djdk.reflect.useNativeAccessorOnly=true) whenever it yields; one that yields
 * at the bottom of a recursion; and one that also works on its way back, frame by frame, which then
 * come from the heap. For Java 21 and later, with three carriers; compiled for 11.
 */
import java.lang.reflect.Method;

public class Virtual implements Runnable {
	static volatile long sink;
	static Method reflected;
	final int kind;

	Virtual(int kind) {
		this.kind = kind;
	}

	static long spin(int n) {
		long s = n;
		for (int i = 0; i < n; i++)
			s = s * 31 + (s >>> 7) + i;
		return s;
	}

	static long deep(int left, boolean yields) {
		if (left > 0)
			return deep(left - 1, yields) + 1;
		if (yields)
			Thread.yield();
		return spin(20000);
	}

	static long climb(int left) {
		long s;

		if (left == 0) {
			Thread.yield();
			return spin(2000);
		}
		s = climb(left - 1);
		return s + spin(2000);
	}

	static void stays() {
		sink = deep(20, false);
	}

	public static long reflected() {
		return deep(5, true);
	}

	static void pinned() {
		try {
			sink = (long) reflected.invoke(null);
		} catch (ReflectiveOperationException e) {
			throw new AssertionError(e);
		}
	}

	static void yields() {
		sink = deep(20, true);
	}

	static void climbs() {
		sink = climb(20);
	}

	public void run() {
		for (;;) {
			switch (kind) {
			case 0: stays(); break;
			case 1: pinned(); break;
			case 2: yields(); break;
			default: climbs();
			}
		}
	}

	public static void main(String[] args) throws Exception {
		Method start = Thread.class.getMethod("startVirtualThread", Runnable.class);

		reflected = Virtual.class.getMethod("reflected");
		for (int i = 0; i < 4; i++)
			start.invoke(null, new Virtual(i));
		Thread.sleep(Long.MAX_VALUE);
	}
}
