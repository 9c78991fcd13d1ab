// SPDX-License-Identifier: Apache-2.0
// Compiled code of the Java machine in the middle of native stacks.
import java.util.Arrays;
import java.util.HashMap;
import java.util.zip.CRC32;

public class Hot {
    static long sink;

    static long work(int n) {
        HashMap<Integer, String> m = new HashMap<>();
        CRC32 sum = new CRC32();
        byte[] bytes = new byte[20000];
        for (int i = 0; i < 500; i++)
            m.put(i, Integer.toString(i * n));
        for (String s : m.values())
            sum.update(s.getBytes());
        sum.update(bytes);
        int[] a = new int[1000];
        for (int i = 0; i < a.length; i++)
            a[i] = (i * 7919) % 1000;
        Arrays.sort(a);
        return sum.getValue() + a[n & 15];
    }

    public static void main(String[] args) {
        for (int i = 0; i < 2000000; i++)
            sink += work(i);
    }
}
