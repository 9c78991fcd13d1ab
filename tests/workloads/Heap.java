// SPDX-License-Identifier: Apache-2.0
/**
 * Allocates in three places, once a line comes in; says what, and waits for another. With an argument it uses the CPU
 * while it waits for the first one.
 */
public class Heap {
    static Object sink;

    static void allocateSmall(int n) {
        for (int i = 0; i < n; i++)
            sink = new int[30]; // 136 bytes
    }

    static void allocateMedium(int n) {
        for (int i = 0; i < n; i++)
            sink = new byte[4000]; // 4016
    }

    static void allocateLarge(int n) {
        for (int i = 0; i < n; i++)
            sink = new byte[3_000_000]; // 3000016
    }

    public static void main(String[] args) throws Exception {
        System.out.println("ready");
        while (args.length > 0 && System.in.available() == 0)
            ;
        while (System.in.read() != '\n')
            ;
        allocateSmall(1_000_000);
        allocateMedium(30_000);
        allocateLarge(40);
        System.out.println("done");
        while (System.in.read() >= 0)
            ;
    }
}
