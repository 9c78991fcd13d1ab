// SPDX-License-Identifier: Apache-2.0
/** One thread sleeps, one waits for a lock that a third holds while it sleeps. */
public class Waits {
    static final Object lock = new Object();

    static void naps() throws Exception {
        Thread.sleep(20);
    }

    static void holds() throws Exception {
        synchronized (lock) {
            Thread.sleep(20);
        }
        Thread.sleep(1);
    }

    static void waits() {
        synchronized (lock) {
        }
    }

    static void forever(String name, java.util.concurrent.Callable<Void> what) {
        new Thread(() -> {
            try {
                for (;;)
                    what.call();
            } catch (Exception e) {
                throw new RuntimeException(e);
            }
        }, name).start();
    }

    public static void main(String[] args) {
        forever("napper", () -> { naps(); return null; });
        forever("holder", () -> { holds(); return null; });
        forever("waiter", () -> { waits(); return null; });
    }
}
