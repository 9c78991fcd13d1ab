// SPDX-License-Identifier: Apache-2.0
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.locks.ReentrantLock;

/** Threads that hang in every way that Java has. Each says in which methods, from the outermost on, before it does. */
public class Hangs {
    static final Object monitor = new Object();
    static final ReentrantLock lock = new ReentrantLock();

    static void tell() {
        StringBuilder chain = new StringBuilder();
        StackTraceElement[] all = new Throwable().getStackTrace();
        for (int i = all.length - 1; i > 0; i--)
            if (all[i].getClassName().equals("Hangs"))
                chain.append(chain.length() > 0 ? ";" : "").append("Hangs.").append(all[i].getMethodName());
        System.out.println(chain);
        System.out.flush();
    }

    static void inMonitor() {
        tell();
        synchronized (monitor) {
        }
    }

    static void inWait() throws Exception {
        Object own = new Object();
        tell();
        synchronized (own) {
            own.wait();
        }
    }

    static void inSleep() throws Exception {
        tell();
        Thread.sleep(1000000);
    }

    static void inLock() {
        tell();
        lock.lock();
    }

    static void start(java.util.concurrent.Callable<Void> what) {
        Thread t = new Thread(() -> run(what));
        t.setDaemon(true);
        t.start();
    }

    static void run(java.util.concurrent.Callable<Void> what) {
        try {
            what.call();
        } catch (Exception e) {
            throw new RuntimeException(e);
        }
    }

    static Void monitors() {
        inMonitor();
        return null;
    }

    static Void waits() throws Exception {
        inWait();
        return null;
    }

    static Void sleeps() throws Exception {
        inSleep();
        return null;
    }

    static Void locks() {
        inLock();
        return null;
    }

    public static void main(String[] args) throws Exception {
        lock.lock();
        synchronized (monitor) {
            start(Hangs::monitors);
            start(Hangs::waits);
            start(Hangs::sleeps);
            start(Hangs::locks);
            tell();
            new CountDownLatch(1).await();
        }
    }
}
