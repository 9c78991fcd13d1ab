/* SPDX-License-Identifier: Apache-2.0 */ import java.util.*; /* its lines are in the recordings */
import java.util.function.*;
public class Mix {
    interface Shape { long area(int k); }
    static class A implements Shape { public long area(int k) { return k * 3L; } }
    static class B implements Shape { public long area(int k) { return k ^ 7L; } }
    static class C implements Shape { public long area(int k) { long s = 0; for (int i = 0; i < k % 50; i++) s += i; return s; } }
    static volatile long sink;
    static final Shape[] shapes = {new A(), new B(), new C()};
    static long poly(int n) { long s = 0; for (int i = 0; i < n; i++) s += shapes[i % 3].area(i); return s; }
    static long maps(int n) { Map<String, Integer> m = new HashMap<>(); for (int i = 0; i < n; i++) m.merge("k" + (i % 97), i, Integer::sum); return m.size(); }
    static long sort(int n) { List<Integer> l = new ArrayList<>(); for (int i = 0; i < n; i++) l.add((i * 7919) % 1000); Collections.sort(l, (x, y) -> Integer.compare(x ^ 5, y ^ 5)); return l.get(0); }
    static long copy(int n) { byte[] a = new byte[n], b = new byte[n]; for (int i = 0; i < 20; i++) { System.arraycopy(a, 0, b, 1, n - 1); Arrays.fill(a, (byte) i); } return b[3]; }
    static long thrown(int n) { long s = 0; for (int i = 0; i < n; i++) try { deep(i % 8); } catch (RuntimeException e) { s++; } return s; }
    static void deep(int d) { if (d == 0) throw new RuntimeException("x"); deep(d - 1); }
    static synchronized long locked(int n) { long s = 0; for (int i = 0; i < n; i++) s += System.nanoTime() & 1; return s; }
    static long streams(int n) { return java.util.stream.IntStream.range(0, n).mapToObj(i -> "v" + i).filter(x -> x.length() > 2).count(); }
    static long rec(int d, IntSupplier f) { return d == 0 ? f.getAsInt() : rec(d - 1, f) + 1; }
    static long strings(int n) { StringBuilder b = new StringBuilder(); for (int i = 0; i < n; i++) b.append(i).append(','); return b.toString().hashCode(); }
    static void work(int i) {
        switch (i % 9) { case 0: sink = poly(3000); break; case 1: sink = maps(2000); break; case 2: sink = sort(1000); break; case 3: sink = copy(5000); break;
        case 4: sink = thrown(50); break; case 5: sink = locked(1000); break; case 6: sink = streams(500); break; case 7: sink = rec(40, () -> (int) poly(200)); break; default: sink = strings(1000); } }
    static void loop() { for (int i = 0; ; i++) work(i); }
    public static void main(String[] a) throws Exception {
        for (int t = 0; t < 2; t++) { Thread x = new Thread(Mix::loop, "mix" + t); x.setDaemon(true); x.start(); }
        loop();
    }
}
