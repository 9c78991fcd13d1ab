/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Java threads in known chains of calls, in turns: a recursion of known depth; small methods that a
 * compiler puts into each other; a method that native code calls (reflection, with
 * -Dsun.reflect.inflationThreshold=2147483647, since 18 -Djdk.reflect.useNativeAccessorOnly=true);
 * one behind an interface with three classes; one that copies arrays, for which compiled code calls a
 * stub; and two that compare and search strings, for which C2's code moves the end of the stack.
 */
import java.lang.reflect.Method;

public class Calls {
	static final int DEPTH = 20;
	static volatile long sink;
	static final String text = "a".repeat(1 << 14), same = text + "b", absent = "bcd";
	static final Object[] from = new Object[1 << 14], to = new Object[from.length];

	interface Shape {
		long area(int n);
	}

	static class Square implements Shape {
		public long area(int n) {
			return spin(n);
		}
	}

	static class Circle implements Shape {
		public long area(int n) {
			return spin(n) + 1;
		}
	}

	static class Line implements Shape {
		public long area(int n) {
			return spin(n) + 2;
		}
	}

	static long spin(int n) {
		long s = n;
		for (int i = 0; i < n; i++)
			s = s * 31 + (s >>> 7) + i;
		return s;
	}

	static long deep(int left, int n) {
		return left == 0 ? spin(n) : deep(left - 1, n) + 1;
	}

	static long inner(int n) {
		return spin(n) ^ 1;
	}

	static long middle(int n) {
		return inner(n) + 1;
	}

	static long outer(int n) {
		return middle(n) + 1;
	}

	public static long reflected(int n) {
		return spin(n);
	}

	static long copied() {
		System.arraycopy(from, 0, to, 0, from.length);
		return to.length;
	}

	static long compared() {
		return text.compareTo(same);
	}

	static long searched() {
		return text.indexOf(absent);
	}

	static void turn(int i, Method reflected, Shape[] shapes) throws Exception {
		sink = deep(DEPTH, 2000);
		sink = outer(2000);
		sink = (long) reflected.invoke(null, 2000);
		sink = shapes[i % 3].area(2000);
		sink = copied();
		sink = compared();
		sink = searched();
	}

	public static void main(String[] args) throws Exception {
		Method reflected = Calls.class.getMethod("reflected", int.class);
		Shape[] shapes = {new Square(), new Circle(), new Line()};

		for (int i = 0;; i++)
			turn(i & 0xffff, reflected, shapes);
	}
}
