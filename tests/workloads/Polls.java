/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A Java thread that is stopped at a poll in a known chain of calls: first() is executing for all but a
 * hundred-thousandth of the time, and a compiler puts it and second(), whose poll is the next one in the code,
 * into their caller. Another thread stops it again and again, to collect garbage.
 */
public class Polls {
	static volatile long sink;

	static long next(long s) {
		return s * 6364136223846793005L + 1442695040888963407L;
	}

	static long first(long s, long bits) {
		do
			s = next(s);
		while ((s & bits) != 0);
		return s;
	}

	static long second(long s) {
		do
			s = next(s);
		while ((s & 7L << 50) != 0);
		return s;
	}

	static long both(long s, long bits) {
		return second(first(s, bits));
	}

	static void turns() {
		for (int i = 0; i < 50000; i++) // until it is compiled as a whole
			sink = both(sink, 7L << 40);
		for (;;)
			sink = both(sink, 0xfffffL << 40);
	}

	public static void main(String[] args) throws Exception {
		Thread polls = new Thread(Polls::turns, "polls");

		polls.setDaemon(true);
		polls.start();
		for (;;) {
			Thread.sleep(5);
			System.gc();
		}
	}
}
